package runtime

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/wire"
)

// tree is the output directory of a job while the job runs:
//
//	OUT/_temporary/OWNER             the job's id and its submission's key
//	OUT/_temporary/<job>/a/<attempt> an attempt's files, .attempt written last
//	OUT/_temporary/<job>/t/<task>    a committed task: its attempt's directory, renamed
//	OUT/part-r-00000                 by the job's commit
//	OUT/_SUCCESS                     empty, when all files are in place
//
// It comes and goes whole. A setup attempt builds it in .<OUT>.<job>.<key>.new
// beside OUT, under its own name, since one that is thought lost may still be at
// work, and renames it into place, which is refused when OUT is there: so an OUT with
// this job's OWNER is this job's, any other is not, and of two jobs one wins. Cleanup
// renames OUT/_temporary to .<OUT>.<job>.<key>.old before it removes anything. A crash
// between any two steps leaves a state that tells what is still to be done.
//
// A setup attempt may also go on while its job is cleaned up, and after that. So cleanup
// first renames the staged submission, which nobody makes again, and then away whatever
// setup attempts build there; and a setup attempt looks for the submission when it has made
// the directory to build in. If it finds it, the cleanup will find the directory, or the
// output in place. If not, it removes the directory, which is empty yet: that is the most
// that it leaves if it dies just then. This ends all setup attempts of the submission, as
// they should: its jobs are stopped together, but for those that have run or commit. A
// setup attempt of a job that has succeeded is refused by its output; if it dies before,
// what it has built stays.
//
// What a rename publishes is durable before it, and the rename when it is reported: so
// a power cut takes back nothing that was reported, and leaves no _SUCCESS beside less
// than the whole output. This holds unless fs is volatile, see [OutputSync].
//
// The key is random: ids of two clusters that started in one millisecond are equal.
type tree struct {
	fs  dfs.FS
	out string // URL of OUT
	job wire.JobID
	key string // of the submission

	staging string // URL of the submission's directory
}

const (
	temporaryName = "_temporary"
	ownerName     = "OWNER"
	successName   = "_SUCCESS"
	manifestName  = ".attempt"
	fencedSuffix  = ".fenced" // of what an attempt has built and cannot put into place any more
	maxBeside     = 128       // bytes of OUT in names beside it, which have some 60 more
	maxOwner      = 1 << 10
	maxManifest   = 64 << 20
)

func (t *tree) temporary() string { return dfs.Join(t.out, temporaryName) }
func (t *tree) owner() string     { return dfs.Join(t.out, temporaryName, ownerName) }
func (t *tree) success() string   { return dfs.Join(t.out, successName) }

func (t *tree) below(elem ...string) string {
	return dfs.Join(dfs.Join(t.temporary(), t.job.String()), elem...)
}

func (t *tree) attempt(id wire.AttemptID) string { return t.below("a", id.String()) }
func (t *tree) fenced(id wire.AttemptID) string  { return t.below("a", id.String()+fencedSuffix) }
func (t *tree) task(id wire.TaskID) string       { return t.below("t", id.String()) }

// beside is a name that the job has for itself. Of a long OUT it has the beginning only.
func (t *tree) beside(suffix string) string {
	base := dfs.Base(t.out)
	if len(base) > maxBeside {
		base = strings.ToValidUTF8(base[:maxBeside], "")
	}
	return dfs.Join(dfs.Dir(t.out), "."+base+"."+t.job.String()+"."+t.key+suffix)
}

// self is the content of this job's OWNER.
func (t *tree) self() string { return t.job.String() + " " + t.key }

// claim says whose OUT is.
type claim int

const (
	unclaimed claim = iota // OUT is not there
	ours                   // this job's setup has made it
	foreign                // anything else
)

// readOwner is the content of OWNER, "" when there is none.
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

// claimed looks whose OUT is and, when it is foreign, says why.
func (t *tree) claimed() (claim, error) {
	owner, err := t.readOwner()
	switch {
	case err != nil:
		return foreign, err
	case owner == t.self():
		return ours, nil
	case owner != "":
		job, _, _ := strings.Cut(owner, " ")
		return foreign, Fatal(fmt.Errorf("%w: %s is being written by %s", ErrOutputExists, t.out, job))
	}
	there, err := t.exists(t.out)
	switch {
	case err != nil:
		return foreign, err
	case there:
		return foreign, Fatal(fmt.Errorf("%w: %s", ErrOutputExists, t.out))
	}
	return unclaimed, nil
}

