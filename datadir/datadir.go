// Package datadir opens the directory where a daemon keeps its files. It removes only
// files that the daemon made.
//
// # Safe directories
//
// No user but root and the user of this process may be able to replace the directory,
// or to write into it:
//
//   - Every directory above it belongs to root or to this user. Other users cannot
//     write to it, unless it is sticky, as /tmp is.
//   - The directory itself belongs to this user, and other users cannot write to it.
//   - Its path has no symbolic link, except for links above the directory that only root
//     can make and change: /tmp is such a link on some systems.
//
// Below a directory of this user that others cannot enter, modes are not checked.
// Missing directories are made with mode 0700. The path is checked from the top down, so
// no other user can replace a directory after its check.
//
// # Contents
//
// The marker is an empty file with a name of the [Layout]. It says that a daemon of this
// kind made the directory. Only the lock is made before it.
//
// Open accepts a directory without a marker in two cases, and refuses any other:
//
//   - It is empty, except for lost+found.
//   - An older build made it, without a marker: it has an empty file lock, and all other
//     names are in the layout.
//
// In a directory with the marker, files with other names are never changed.
//
// A marker that is not empty is refused: a later build that uses the directory in another
// way must write into its marker.
//
// A file with a name of the layout is refused if it is a link, has the wrong type, or belongs
// to another user.
package datadir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// Layout has the names of the files that a daemon of one kind makes in its directory.
type Layout struct {
	Daemon string   // name in errors, like "task tracker"
	Marker string   // file name of the marker, one of Markers
	Dirs   []string // names of directories, as patterns of [path.Match]
	Files  []string // names of files, also as patterns
}

// Markers of the daemons. Jobs in namespaces see no directory with one of them.
const (
	JobTracker  = "quern-jobtracker"
	TaskTracker = "quern-tasktracker"
	Embedded    = "quern-embedded"
)

// Markers returns the markers of all daemons.
func Markers() []string { return []string{JobTracker, TaskTracker, Embedded} }

// LockName is the name of the lock file. The file stays when the directory is closed.
const LockName = "lock"

// newLock is the name of a new lock file until it is locked.
const newLock = ".lock"

// ErrInUse reports a directory that another process has open.
var ErrInUse = errors.New("it is in use by another process")

// Dir is an open directory. Until it is closed, or the process dies, no other process
// can open it.
type Dir struct {
	path   string
	layout Layout
	root   *os.Root
	lock   *os.File
}

// Make makes a directory if it is missing, and checks its path as Open does. It is for a
// directory that several processes share, and in which each opens its own.
func Make(dir string) error {
	_, err := checkPath(filepath.Clean(dir), true)
	if err != nil {
		err = fmt.Errorf("use directory %s: %w", dir, err)
	}
	return err
}

// Open opens the directory, and makes it if it is missing.
func Open(dir string, layout Layout) (*Dir, error) { return open(dir, layout, true) }

// Reopen opens an existing directory.
func Reopen(dir string, layout Layout) (*Dir, error) { return open(dir, layout, false) }

func open(dir string, layout Layout, create bool) (_ *Dir, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("open data directory %s: %w", dir, err)
		}
	}()
	info, err := checkPath(dir, create)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	d := &Dir{path: filepath.Clean(dir), layout: layout, root: root}
	defer func() {
		if err != nil {
			d.Close()
		}
	}()
	if opened, err := root.Lstat("."); err != nil || !os.SameFile(info, opened) {
		return nil, errors.Join(refusal("another directory replaced it during the check"), err)
	}
	if err := d.checkNames(); err != nil {
		return nil, err
	}
	if err := d.acquireLock(); err != nil {
		return nil, err
	}
	return d, d.makeMarker()
}

// Path returns the directory's path.
func (d *Dir) Path() string { return d.path }

// Root opens files by their names in the directory. No name can lead out of the directory.
func (d *Dir) Root() *os.Root { return d.root }

// Remove removes a file or tree by its path in the directory. A missing file is no error.
// The first element of the path must be in the layout.
func (d *Dir) Remove(name string) error {
	name = filepath.Clean(name)
	if top, _, _ := strings.Cut(filepath.ToSlash(name), "/"); !d.layout.contains(top) {
		return refusal(fmt.Sprintf("remove %s: no %s has made it", filepath.Join(d.path, name), d.layout.Daemon))
	}
	return RemoveAll(d.root, name)
}

// Destroy removes all files of the layout, closes the directory, and removes it if it is
// empty. It removes the lock last: if this process dies before, another process can find
// the directory and remove the rest.
func (d *Dir) Destroy() error {
	defer d.Close()
	entries, err := d.entries()
	for _, e := range entries {
		if e.Name() != LockName && e.Name() != d.layout.Marker && d.layout.contains(e.Name()) {
			err = errors.Join(err, RemoveAll(d.root, e.Name()))
		}
	}
	if err != nil {
		return err
	}
	if err := errors.Join(d.root.RemoveAll(d.layout.Marker), d.root.RemoveAll(LockName)); err != nil {
		return err
	}
	return os.Remove(d.path)
}

