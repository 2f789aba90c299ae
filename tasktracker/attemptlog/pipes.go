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

// streamNames are the files of an attempt's logs.
var streamNames = []string{"stdout", "stderr"}

// pipes are the pipes into the logs of a worker's attempts, one attempt at a time.
// Workers find them by their names in a directory.
type pipes struct {
	dir      string
	captures []*capture // as streamNames
}

// newPipes makes the pipes.
func newPipes(dir string) (_ *pipes, err error) {
	a := &pipes{dir: dir}
	defer func() {
		if err != nil {
			a.release()
			err = fmt.Errorf("make pipes of attempts' logs: %w", err)
		}
	}()
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	for _, name := range streamNames {
		pipe := filepath.Join(dir, name)
		if err := syscall.Mkfifo(pipe, 0o600); err != nil {
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

// switchTo has what comes from now on taken into the logs of another attempt.
func (a *pipes) switchTo(logs string, most int64, failed func(error)) error {
	for i, c := range a.captures {
		if err := c.switchTo(filepath.Join(logs, streamNames[i]), most/2, failed); err != nil {
			return fmt.Errorf("make the attempt's logs: %w", err)
		}
	}
	return nil
}

// areFree says whether the pipes can serve another attempt: no process of the last one
// has them open.
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
	if slices.ContainsFunc(a.captures, (*capture).isFull) {
		for _, c := range a.captures {
			c.shrink()
		}
	}
}

// retire leaves the pipes to the processes that have them open, and takes their names
// away.
func (a *pipes) release() {
	if a == nil {
		return
	}
	for _, name := range streamNames {
		_ = os.Remove(filepath.Join(a.dir, name)) // if it stays, the next one finds out
	}
	for _, c := range a.captures {
		c.release()
	}
}