// build makes the tree for a setup attempt and puts it into place. The parent of
// OUT exists.
func (t *tree) build(id wire.AttemptID) error {
	scratch := t.beside(".new")
	fresh := dfs.Join(scratch, id.String())
	inside := &tree{fs: t.fs, out: fresh, job: t.job, key: t.key}
	if err := t.begin(scratch, fresh); err != nil {
		t.abandon(scratch, fresh)
		return fmt.Errorf("make output: %w", err)
	}
	for _, dir := range []string{inside.temporary(), inside.below(), inside.below("a"), inside.below("t")} {
		if err := t.fs.Mkdir(dir); err != nil {
			return fmt.Errorf("make output: %w", err)
		}
	}
	if err := writeAll(t.fs, inside.owner(), []byte(t.self())); err != nil {
		return fmt.Errorf("make output: %w", err)
	}
	for _, dir := range []string{inside.below(), inside.temporary(), fresh} {
		if err := t.fs.SyncDir(dir); err != nil {
			return fmt.Errorf("make output: %w", err)
		}
	}
	if err := t.fs.RenameDir(fresh, t.out); err != nil {
		// It may have been done all the same, or another was first.
		state, why := t.claimed()
		switch {
		case state == foreign && isFatal(why):
			t.abandon(scratch, fresh)
			return fmt.Errorf("make output: %w", why)
		case state != ours:
			return fmt.Errorf("make output: %w", err)
		}
	}
	if err := t.fs.RemoveAll(scratch); err != nil {
		return fmt.Errorf("make output: %w", err)
	}
	return nil
}

// begin makes the directory that a setup attempt builds in, unless no job of the
// submission is to be set up any more.
func (t *tree) begin(scratch, fresh string) error {
	if err := mkdir(t.fs, scratch); err != nil {
		return err
	}
	if err := t.fs.Mkdir(fresh); err != nil {
		return err
	}
	_, err := t.fs.Stat(dfs.Join(t.staging, wire.StagedSubmission))
	if missing(err) {
		return fmt.Errorf("the job was stopped or is over: %w", err)
	}
	return err
}

// abandon removes what a setup attempt has built, and nothing of another's. What it
// cannot remove is left to the cleanup, if that is still to come.
func (t *tree) abandon(scratch, fresh string) {
	_ = t.fs.RemoveAll(fresh)
	_ = t.fs.Remove(scratch) // unless another attempt builds there
}

// endSetups sees to it that no setup attempt puts anything into place any more.
func (t *tree) endSetups() error {
	staged, stopped := dfs.Join(t.staging, wire.StagedSubmission), dfs.Join(t.staging, wire.StagedStopped)
	if err := t.fs.RenameFile(staged, stopped); err != nil && !missing(err) {
		return err
	}
	dirs, err := t.fs.List(t.beside(".new"))
	if err != nil && !missing(err) {
		return err
	}
	for _, dir := range dirs {
		if err := t.fs.RenameDir(dir.Name, dir.Name+fencedSuffix); err != nil && !missing(err) {
			return err
		}
	}
	return nil
}

// manifest is the file .attempt of an attempt's directory, in msgpack. It is
// written last, so a directory that has it is complete.
type manifest struct {
	Attempt  string         `msgpack:"Attempt"`
	Files    []manifestFile `msgpack:"Files"` // by name
	Counters wire.Counters  `msgpack:"Counters"`
}

