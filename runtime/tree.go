package runtime

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/wire"
)

// tree is the output directory of a running job:
//
//	OUT/_temporary/OWNER             the job's id and its submission's key
//	OUT/_temporary/<job>/a/<attempt> an attempt's files, .attempt written last
//	OUT/_temporary/<job>/t/<task>    a committed task: its attempt's directory, renamed; in jobs with reduces
//	                                 also of maps; an empty file: a map without files, see mapfiles.go
//	OUT/_temporary/<job>/s/<task>.N  records that its attempts skip after N changes; made when needed
//	OUT/part-r-00000                 moved here by the job's commit
//	OUT/_types                       types of the records, if they are binary; see stored.go
//	OUT/_SUCCESS                     empty, written when all files are in place; with [MarkSuccess] false
//	                                 it is in the job's staging directory
//
// OUT appears and disappears as a whole. A setup attempt builds it in a directory of its
// own in .<OUT>.<job>.<key>.new beside OUT, because a lost attempt may still run. It then
// renames the directory to OUT, which fails if OUT exists. So OUT belongs to this job only
// if it has this job's OWNER, and only one of two jobs gets it. Cleanup renames
// OUT/_temporary to .<OUT>.<job>.<key>.old before it removes anything. After a crash
// between any two steps, the state shows the remaining steps.
//
// A setup attempt may also continue during its job's cleanup, and after it. So cleanup
// first renames the staged submission, which is never written again. Then it renames all
// directories of setup attempts. A setup attempt makes its directory and then checks for
// the submission. If the submission exists, cleanup will find the directory, or the output
// in place. If not, the attempt removes its directory, which is still empty. If it dies
// before that, only the empty directory remains.
//
// This ends the setup attempts of all jobs of the submission, because they stop together;
// jobs that ended or commit need none. A setup attempt of a succeeded job fails because the
// output exists; if it dies before that, its directory remains.
//
// Files are durable before a rename publishes them, and the rename is durable before it is
// reported. So a power cut undoes nothing that was reported, and leaves no _SUCCESS beside
// partial output. This does not hold if fs is volatile, see [OutputSync].
//
// The key is random, because two clusters that started in one millisecond have equal job
// ids.
type tree struct {
	fs  dfs.FS
	out string // URL of OUT
	job wire.JobID
	key string // of the submission

	staging  string // URL of the submission's directory
	unmarked bool   // _SUCCESS is in the staging directory
}

const (
	temporaryName  = "_temporary"
	ownerName      = "OWNER"
	successName    = "_SUCCESS"
	manifestName   = ".attempt"
	fencedSuffix   = ".fenced" // marks an attempt's directory that must not be committed any more
	maxSiblingBase = 128       // bytes of OUT's name in names beside it, which add about 60
	maxOwner       = 1 << 10
	maxManifest    = 64 << 20
)

func (t *tree) temporary() string { return dfs.Join(t.out, temporaryName) }
func (t *tree) owner() string     { return dfs.Join(t.out, temporaryName, ownerName) }

func (t *tree) success() string {
	if t.unmarked {
		return dfs.Join(t.staging, t.job.String(), successName)
	}
	return dfs.Join(t.out, successName)
}

func (t *tree) below(elem ...string) string {
	return dfs.Join(dfs.Join(t.temporary(), t.job.String()), elem...)
}

func (t *tree) attempt(id wire.AttemptID) string { return t.below("a", id.String()) }
func (t *tree) fenced(id wire.AttemptID) string  { return t.below("a", id.String()+fencedSuffix) }
func (t *tree) task(id wire.TaskID) string       { return t.below("t", id.String()) }

// sibling returns a name beside OUT that only this job uses. If OUT's name is long, it has
// only the beginning.
func (t *tree) sibling(suffix string) string {
	base := dfs.Base(t.out)
	if len(base) > maxSiblingBase {
		base = strings.ToValidUTF8(base[:maxSiblingBase], "")
	}
	return dfs.Join(dfs.Dir(t.out), "."+base+"."+t.job.String()+"."+t.key+suffix)
}

// ownerText returns the content of this job's OWNER.
func (t *tree) ownerText() string { return t.job.String() + " " + t.key }

// ownership says which job owns OUT.
type ownership int

const (
	unclaimed ownership = iota // OUT does not exist
	ours                       // this job's setup made it
	foreign                    // any other state
)

// readOwner returns the content of OWNER, "" if there is none.
func (t *tree) readOwner() (string, error) {
	data, err := readAll(t.fs, t.owner(), maxOwner)
	if err != nil && !missing(err) {
		return "", fmt.Errorf("read the owner of output: %w", err)
	}
	return string(data), nil
}

func (t *tree) exists(name string) (bool, error) {
	_, err := t.fs.Stat(name)
	if err != nil && !missing(err) {
		return false, fmt.Errorf("look for output: %w", err)
	}
	return err == nil, nil
}

