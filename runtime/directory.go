package runtime

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/quernmr/quern/archive"
	"github.com/quernmr/quern/dfs"
)

// Side files that are directories: archives, which attempts get unpacked, and directories. In wire.JobPlan.Files
// their names end with a slash.
//
// The jobs of an owner on a task tracker share a copy of each version:
//
//	<shared>/<version>/files    the copy, complete
//	<shared>/<version>/new      made by an attempt, which renames it; if it was killed, the next one removes this
//	<shared>/<version>/archive  local copy of an archive while it is unpacked
//	<shared>/<version>/lock     locked meanwhile, for which the other attempts wait
//
// The link <attempt>/shared-<name> leads to <shared>. The task tracker makes both, for all jobs of an owner that name the
// same path, and removes <shared> when the last of them has ended. A task tracker of an older version makes none: then
// <shared> is <job>/shared/<name>, and only the attempts of the job on a disk share the copy.
//
// <version> is a hash of the names, sizes and modification times of the files, and of ArchiveMaxBytes. The setup's list of
// side files has the same: if the archive changes, the job fails. An attempt compares them again before it completes a
// copy. A directory on local disks is used in place, unless [Job.CopiesDirectories]. The version of a local archive also
// has its inode and the time of the inode's last change, which programs cannot set: one that was replaced by another of the
// same size, with the same modification time, is unpacked again. The setup's list does not have these, because they differ
// between machines.
const sharedName = "shared"

// SharedLink returns the name of the link to <shared> in the directory of an attempt.
func SharedLink(name string) string { return sharedName + "-" + name }

// lockPoll is how often an attempt looks whether another one has made a directory.
const lockPoll = 50 * time.Millisecond

// IsDirectory reports whether a side file with this name is a directory.
func IsDirectory(name string) bool { return strings.HasSuffix(name, "/") }

// SideName returns what errors call a side file: "archive dict" for a directory, which archives become too.
func SideName(name string) string {
	if base, ok := strings.CutSuffix(name, "/"); ok {
		return fmt.Sprintf("archive %q", base)
	}
	return fmt.Sprintf("side file %q", name)
}

// otherSide returns the name of a directory for that of a file, and the other way round.
func otherSide(name string) string {
	if base, ok := strings.CutSuffix(name, "/"); ok {
		return base
	}
	return name + "/"
}

// Cached is an entry of CacheArchives.
type Cached struct {
	Path string
	Name string // of the link in the working directory
}

// ParseCached parses a list with commas, as Hadoop does: after # follows the name of the link, by default that of
// the file.
func ParseCached(list string) (all []Cached, err error) {
	names := make(map[string]string)
	for _, entry := range strings.Split(list, ",") {
		if entry == "" {
			continue
		}
		c := Cached{Path: entry, Name: path.Base(entry)}
		if i := strings.LastIndex(entry, "#"); i >= 0 {
			c = Cached{Path: entry[:i], Name: entry[i+1:]}
		}
		switch other, taken := names[c.Name]; {
		case c.Name == "" || c.Name == "." || c.Name == ".." || strings.ContainsAny(c.Name, "/\x00"):
			return nil, fmt.Errorf("%s: %q is not a file name", entry, c.Name)
		case taken:
			return nil, fmt.Errorf("%s and %s would both be %s in the working directory: write PATH#NAME", other, entry, c.Name)
		}
		names[c.Name] = entry
		all = append(all, c)
	}
	return all, nil
}

// directoryFiles lists the files of a directory and of all below it, also hidden ones, or an archive.
func directoryFiles(f dfs.FS, name string) ([]dfs.Info, error) {
	infos, err := matches(f, name)
	if err != nil {
		return nil, err
	}
	if len(infos) > 1 {
		return nil, fmt.Errorf("%w: %s matches %d names, want one archive or directory", ErrInput, name, len(infos))
	}
	if !infos[0].Dir {
		if err := archive.Check(infos[0].Name); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrInput, err)
		}
		return infos, nil
	}
	if local, ok := strings.CutPrefix(infos[0].Name, "file://"); ok {
		if err := checkLinks(local); err != nil {
			return nil, err
		}
	}
	files, err := filesOf(f, infos[0], selection{recursive: true, hidden: true}, nil)
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("%w: the directory %s has no files", ErrInput, name)
	}
	return files, err
}

