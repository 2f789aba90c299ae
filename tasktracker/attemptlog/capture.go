package attemptlog

import (
	"errors"
	"io/fs"
	"os"
	"sync"
	"syscall"
)

// capture takes what comes through a pipe into a log. A writer never waits long, and never
// for room.
type capture struct {
	from *os.File
	raw  syscall.RawConn

	mu        sync.Mutex
	log       *writer
	failed    func(error) // is told once why the log is not written any more; nil: nothing is
	stopped   bool        // the log is not written any more
	full      bool        // since it could not be
	noWriters bool        // when last read, no process had the pipe open to write
	closing   bool        // when no process has
}

const captureBuffer = 32 << 10

// buffers are what captures read into: most wait, and then need none.
var buffers = sync.Pool{New: func() any { return new([captureBuffer]byte) }}

// captureTo makes a capture into a file, which ends when nothing has the pipe open.
func captureTo(from *os.File, name string, most int64, failed func(error)) (*capture, error) {
	c, err := newCapture(from)
	if err != nil {
		return nil, err
	}
	if err := c.switchTo(name, most, failed); err != nil {
		from.Close()
		return nil, err
	}
	c.closing = true
	return c, nil
}

// newCapture makes a capture that has no log yet.
func newCapture(from *os.File) (*capture, error) {
	raw, err := from.SyscallConn()
	if err != nil {
		from.Close()
		return nil, err
	}
	return &capture{from: from, raw: raw, stopped: true}, nil
}

// switchTo has what comes from now on taken into another log.
func (c *capture) switchTo(name string, most int64, failed func(error)) error {
	log, err := newWriter(name, most)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closeLog()
	c.log, c.failed, c.stopped, c.full = log, failed, false, false
	return nil
}

func (c *capture) closeLog() {
	if c.log != nil {
		c.log.Close()
	}
	c.stopped = true
}

// run takes what comes until stop, or until it ends.
func (c *capture) run() {
	for ended := false; !ended; {
		if err := c.raw.Read(func(fd uintptr) (done bool) { done, ended = c.take(fd); return done }); err != nil {
			ended = true
		}
	}
	c.from.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closeLog()
}

// take moves what is there to the log; not done: nothing is, yet.
func (c *capture) take(fd uintptr) (done, ended bool) {
	buf := buffers.Get().(*[captureBuffer]byte)
	defer buffers.Put(buf)
	c.mu.Lock()
	defer c.mu.Unlock()
	n, err := syscall.Read(int(fd), buf[:])
	if errors.Is(err, syscall.EINTR) {
		return true, false
	}
	c.noWriters = n == 0 && err == nil
	switch {
	case errors.Is(err, syscall.EAGAIN), c.noWriters && !c.closing:
		return false, false
	case err != nil || n == 0:
		return true, true
	case c.stopped:
		return true, false
	}
	if _, err := c.log.Write(buf[:n]); err != nil {
		c.stopped, c.full = true, true
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
	if c.stopped = true; c.log != nil {
		c.log.shrink()
	}
}

// isFree says whether no process has the pipe open to write.
func (c *capture) hasNoWriters() bool {
	c.drain()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.noWriters
}

// retire has the capture end with the last process that has the pipe open.
func (c *capture) release() {
	c.mu.Lock()
	c.closing = true
	c.mu.Unlock()
	if c.hasNoWriters() {
		c.stop()
	}
}

// stop takes no more, even if processes still write.
func (c *capture) stop() { c.from.Close() }