// Close unlocks the directory for other processes.
func (d *Dir) Close() error {
	var err error
	if d.lock != nil {
		err = d.lock.Close()
	}
	return errors.Join(err, d.root.Close())
}

func (d *Dir) entries() ([]fs.DirEntry, error) {
	f, err := d.root.Open(".")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.ReadDir(-1)
}

// checkNames refuses a directory that no daemon of this kind made.
func (d *Dir) checkNames() error {
	entries, err := d.entries()
	if err != nil {
		return err
	}
	var foreign []string
	var wrong error // reason to refuse a file of the layout
	hasMarker, hasLock := false, false
	for _, e := range entries {
		name := e.Name()
		if name == "lost+found" { // every new ext4 file system has it
			continue
		}
		want, inLayout := d.layout.fileType(name)
		if !inLayout {
			foreign = append(foreign, name)
			continue
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // another process removed it
		}
		if err != nil {
			return err
		}
		if info.Mode().Type() != want || !trusted(info) {
			wrong = refusal(fmt.Sprintf("%s in it is %s of user %d, and must be %s of root or of this process's user, %d: move it away",
				name, typeText(info.Mode()), owner(info), typeText(want), os.Geteuid()))
		}
		if name == d.layout.Marker && info.Mode().IsRegular() && info.Size() > 0 {
			return refusal(fmt.Sprintf("%s in it is not empty: a later build of the %s uses the directory in another way; start that build, or name a new or an empty directory", name, d.layout.Daemon))
		}
		hasMarker = hasMarker || name == d.layout.Marker
		hasLock = hasLock || name == LockName && info.Size() == 0
	}
	slices.Sort(foreign)
	other := slices.IndexFunc(foreign, func(name string) bool { return slices.Contains(markers, name) })
	switch {
	case !hasMarker && other >= 0: // before wrong: both layouts may have a name, with different types
		return refusal(fmt.Sprintf("it has the file %s of another kind of daemon: name a new or an empty directory", foreign[other]))
	case !hasMarker && len(foreign) > 0:
		return d.refuseUnmarked(fmt.Sprintf("it has no file %s", d.layout.Marker), fmt.Sprintf("move these files out of it: %s", shorten(foreign)))
	case wrong != nil:
		return wrong
	case hasMarker:
	case len(entries) > 0 && !hasLock && slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() != "lost+found" && e.Name() != newLock }):
		return d.refuseUnmarked(fmt.Sprintf("it is not empty, and has neither a file %s nor an empty file %s", d.layout.Marker, LockName),
			fmt.Sprintf("make an empty file %s in it", LockName))
	}
	return nil
}

// markers are the markers of all kinds of daemons, and of embedded clusters.
var markers = []string{"quern-jobtracker", "quern-tasktracker", "quern-embedded"}

// refuseUnmarked refuses a directory that no daemon seems to have made. The argument
// olderHint says how to use a directory of a build without markers. It agrees with
// docs/running-a-cluster.md.
func (d *Dir) refuseUnmarked(why, olderHint string) error {
	return refusal(fmt.Sprintf("%s, so it is probably not the directory of a %s, which would remove files in it: name a new or an empty directory; if a %[2]s of an older build has used this one, %[3]s",
		why, d.layout.Daemon, olderHint))
}

func shorten(names []string) string {
	const limit = 3
	if len(names) > limit {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:limit], ", "), len(names)-limit)
	}
	return strings.Join(names, ", ")
}

// fileType returns the type that a file with this name must have; false: it is not in the layout.
func (l *Layout) fileType(name string) (fs.FileMode, bool) {
	is := func(pattern string) bool {
		ok, err := path.Match(pattern, name)
		return ok && err == nil
	}
	switch {
	case name == l.Marker, name == LockName, name == newLock, slices.ContainsFunc(l.Files, is):
		return 0, true
	case slices.ContainsFunc(l.Dirs, is):
		return fs.ModeDir, true
	}
	return 0, false
}

func (l *Layout) contains(name string) bool {
	_, inLayout := l.fileType(name)
	return inLayout
}

// acquireLock locks the directory. A new lock file gets the name LockName only after it is
// locked. So if LockName is unlocked, the process that made it is dead.
func (d *Dir) acquireLock() error {
	for {
		lock, err := d.root.OpenFile(LockName, os.O_RDWR, 0)
		made := errors.Is(err, fs.ErrNotExist)
		if made {
			lock, err = d.root.OpenFile(newLock, os.O_RDWR|os.O_CREATE, 0o600)
		}
		if err != nil {
			return err
		}
		if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
			lock.Close()
			if errors.Is(err, syscall.EWOULDBLOCK) {
				return ErrInUse
			}
			return fmt.Errorf("lock it: %w", err)
		}
		if !made {
			d.lock = lock
			return nil
		}
		err = d.root.Link(newLock, LockName)
		if errors.Is(err, fs.ErrExist) { // another process locked it first
			lock.Close()
			continue
		}
		if err = errors.Join(err, d.root.RemoveAll(newLock)); err != nil {
			lock.Close()
			return err
		}
		d.lock = lock
		return nil
	}
}

func (d *Dir) makeMarker() error {
	f, err := d.root.OpenFile(d.layout.Marker, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}