// checkOwner returns the owner of OUT and, if it is foreign, an error. Another setup attempt may put
// OUT into place meanwhile.
func (t *tree) checkOwner() (ownership, error) {
	owner, err := t.readOwner()
	found := false
	if err == nil && owner == "" {
		if found, err = t.exists(t.out); found {
			owner, err = t.readOwner()
		}
	}
	switch {
	case err != nil:
		return foreign, err
	case owner == t.ownerText():
		return ours, nil
	case owner != "":
		job, _, _ := strings.Cut(owner, " ")
		return foreign, Fatal(fmt.Errorf("%w: %s is being written by %s", ErrOutputExists, t.out, job))
	case found:
		return foreign, Fatal(fmt.Errorf("%w: %s", ErrOutputExists, t.out))
	}
	return unclaimed, nil
}

// build makes the tree for a setup attempt and puts it into place. The parent of OUT
// exists.
func (t *tree) build(id wire.AttemptID) error {
	scratch := t.sibling(".new")
	buildDir := dfs.Join(scratch, id.String())
	inside := &tree{fs: t.fs, out: buildDir, job: t.job, key: t.key}
	if err := t.makeBuildDir(scratch, buildDir); err != nil {
		t.abandon(scratch, buildDir)
		return fmt.Errorf("make output: %w", err)
	}
	for _, dir := range []string{inside.temporary(), inside.below(), inside.below("a"), inside.below("t")} {
		if err := t.fs.Mkdir(dir); err != nil {
			return fmt.Errorf("make output: %w", err)
		}
	}
	if err := writeAll(t.fs, inside.owner(), []byte(t.ownerText())); err != nil {
		return fmt.Errorf("make output: %w", err)
	}
	for _, dir := range []string{inside.below(), inside.temporary(), buildDir} {
		if err := t.fs.SyncDir(dir); err != nil {
			return fmt.Errorf("make output: %w", err)
		}
	}
	if err := t.fs.RenameDir(buildDir, t.out); err != nil {
		// The rename may have succeeded all the same, or another attempt was first.
		state, ownerErr := t.checkOwner()
		switch {
		case state == foreign && isFatal(ownerErr):
			t.abandon(scratch, buildDir)
			return fmt.Errorf("make output: %w", ownerErr)
		case state != ours:
			return fmt.Errorf("make output: %w", err)
		}
	}
	if err := t.fs.RemoveAll(scratch); err != nil {
		return fmt.Errorf("make output: %w", err)
	}
	return nil
}

// makeBuildDir makes the directory for a setup attempt. It fails if the submission's jobs
// were stopped or have ended.
func (t *tree) makeBuildDir(scratch, buildDir string) error {
	if err := mkdir(t.fs, scratch); err != nil {
		return err
	}
	if err := t.fs.Mkdir(buildDir); err != nil {
		return err
	}
	_, err := t.fs.Stat(dfs.Join(t.staging, wire.StagedSubmission))
	if missing(err) {
		return fmt.Errorf("the job was stopped or is over: %w", err)
	}
	return err
}

// abandon removes the directory of this setup attempt, not of others. If that fails, a
// later cleanup removes it.
func (t *tree) abandon(scratch, buildDir string) {
	_ = t.fs.RemoveAll(buildDir)
	_ = t.fs.Remove(scratch) // fails if another attempt builds there
}

// manifest is the file .attempt of an attempt's directory, in msgpack. It is written last,
// so a directory with a manifest is complete.
type manifest struct {
	Attempt  string         `msgpack:"Attempt"`
	Files    []manifestFile `msgpack:"Files"` // by name
	Counters wire.Counters  `msgpack:"Counters"`
}

type manifestFile struct {
	Name string `msgpack:"Name"`
	Size int64  `msgpack:"Size"`
	Sum  uint64 `msgpack:"Sum,omitempty"` // xxhash64 of the content, for files of maps of jobs with reduces
}

func (t *tree) writeManifest(id wire.AttemptID, m *manifest) error {
	data, err := wire.Marshal(m)
	if err != nil {
		return err
	}
	if err := writeAll(t.fs, dfs.Join(t.attempt(id), manifestName), data); err != nil {
		return err
	}
	return t.fs.SyncDir(t.attempt(id))
}

// committed reads the manifest of a committed task. It returns nil if the task has not
// committed.
func (t *tree) committed(task wire.TaskID) (*manifest, error) {
	name := dfs.Join(t.task(task), manifestName)
	data, err := readAll(t.fs, name, maxManifest)
	if missing(err) {
		return t.withoutFiles(task)
	}
	if err != nil {
		return nil, fmt.Errorf("read the committed output: %w", err)
	}
	m := new(manifest)
	if err := wire.Unmarshal(data, m); err != nil {
		return nil, fmt.Errorf("%s: %w: %w", name, ErrCorrupt, err)
	}
	for _, f := range m.Files {
		if f.Name == "" || strings.Contains(f.Name, "/") {
			return nil, fmt.Errorf("%s: %w: file name %q", name, ErrCorrupt, f.Name)
		}
	}
	return m, nil
}