type manifestFile struct {
	Name string `msgpack:"Name"`
	Size int64  `msgpack:"Size"`
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

// committed reads the manifest of a committed task; nil when there is none.
func (t *tree) committed(task wire.TaskID) (*manifest, error) {
	name := dfs.Join(t.task(task), manifestName)
	data, err := readAll(t.fs, name, maxManifest)
	if missing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read what is committed: %w", err)
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

// commitTask renames an attempt's directory to its task's: of all attempts one
// succeeds, whatever the outcome that its rename reports.
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

// fence makes sure that an attempt will never commit, unless it has: then it
// gives what was committed.
func (t *tree) fence(id wire.AttemptID) (*manifest, error) {
	err := t.fs.RenameDir(t.attempt(id), t.fenced(id))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("fence %s: %w", id, err)
	}
	m, err := t.committed(id.Task)
	if err != nil || m == nil || m.Attempt != id.String() {
		return nil, err
	}
	if err := t.fs.SyncDir(t.below("t")); err != nil { // the attempt may have died before it could
		return nil, fmt.Errorf("fence %s: %w", id, err)
	}
	return m, nil
}

// commitJob moves the committed files of tasks into place and removes what was
// temporary. Each is called before each step and may stop it.
func (t *tree) commitJob(tasks []wire.TaskID, each func() error) error {
	owner, err := t.readOwner()
	if err != nil {
		return fmt.Errorf("commit job: %w", err)
	}
	done, err := t.exists(t.success())
	if err != nil {
		return fmt.Errorf("commit job: %w", err)
	}
	// A removal that an earlier attempt has begun may have taken OWNER already.
	if owner != t.self() && !(owner == "" && done) {
		return Fatal(fmt.Errorf("commit job: %s is not this job's any more: its owner is %q", t.out, owner))
	}
	for _, task := range tasks {
		if err := t.moveTask(task, done, each); err != nil {
			return fmt.Errorf("commit job: %s: %w", task, err)
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
	if err := t.fs.SyncDir(t.out); err != nil { // before what a commit after a power cut would need is removed
		return fmt.Errorf("commit job: %w", err)
	}
	for _, dir := range []string{t.beside(".new"), t.below(), t.temporary()} {
		if err := each(); err != nil {
			return err
		}
		if err := t.fs.RemoveAll(dir); err != nil {
			return fmt.Errorf("commit job: remove temporary files: %w", err)
		}
	}
	return nil
}

// moveTask moves the files of one task. When _SUCCESS is there, what is not in
// the task's directory any more has been moved, and may have been taken away
// since by a reader. What still is there is moved even then: it may not be this
// job that has written _SUCCESS.
func (t *tree) moveTask(task wire.TaskID, success bool, each func() error) error {
	m, err := t.committed(task)
	if err != nil {
		return err
	}
	if m == nil && success {
		return nil
	}
	if m == nil {
		return Fatal(fmt.Errorf("%w: its output is gone from %s", ErrCorrupt, t.task(task)))
	}
	for _, f := range m.Files {
		if err := each(); err != nil {
			return err
		}
		from := dfs.Join(t.task(task), f.Name)
		if success {
			switch there, err := t.exists(from); {
			case err != nil:
				return err
			case !there:
				continue
			}
		}
		if err := t.moveFile(from, dfs.Join(t.out, f.Name), f.Size); err != nil {
			return err
		}
	}
	return nil
}

// moveFile moves one file. When that fails, source gone and target there means
// that it was done before; both there, that the target is somebody else's.
func (t *tree) moveFile(from, to string, size int64) error {
	renamed := t.fs.RenameFile(from, to)
	if renamed == nil {
		return nil
	}
	if !errors.Is(renamed, fs.ErrNotExist) && !errors.Is(renamed, fs.ErrExist) {
		return renamed // unclear; the next attempt will see
	}
	_, errFrom := t.fs.Stat(from)
	info, errTo := t.fs.Stat(to)
	switch {
	case missing(errFrom) && errTo == nil && info.Size == size:
		return nil
	case missing(errFrom) && errTo == nil:
		return Fatal(fmt.Errorf("%w: %s has %d bytes, want %d", ErrCorrupt, to, info.Size, size))
	case errFrom == nil && errTo == nil:
		return Fatal(fmt.Errorf("%w: %s is there and was not written by this job", ErrOutputExists, to))
	}
	return renamed
}

// takeBack moves back the files that a job commit has moved which failed before it
// could write _SUCCESS. A file that it could not move is still in its task's
// directory, so what stands in its place is somebody else's and stays. Nothing can be
// moved there either when another cleanup has gone on.
func (t *tree) takeBack() error {
	if done, err := t.exists(t.success()); err != nil || done {
		return err
	}
	dirs, err := t.fs.List(t.below("t"))
	if err != nil {
		return fmt.Errorf("list committed tasks: %w", err)
	}
	for _, dir := range dirs {
		task, err := wire.ParseTaskID(dfs.Base(dir.Name))
		if err != nil {
			continue // nothing of ours
		}
		m, err := t.committed(task)
		if err != nil || m == nil {
			return err
		}
		for _, f := range m.Files {
			err := t.fs.RenameFile(dfs.Join(t.out, f.Name), dfs.Join(dir.Name, f.Name))
			if err != nil && !missing(err) && !errors.Is(err, fs.ErrExist) {
				return fmt.Errorf("take back moved output: %w", err)
			}
		}
	}
	return nil
}

// cleanup removes all that a failed or killed job has left of its output. What
// is not this job's stays.
func (t *tree) cleanup() error {
	if err := t.endSetups(); err != nil {
		return fmt.Errorf("clean up: %w", err)
	}
	old := t.beside(".old")
	state, why := t.claimed()
	if state == foreign && !isFatal(why) {
		return fmt.Errorf("clean up: %w", why)
	}
	if state == ours {
		if err := t.takeBack(); err != nil {
			return fmt.Errorf("clean up: %w", err)
		}
		// Another cleanup that is thought lost may be first.
		if err := t.fs.RenameDir(t.temporary(), old); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("clean up: %w", err)
		}
	}
	moved, err := t.exists(old)
	moved = moved || err == nil && state == ours
	if moved {
		err = t.fs.Remove(t.out) // unless somebody has put something there
	}
	if err != nil && !missing(err) && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("clean up: %w", err)
	}
	for _, dir := range []string{old, t.beside(".new")} {
		if err := t.fs.RemoveAll(dir); err != nil {
			return fmt.Errorf("clean up: %w", err)
		}
	}
	return nil
}