// checkLinks refuses a local directory with a symbolic link that leads out of it, as package archive does.
func checkLinks(dir string) error {
	root, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return inputError(err)
	}
	return filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Type()&fs.ModeSymlink == 0 {
			return err
		}
		target, err := filepath.EvalSymlinks(name)
		if err != nil {
			return fmt.Errorf("%w: follow the symbolic link %s: %w", ErrInput, name, err)
		}
		if below, err := filepath.Rel(root, target); err != nil || !filepath.IsLocal(below) {
			return fmt.Errorf("%w: the symbolic link %s leads out of the directory, to %s", ErrInput, name, target)
		}
		return nil
	})
}

// Directory returns the local path of a side file that is a directory. Its files must not be changed: other attempts
// of the job use them, too.
func (t *Task) Directory(name string) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if dir, ok := t.directories[name]; ok {
		return dir, nil
	}
	dir, err := t.fetchDirectory(name)
	if err != nil {
		return "", fmt.Errorf("%s: %w", SideName(name+"/"), err)
	}
	if t.directories == nil {
		t.directories = make(map[string]string)
	}
	t.directories[name] = dir
	return dir, nil
}

func (t *Task) fetchDirectory(name string) (dir string, err error) {
	files, err := t.openSideFiles(name + "/")
	if err != nil {
		return "", err
	}
	infos, err := matches(t.fs, t.Plan.Files[name+"/"])
	if err != nil {
		return "", err
	}
	source := infos[0]
	if local, ok := strings.CutPrefix(source.Name, "file://"); ok && source.Dir && !t.copied {
		return local, nil
	}
	version, err := t.versionOf(files)
	if err != nil {
		return "", err
	}
	own, err := t.sharedDir(name, version)
	if err != nil {
		return "", err
	}
	dir = filepath.Join(own, "files")
	unlock, err := t.lock(filepath.Join(own, "lock"))
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return dir, err // complete
	}
	made := filepath.Join(own, "new")
	if err := os.RemoveAll(made); err != nil {
		return "", err
	}
	if source.Dir {
		err = t.copyDirectory(source.Name, files, made)
	} else {
		err = t.unpack(source, made, filepath.Join(own, "archive"))
	}
	if errors.Is(err, archive.ErrRefused) {
		err = Fatal(err)
	}
	if err == nil {
		err = t.checkVersion(name, version)
	}
	if err != nil {
		return "", errors.Join(err, os.RemoveAll(made))
	}
	return dir, os.Rename(made, dir)
}

// versionOf names the version of an archive or directory with these files, as a copy of it.
func (t *Task) versionOf(files []dfs.Info) (string, error) {
	limits, err := t.unpackLimits()
	if err != nil {
		return "", err
	}
	h := sha256.New()
	fmt.Fprintln(h, limits.Bytes)
	for _, f := range files {
		fmt.Fprintf(h, "%q %d %d\n", f.Name, f.Size, f.Modified.UnixNano())
		if name, ok := localFile(f.Name); ok {
			change, err := lastChange(name)
			if err != nil {
				return "", err
			}
			fmt.Fprintln(h, change)
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:16]), nil
}

// checkVersion returns an error if a side file has changed since its version was computed: a copy may have parts of
// both, and other jobs would take it for the first one.
func (t *Task) checkVersion(name, version string) error {
	files, err := t.currentSideFiles(name + "/")
	if err != nil {
		return err
	}
	url := t.Plan.Files[name+"/"]
	switch now, err := t.versionOf(files); {
	case err != nil:
		return err
	case now != version && strings.HasPrefix(url, "file://"): // perhaps only its rights: the next attempt will see
		return fmt.Errorf("%s: %w while it was unpacked", url, ErrChanged)
	case now != version:
		return changedError(url)
	}
	return nil
}

// sharedDir returns the directory for the copy of a version, which it makes.
func (t *Task) sharedDir(name, version string) (string, error) {
	own, err := os.Readlink(filepath.Join(t.dir, SharedLink(name)))
	if errors.Is(err, fs.ErrNotExist) {
		own, err = filepath.Join(filepath.Dir(t.dir), sharedName, name), nil
	}
	own = filepath.Join(own, version)
	return own, errors.Join(err, os.MkdirAll(own, 0o777))
}

