package tasktracker

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
)

// capture takes what comes through a pipe into a log, for as long as anything has the
// pipe open: a writer never waits long, and never for room.
type capture struct {
	from   *os.File
	raw    syscall.RawConn
	failed func(error) // is told once why the log is not written any more; nil: nothing is

	mu   sync.Mutex
	log  *logWriter
	bad  bool // the log is not written any more
	full bool // since it could not be
}

const captureBuffer = 32 << 10

// buffers are what captures read into: most wait, and then need none.
var buffers = sync.Pool{New: func() any { return new([captureBuffer]byte) }}

// captureTo makes a capture into a file.
func captureTo(from *os.File, name string, most int64, failed func(error)) (*capture, error) {
	raw, err := from.SyscallConn()
	if err != nil {
		from.Close()
		return nil, err
	}
	log, err := newLogWriter(name, most)
	if err != nil {
		from.Close()
		return nil, err
	}
	return &capture{from: from, raw: raw, log: log, failed: failed}, nil
}

// run takes what comes until no writer is left, or until stop.
func (c *capture) run() {
	for ended := false; !ended; {
		if err := c.raw.Read(func(fd uintptr) (done bool) { done, ended = c.take(fd); return done }); err != nil {
			ended = true
		}
	}
	c.from.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.log.Close()
	c.bad = true
}

// take moves what is there to the log; not done: nothing is, yet.
func (c *capture) take(fd uintptr) (done, ended bool) {
	buf := buffers.Get().(*[captureBuffer]byte)
	defer buffers.Put(buf)
	c.mu.Lock()
	defer c.mu.Unlock()
	n, err := syscall.Read(int(fd), buf[:])
	switch {
	case errors.Is(err, syscall.EINTR):
		return true, false
	case errors.Is(err, syscall.EAGAIN):
		return false, false
	case err != nil || n == 0:
		return true, true
	case c.bad:
		return true, false
	}
	if _, err := c.log.Write(buf[:n]); err != nil {
		c.bad, c.full = true, true
		if c.failed != nil && !errors.Is(err, fs.ErrNotExist) { // else it was removed with its job
			c.failed(err)
		}
		c.log.shrink()
	}
	return true, false
}

// drainReads bounds what drain takes: more than any pipe holds.
const drainReads = 1 << 20 / captureBuffer

// drain takes what has come so far.
func (c *capture) drain() {
	_ = c.raw.Control(func(fd uintptr) { // a closed pipe has nothing
		for range drainReads {
			if done, ended := c.take(fd); !done || ended {
				return
			}
		}
	})
}

func (c *capture) isFull() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.full
}

// shrink makes room where another log of the attempt found none.
func (c *capture) shrink() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bad = true
	c.log.shrink()
}

// stop takes no more, even if processes still write.
func (c *capture) stop() { c.from.Close() }

// attemptLogs are the pipes of an attempt, which are found by name in a directory.
type attemptLogs struct {
	dir      string
	writers  []*os.File // our own ends, by name: without a writer a pipe would be at its end
	captures []*capture
}

// newAttemptLogs makes the pipes, whose other ends are the attempt's logs.
func newAttemptLogs(dir, logs string, most int64, failed func(error)) (_ *attemptLogs, err error) {
	a := &attemptLogs{dir: dir}
	defer func() {
		if err != nil {
			a.end()
			err = fmt.Errorf("make pipes of the attempt's logs: %w", err)
		}
	}()
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return a, err
	}
	for _, name := range []string{"stdout", "stderr"} {
		pipe := filepath.Join(dir, name)
		if err := syscall.Mkfifo(pipe, 0o600); err != nil {
			return a, err
		}
		from, err := os.OpenFile(pipe, os.O_RDONLY|syscall.O_NONBLOCK, 0)
		if err != nil {
			return a, err
		}
		writer, err := os.OpenFile(pipe, os.O_WRONLY|syscall.O_NONBLOCK, 0)
		if err != nil {
			from.Close()
			return a, err
		}
		a.writers = append(a.writers, writer)
		c, err := captureTo(from, filepath.Join(logs, name), most/2, failed)
		if err != nil {
			return a, err
		}
		a.captures = append(a.captures, c)
	}
	return a, nil
}

func (a *attemptLogs) drain() {
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

// end takes the pipes' names away: they end with those that have them open.
func (a *attemptLogs) end() {
	if a == nil {
		return
	}
	for _, w := range a.writers {
		w.Close()
		_ = os.Remove(w.Name()) // if it stays, the next one finds out
	}
}
