package shuffle

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// errNotRegular is the error of a file that is no regular file, such as a pipe.
var errNotRegular = errors.New("not a regular file")

// OpenFile opens a regular file of a job for reading. A job can write in its directory, which has the directory of
// the file, and put links and pipes there. A link that leads out of the job's directory is refused.
func OpenFile(name string) (*os.File, error) {
	return openInJob(name, os.O_RDONLY)
}

// CreateFile makes or truncates a regular file of a job, see [OpenFile].
func CreateFile(name string) (*os.File, error) {
	return openInJob(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC)
}

func openInJob(name string, flags int) (*os.File, error) {
	dir := filepath.Dir(name)
	job, err := os.OpenRoot(filepath.Dir(dir))
	if err != nil {
		return nil, err
	}
	defer job.Close()
	// Without O_NONBLOCK, opening a pipe would wait for its other end.
	f, err := job.OpenFile(filepath.Join(filepath.Base(dir), filepath.Base(name)), flags|syscall.O_NONBLOCK, 0o666)
	if path, ok := errors.AsType[*os.PathError](err); ok {
		path.Path = name
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("open %s: %w", name, errNotRegular)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
