package shuffle

import (
	"errors"
	"fmt"
	"io/fs"
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

// CreateFile makes or truncates a regular file of a job, see [OpenFile]. It belongs to the owner of the job's directory.
func CreateFile(name string) (*os.File, error) {
	return openInJob(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC)
}

// ReplaceFile replaces a regular file of a job, completely or not at all, see [OpenFile].
func ReplaceFile(name string, content []byte) error {
	f, err := CreateFile(name + ".new")
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return inJob(name, func(job *os.Root, file string) error { return job.Rename(file+".new", file) })
}

// removeFile removes a file of a job, see [OpenFile].
func removeFile(name string) error {
	return inJob(name, (*os.Root).Remove)
}

// MakeDir makes a directory in a job's directory, and the directories above it. The job may have put links there: one
// that leads out of its directory is refused. New directories belong to the owner of the job's directory.
func MakeDir(job, name string) error {
	if err := os.MkdirAll(job, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(job)
	if err != nil {
		return err
	}
	defer root.Close()
	for i, c := range name + "/" {
		if c != '/' {
			continue
		}
		err := root.Mkdir(name[:i], 0o755)
		if err == nil {
			err = giveToOwner(root, name[:i])
		}
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	if info, err := root.Stat(name); err != nil || !info.IsDir() {
		return errors.Join(err, fmt.Errorf("the job has replaced its directory %s", filepath.Join(job, name)))
	}
	return nil
}

// inJob calls do with the job's directory, and the path of a file there.
func inJob(name string, do func(job *os.Root, file string) error) error {
	dir := filepath.Dir(name)
	job, err := os.OpenRoot(filepath.Dir(dir))
	if err != nil {
		return err
	}
	defer job.Close()
	return do(job, filepath.Join(filepath.Base(dir), filepath.Base(name)))
}

func openInJob(name string, flags int) (f *os.File, err error) {
	err = inJob(name, func(job *os.Root, file string) error {
		// Without O_NONBLOCK, opening a pipe would wait for its other end.
		if f, err = job.OpenFile(file, flags|syscall.O_NONBLOCK, 0o666); err == nil && flags&os.O_CREATE != 0 {
			err = giveToOwner(job, file)
		}
		return err
	})
	if path, ok := errors.AsType[*os.PathError](err); ok {
		path.Path = name
	}
	if err != nil {
		if f != nil {
			err = errors.Join(err, f.Close())
		}
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
