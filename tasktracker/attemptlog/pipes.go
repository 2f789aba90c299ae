package attemptlog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

// streamNames are the file names of an attempt's logs.
var streamNames = []string{"stdout", "stderr"}

// pipes are the named pipes for the logs of a worker's attempts, one attempt at a time.
type pipes struct {
	dir      string
	captures []*capture // in the order of streamNames
}

// newPipes makes the pipes in a directory.
func newPipes(dir string) (_ *pipes, err error) {
	a := &pipes{dir: dir}
	defer func() {
		if err != nil {
			a.release()
			err = fmt.Errorf("make pipes for attempts' logs: %w", err)
		}
	}()
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	if err := giveToOwner(dir); err != nil {
		return nil, err
	}
	for _, name := range streamNames {
		pipe := filepath.Join(dir, name)
		if err := syscall.Mkfifo(pipe, 0o600); err != nil {
			return nil, err
		}
		if err := giveToOwner(pipe); err != nil {
			return nil, err
		}
		from, err := os.OpenFile(pipe, os.O_RDONLY|syscall.O_NONBLOCK, 0)
		if err != nil {
			return nil, err
		}
		c, err := newCapture(from)
		if err != nil {
			return nil, err
		}
		a.captures = append(a.captures, c)
	}
	return a, nil
}

// giveToOwner gives a new file to the owner of its directory, as which the worker runs. The worker cannot write there.
func giveToOwner(name string) error {
	info, err := os.Stat(filepath.Dir(name))
	if err != nil {
		return err
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); ok && os.Geteuid() == 0 && owner.Uid != 0 {
		return os.Lchown(name, int(owner.Uid), int(owner.Gid))
	}
	return nil
}

// switchTo continues with the logs of another attempt.
func (a *pipes) switchTo(logs string, limit int64, onError func(error)) error {
	for i, c := range a.captures {
		if err := c.switchTo(filepath.Join(logs, streamNames[i]), limit/2, onError); err != nil {
			return fmt.Errorf("make the attempt's logs: %w", err)
		}
	}
	return nil
}

// reusable reports whether the next attempt can use the pipes: no process has them open.
func (a *pipes) reusable() bool {
	return a != nil && !slices.ContainsFunc(a.captures, func(c *capture) bool { return !c.hasNoWriters() })
}

func (a *pipes) drain() {
	if a == nil {
		return
	}
	for _, c := range a.captures {
		c.drain()
	}
	if slices.ContainsFunc(a.captures, (*capture).hasWriteFailed) {
		for _, c := range a.captures {
			c.shrink()
		}
	}
}

// release removes the pipes' files, and ends each capture when no process has its pipe open.
func (a *pipes) release() {
	if a == nil {
		return
	}
	for _, name := range streamNames {
		_ = os.Remove(filepath.Join(a.dir, name)) // if it stays, the next newPipes fails
	}
	for _, c := range a.captures {
		c.release()
	}
}
