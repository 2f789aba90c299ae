// Package datadir opens the directory in which a daemon keeps its files, and
// removes from it what the daemon has made, and nothing else.
//
// # Which directory is taken
//
// Nobody but root and this process's user may be able to put another directory in
// its place, or something into it:
//
//   - Every directory above it belongs to root or to this user, and others cannot
//     write to it, unless it is sticky, as /tmp is.
//   - The directory itself belongs to this user, and others cannot write to it.
//   - No part of its path is a symbolic link. Links that only root can have made and
//     can change are followed above it: /tmp is one on some systems.
//
// Below a directory of this user that others cannot enter, modes are not looked at.
// What is missing is made with mode 0700. The path is looked at from the top down, so
// no other user can exchange what was found to be good.
//
// # What is in it
//
// A marker, an empty file named by the [Layout], says that a daemon of this kind has
// made the directory. It is the first thing in it but for the lock. A directory
// without it is taken if it is empty, but for lost+found, or if it looks like one of a
// build that made no marker: an empty file lock, and nothing else but names of the
// layout. Any other is refused. In a directory with the marker names beyond the layout
// are let alone, always.
//
// A marker that is not empty is refused: a later build that uses the directory in another
// way writes that into it.
//
// A name of the layout that is a link, or a file where there should be a directory, or
// another user's, is refused.
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

// Layout is what a kind of daemon makes at the top of its directory.
type Layout struct {
	Daemon string   // what it is called in errors: "task tracker"
	Marker string   // name of the marker, quern-…
	Dirs   []string // patterns of [path.Match]
	Files  []string // likewise
}

// LockName is a file in every directory that is open or was.
const LockName = "lock"

// newLock is a lock that is not held yet.
const newLock = ".lock"

// ErrInUse is a directory that another process has open.
var ErrInUse = errors.New("it is in use by another process")

// Dir is an open directory. Until it is closed, or the process dies, no other process
// can open it.
type Dir struct {
	path   string
	layout Layout
	root   *os.Root
	lock   *os.File
}

// Make makes a directory that may be open to other users of this package, if need be,
// and looks at it and at all above it as Open does.
func Make(dir string) error {
	_, err := checkPath(filepath.Clean(dir), true)
	if err != nil {
		err = fmt.Errorf("use directory %s: %w", dir, err)
	}
	return err
}

// Open makes the directory, if need be, and opens it.
func Open(dir string, layout Layout) (*Dir, error) { return open(dir, layout, true) }

// Reopen opens a directory that is there.
func Reopen(dir string, layout Layout) (*Dir, error) { return open(dir, layout, false) }

func open(dir string, layout Layout, missing bool) (_ *Dir, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("open data directory %s: %w", dir, err)
		}
	}()
	info, err := checkPath(dir, missing)
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
		return nil, errors.Join(refusal("it was exchanged just now"), err)
	}
	if err := d.checkNames(); err != nil {
		return nil, err
	}
	if err := d.take(); err != nil {
		return nil, err
	}
	return d, d.mark()
}

// Path is the directory's path.
func (d *Dir) Path() string { return d.path }

// Root is the directory, for work by names in it: none leads out of it.
func (d *Dir) Root() *os.Root { return d.root }

// Remove removes a file or tree by its path in the directory. A missing one is no
// error; one that is not of the layout is.
func (d *Dir) Remove(name string) error {
	name = filepath.Clean(name)
	if top, _, _ := strings.Cut(filepath.ToSlash(name), "/"); !d.layout.has(top) {
		return refusal(fmt.Sprintf("remove %s: no %s has made it", filepath.Join(d.path, name), d.layout.Daemon))
	}
	return d.root.RemoveAll(name)
}

// Destroy removes all that the daemon has made and closes the directory, which goes
// if nothing else is in it. The lock is the last thing to go, so that what could not be
// removed now is found by another process.
func (d *Dir) Destroy() error {
	defer d.Close()
	entries, err := d.entries()
	for _, e := range entries {
		if e.Name() != LockName && e.Name() != d.layout.Marker && d.layout.has(e.Name()) {
			err = errors.Join(err, d.root.RemoveAll(e.Name()))
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

// Close lets others open the directory.
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

// checkNames refuses a directory that no daemon of this kind has made.
func (d *Dir) checkNames() error {
	entries, err := d.entries()
	if err != nil {
		return err
	}
	var foreign []string
	var wrong error // of a name that is the daemon's
	marked, locked := false, false
	for _, e := range entries {
		name := e.Name()
		if name == "lost+found" { // of a file system
			continue
		}
		want, known := d.layout.kind(name)
		if !known {
			foreign = append(foreign, name)
			continue
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // another process uses the directory
		}
		if err != nil {
			return err
		}
		if info.Mode().Type() != want || !trusted(info) {
			wrong = refusal(fmt.Sprintf("%s in it is %s of user %d, and must be %s of root or of this process's user, %d: move it away",
				name, kindText(info.Mode()), owner(info), kindText(want), os.Geteuid()))
		}
		if name == d.layout.Marker && info.Mode().IsRegular() && info.Size() > 0 {
			return refusal(fmt.Sprintf("%s in it is not empty: a later build of the %s uses the directory in another way; start that build, or name a new or an empty directory", name, d.layout.Daemon))
		}
		marked = marked || name == d.layout.Marker
		locked = locked || name == LockName && info.Size() == 0
	}
	slices.Sort(foreign)
	other := slices.IndexFunc(foreign, func(name string) bool { return slices.Contains(markers, name) })
	switch {
	case !marked && other >= 0: // before what is wrong with names that both use
		return refusal(fmt.Sprintf("%s is in it: another kind of daemon has made it; name a new or an empty directory", foreign[other]))
	case !marked && len(foreign) > 0:
		return d.notMade(fmt.Sprintf("it has no file %s", d.layout.Marker), fmt.Sprintf("move out of it what no %s makes: %s", d.layout.Daemon, shorten(foreign)))
	case wrong != nil:
		return wrong
	case marked:
	case len(entries) > 0 && !locked && slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() != "lost+found" && e.Name() != newLock }):
		return d.notMade(fmt.Sprintf("it is not empty, and has neither a file %s nor an empty file %s", d.layout.Marker, LockName),
			fmt.Sprintf("make an empty file %s in it", LockName))
	}
	return nil
}

// markers are those of all kinds of daemons, and of embedded clusters.
var markers = []string{"quern-jobtracker", "quern-tasktracker", "quern-embedded"}

// notMade refuses a directory that no daemon seems to have made. Older is what to do with
// one that a build without markers has made, as in docs/running-a-cluster.md.
func (d *Dir) notMade(why, older string) error {
	return refusal(fmt.Sprintf("%s, so no %s seems to have made it, and what is in it could be lost: name a new or an empty directory; if a %[2]s of an older build has used this one, %[3]s",
		why, d.layout.Daemon, older))
}

func shorten(names []string) string {
	const most = 3
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

// kind is what a name of the layout should be.
func (l *Layout) kind(name string) (fs.FileMode, bool) {
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

func (l *Layout) has(name string) bool {
	_, known := l.kind(name)
	return known
}

// take locks the directory. The lock gets its name when it is held: a process that finds it
// free knows that its holder is dead.
func (d *Dir) take() error {
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
		if errors.Is(err, fs.ErrExist) { // another process was quicker
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

func (d *Dir) mark() error {
	f, err := d.root.OpenFile(d.layout.Marker, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}