// commitTask renames an attempt's directory to the task's directory. It succeeds for
// exactly one attempt, even if that attempt's rename reports an error.
func (t *tree) commitTask(id wire.AttemptID) error {
	if renamed := t.fs.RenameDir(t.attempt(id), t.task(id.Task)); renamed != nil {
		m, err := t.committed(id.Task)
		switch {
		case err != nil:
			return errors.Join(fmt.Errorf("commit task: %w", renamed), err)
		case m == nil:
			return fmt.Errorf("commit task: %w", renamed)
		case m.Attempt != id.String():
			return fmt.Errorf("commit task: %s has committed: %w", m.Attempt, renamed)
		}
	}
	if err := t.fs.SyncDir(t.below("t")); err != nil {
		return fmt.Errorf("commit task: %w", err)
	}
	return nil
}

// fence prevents an attempt from committing. If the attempt has committed, fence returns
// the manifest.
func (t *tree) fence(id wire.AttemptID) (*manifest, error) {
	err := t.fs.RenameDir(t.attempt(id), t.fenced(id))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("fence %s: %w", id, err)
	}
	m, err := t.committed(id.Task)
	if err != nil || m == nil || m.Attempt != id.String() {
		return nil, err
	}
	if err := t.fs.SyncDir(t.below("t")); err != nil { // the attempt may have died before its sync
		return nil, fmt.Errorf("fence %s: %w", id, err)
	}
	return m, nil
}

// commitJob moves the committed files of tasks into place and removes the temporary
// directories. It calls beforeStep before each step, and stops if that returns an error.
// publishMore publishes more files, once or again, before _SUCCESS is written.
func (t *tree) commitJob(tasks []wire.TaskID, publishMore, beforeStep func() error) error {
	owner, err := t.readOwner()
	if err != nil {
		return fmt.Errorf("commit job: %w", err)
	}
	done, err := t.exists(t.success())
	if err != nil {
		return fmt.Errorf("commit job: %w", err)
	}
	// An earlier attempt may have removed OWNER already.
	if owner != t.ownerText() && !(owner == "" && done) {
		return Fatal(fmt.Errorf("commit job: %s is not this job's any more: its owner is %q", t.out, owner))
	}
	for _, task := range tasks {
		if err := t.moveTask(task, done, beforeStep); err != nil {
			return fmt.Errorf("commit job: %s: %w", task, err)
		}
	}
	if !done {
		if err := publishMore(); err != nil {
			return err
		}
	}
	if err := t.fs.SyncDir(t.out); err != nil {
		return fmt.Errorf("commit job: %w", err)
	}
	if !done {
		if err := writeAll(t.fs, t.success(), nil); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("commit job: %w", err)
		}
	}
	if err := t.fs.SyncDir(dfs.Dir(t.success())); err != nil { // before removing data that a commit after a power cut would need
		return fmt.Errorf("commit job: %w", err)
	}
	for _, dir := range []string{t.sibling(".new"), t.below(), t.temporary()} {
		if err := beforeStep(); err != nil {
			return err
		}
		if err := t.fs.RemoveAll(dir); err != nil {
			return fmt.Errorf("commit job: remove temporary files: %w", err)
		}
	}
	return nil
}

// moveTask moves the files of one task. If _SUCCESS exists, files that are missing from the
// task's directory were moved before, and a reader may have removed them since. Files that
// are still there are moved even then: another program may have written _SUCCESS.
func (t *tree) moveTask(task wire.TaskID, success bool, beforeStep func() error) error {
	m, err := t.committed(task)
	if err != nil {
		return err
	}
	if m == nil && !success { // another attempt may have ended the commit meanwhile
		if success, err = t.exists(t.success()); err != nil {
			return err
		}
	}
	switch {
	case m == nil && success:
		return nil
	case m == nil:
		return Fatal(fmt.Errorf("%w: its output is missing in %s", ErrCorrupt, t.task(task)))
	}
	for _, f := range m.Files {
		if err := beforeStep(); err != nil {
			return err
		}
		from := dfs.Join(t.task(task), f.Name)
		if success {
			switch found, err := t.exists(from); {
			case err != nil:
				return err
			case !found:
				continue
			}
		}
		if err := t.moveFile(from, dfs.Join(t.out, f.Name), f.Size); err != nil {
			return err
		}
	}
	return nil
}

// moveFile moves one file. If the source is missing and the target exists, the file was
// moved before. If both exist, the target belongs to another program.
func (t *tree) moveFile(from, to string, size int64) error {
	renamed := t.fs.RenameFile(from, to)
	if renamed == nil {
		return nil
	}
	if !errors.Is(renamed, fs.ErrNotExist) && !errors.Is(renamed, fs.ErrExist) {
		return renamed // it may have succeeded; the next attempt checks
	}
	_, errFrom := t.fs.Stat(from)
	info, errTo := t.fs.Stat(to)
	switch {
	case missing(errFrom) && errTo == nil && info.Size == size:
		return nil
	case missing(errFrom) && errTo == nil:
		return Fatal(fmt.Errorf("%w: %s has %d bytes, want %d", ErrCorrupt, to, info.Size, size))
	case errFrom == nil && errTo == nil:
		return Fatal(fmt.Errorf("%w: %s exists: another task or another program has written it", ErrOutputExists, to))
	}
	return renamed
}
