// Package failingfile is for tests of readers of files.
package failingfile

import "io"

// File fails reads beyond an offset.
type File struct {
	io.ReaderAt
	Good int64
	Err  error
}

func (f File) ReadAt(p []byte, off int64) (int, error) {
	if off+int64(len(p)) > f.Good {
		return 0, f.Err
	}
	return f.ReaderAt.ReadAt(p, off)
}
