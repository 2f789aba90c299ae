//go:build !linux

package program

import (
	"errors"
	"os"
	"path/filepath"
)

// executable is a copy of an executable in a file: descriptors cannot be executed on this system.
type executable struct {
	file *os.File
	name string
}

func executesMemfds(func(*os.File) bool) bool { return false }

// newCopy returns an empty copy.
func newCopy(dir, as string, _ bool) (executable, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return executable{}, err
	}
	name := filepath.Join(dir, as+".part")
	if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
		return executable{}, err
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o500)
	return executable{file: f, name: name}, err
}

// seal ends the writing, and opens the copy for reading.
func (e *executable) seal() error {
	complete := e.name[:len(e.name)-len(".part")]
	if err := errors.Join(e.file.Close(), os.Rename(e.name, complete)); err != nil {
		return err
	}
	f, err := os.Open(complete)
	e.file, e.name = f, complete
	return err
}

// open returns the name of the copy.
func (e *executable) open() (f *os.File, name string, err error) { return nil, e.name, nil }

// remove removes the copy.
func (e *executable) remove() error { return errors.Join(e.file.Close(), os.Remove(e.name)) }
