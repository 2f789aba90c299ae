package datadir

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// A job can take all rights from a directory that it makes, also from the daemon if that is the same user, and can nest more
// directories than the daemon can have open. Both would keep its files on the disk, and the daemon from starting.

// RemoveAll removes a file or tree below a root, whatever a job has done to its directories. A missing file is no error.
func RemoveAll(root *os.Root, name string) error {
	err := root.RemoveAll(name)
	if err == nil {
		return nil
	}
	for i, c := range name {
		if c == '/' {
			_ = Permit(root, name[:i]) // Lstat tells
		}
	}
	info, lstatErr := root.Lstat(name)
	if errors.Is(lstatErr, fs.ErrNotExist) {
		return nil
	}
	if lstatErr != nil || !info.IsDir() || Permit(root, name) != nil {
		return err
	}
	dir, openErr := root.OpenRoot(name)
	if openErr != nil {
		return err
	}
	defer dir.Close()
	return errors.Join(empty(dir), root.Remove(name))
}

// Permit gives the rights that the owner of a directory usually has back to it. It does nothing to other files.
func Permit(root *os.Root, name string) error {
	const usual = 0o700
	info, err := root.Lstat(name)
	if err != nil || !info.IsDir() || info.Mode().Perm()&usual == usual {
		return err
	}
	return root.Chmod(name, info.Mode().Perm()|usual)
}

// empty removes all in a directory. It moves inner directories up into it, so that few are open at a time.
func empty(dir *os.Root) error {
	moved := 0
	for {
		entries, err := some(dir, ".")
		if len(entries) == 0 || err != nil {
			return err
		}
		removed, failed := 0, error(nil)
		for _, e := range entries {
			if err := lift(dir, e, &moved); err == nil {
				removed++
			} else if failed == nil {
				failed = err
			}
		}
		if removed == 0 {
			return failed
		}
	}
}

// lift removes an entry of a directory, and moves the directories in it into the directory itself.
func lift(dir *os.Root, e fs.DirEntry, moved *int) error {
	err := remove(dir, e.Name())
	if err == nil || !e.IsDir() {
		return err
	}
	for {
		entries, err := some(dir, e.Name())
		if err != nil {
			return err
		}
		if len(entries) == 0 {
			return remove(dir, e.Name())
		}
		for _, inner := range entries {
			name := e.Name() + "/" + inner.Name()
			err := remove(dir, name)
			if err != nil && inner.IsDir() {
				err = errors.Join(Permit(dir, name), dir.Rename(name, unused(dir, moved))) // the rename changes it, too
			}
			if err != nil {
				return err
			}
		}
	}
}

// unused returns a name that a directory does not have.
func unused(dir *os.Root, n *int) string {
	for {
		*n++
		name := fmt.Sprint("removed-", *n)
		if _, err := dir.Lstat(name); err != nil {
			return name
		}
	}
}

// remove removes a file or an empty directory; a missing one is no error.
func remove(dir *os.Root, name string) error {
	if err := dir.Remove(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// batch is the number of entries that are read at a time.
const batch = 1 << 10

// some returns some entries of a directory; none: it is empty.
func some(dir *os.Root, name string) ([]fs.DirEntry, error) {
	if err := Permit(dir, name); err != nil {
		return nil, err
	}
	f, err := dir.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	entries, err := f.ReadDir(batch)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return entries, err
}