// lock waits for an exclusive lock. It ends with the process.
func (t *Task) lock(name string) (unlock func() error, err error) {
	for {
		if unlock, err = tryLock(name); unlock != nil || err != nil {
			return unlock, err
		}
		t.pulse.beat() // the attempt with the lock shows activity, or is killed
		select {
		case <-t.Ctx.Done():
			return nil, context.Cause(t.Ctx)
		case <-time.After(lockPoll):
		}
	}
}

// unpackLimits returns the limits of the job.
func (t *Task) unpackLimits() (archive.Limits, error) {
	p := propertyReader{properties: t.Plan.Properties}
	limits := archive.DefaultLimits
	limits.Bytes = p.number(ArchiveMaxBytes, limits.Bytes, 1, math.MaxInt64)
	return limits, p.err
}

// unpack unpacks an archive. One that is not local is first copied to archiveFile, because a zip file is not read from
// its beginning.
func (t *Task) unpack(source dfs.Info, dir, archiveFile string) (err error) {
	limits, err := t.unpackLimits()
	if err != nil {
		return err
	}
	name, ok := localFile(source.Name)
	if !ok {
		name = archiveFile
		defer func() { err = errors.Join(err, os.Remove(name)) }()
		if err := t.copy(name, source); err != nil {
			return err
		}
	}
	in, err := os.Open(name)
	if err != nil {
		return err
	}
	defer in.Close()
	return archive.Unpack(t.Ctx, source.Name, activeReaderAt{in, &t.pulse}, source.Size, dir, limits)
}

// activeReaderAt signals activity with every read.
type activeReaderAt struct {
	*os.File
	pulse *pulse
}

func (a activeReaderAt) ReadAt(p []byte, at int64) (int, error) {
	a.pulse.beat()
	return a.File.ReadAt(p, at)
}

// copyDirectory copies the files of a directory. Local ones keep their permissions.
func (t *Task) copyDirectory(source string, files []dfs.Info, dir string) error {
	limits, err := t.unpackLimits()
	if err != nil {
		return err
	}
	if len(files) > limits.Entries {
		return fmt.Errorf("%w: %s has %d files, at most %d are allowed", archive.ErrRefused, source, len(files), limits.Entries)
	}
	for _, file := range files {
		name, ok := strings.CutPrefix(file.Name, strings.TrimSuffix(source, "/")+"/")
		if !ok || !filepath.IsLocal(filepath.FromSlash(name)) {
			return Fatal(fmt.Errorf("%s is not below %s", file.Name, source))
		}
		if limits.Bytes -= file.Size; limits.Bytes < 0 {
			return fmt.Errorf("%w: %s has more bytes than %s allows", archive.ErrRefused, source, ArchiveMaxBytes)
		}
		to := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
			return err
		}
		local, ok := localFile(file.Name)
		if !ok {
			err = t.copy(to, file)
		} else if info, wrong := os.Stat(local); wrong != nil {
			err = wrong
		} else if !info.Mode().IsRegular() { // a pipe would be read forever
			err = Fatal(fmt.Errorf("%s is not a regular file", local))
		} else {
			err = errors.Join(t.copy(to, file), os.Chmod(to, info.Mode().Perm()))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// linkArchives links the directories of CacheArchives into the working directory. A process with several attempts
// at once has no working directory of an attempt: there only Task.Directory finds them.
func (t *Task) linkArchives() error {
	all, err := ParseCached(t.Property(CacheArchives))
	if err != nil {
		return Fatal(fmt.Errorf("property %s: %w", CacheArchives, err))
	}
	for _, c := range all {
		if err := t.LinkDirectory(c.Name); err != nil {
			return err
		}
	}
	return nil
}

// LinkDirectory links a side file that is a directory into the working directory, if it is not there yet.
func (t *Task) LinkDirectory(name string) error {
	dir, err := t.Directory(name)
	if err != nil {
		return err
	}
	if err := os.Symlink(dir, filepath.Join(t.work, name)); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}
