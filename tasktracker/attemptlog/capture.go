package attemptlog

import (
	"errors"
	"io/fs"
	"os"
	"sync"
	"syscall"
)

// capture copies the output of a pipe to a log. A process that writes to the pipe never
// waits for disk space.
type capture struct {
	from *os.File
	raw  syscall.RawConn

	mu          sync.Mutex
	log         *writer
	onError     func(error) // called once if the log cannot be written; nil: not called
	stopped     bool        // nothing more is written to the log
	writeFailed bool        // stopped because of a failed write
	noWriters   bool        // no process had the pipe open at the last read
	closing     bool        // run ends when no process has the pipe open
}

const captureBuffer = 32 << 10

// buffers are read buffers. A capture has one only while it copies.
var buffers = sync.Pool{New: func() any { return new([captureBuffer]byte) }}

// captureTo returns a capture to a file. Its run ends when no process has the pipe open.
func captureTo(from *os.File, name string, limit int64, onError func(error)) (*capture, error) {
	c, err := newCapture(from)
	if err != nil {
		return nil, err
	}
	if err := c.switchTo(name, limit, onError); err != nil {
		from.Close()
		return nil, err
	}
	c.closing = true
	return c, nil
}

// newCapture returns a capture without a log.
func newCapture(from *os.File) (*capture, error) {
	raw, err := from.SyscallConn()
	if err != nil {
		from.Close()
		return nil, err
	}
	return &capture{from: from, raw: raw, stopped: true}, nil
}

// switchTo continues with another log.
func (c *capture) switchTo(name string, limit int64, onError func(error)) error {
	log, err := newWriter(name, limit)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closeLog()
	c.log, c.onError, c.stopped, c.writeFailed = log, onError, false, false
	return nil
}

func (c *capture) closeLog() {
	if c.log != nil {
		c.log.Close()
	}
	c.stopped = true
}

// run copies output until stop or the end of the pipe.
func (c *capture) run() {
	for ended := false; !ended; {
		if err := c.raw.Read(func(fd uintptr) (done bool) { done, ended = c.copyAvailable(fd); return done }); err != nil {
			ended = true
		}
	}
	c.from.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closeLog()
}

// copyAvailable copies available output to the log. If done is false, there is none yet.
func (c *capture) copyAvailable(fd uintptr) (done, ended bool) {
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
		c.stopped, c.writeFailed = true, true
		if c.onError != nil && !errors.Is(err, fs.ErrNotExist) { // the log may be removed with its job
			c.onError(err)
		}
		c.log.shrink()
	}
	return true, false
}

// drainReads limits the reads of drain. They read more than a pipe can hold.
const drainReads = 1 << 20 / captureBuffer

// drain copies the pending output.
func (c *capture) drain() {
	_ = c.raw.Control(func(fd uintptr) { // an error means that the pipe is closed
		for range drainReads {
			if done, ended := c.copyAvailable(fd); !done || ended {
				return
			}
		}
	})
}

func (c *capture) hasWriteFailed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.writeFailed
}

// shrink stops the log and frees its space, after a write to another log of the attempt failed.
func (c *capture) shrink() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped = true; c.log != nil {
		c.log.shrink()
	}
}

// hasNoWriters reports whether no process has the pipe open to write.
func (c *capture) hasNoWriters() bool {
	c.drain()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.noWriters
}

// release ends the capture when no process has the pipe open any more.
func (c *capture) release() {
	c.mu.Lock()
	c.closing = true
	c.mu.Unlock()
	if c.hasNoWriters() {
		c.stop()
	}
}

// stop ends the capture, even if processes still write.
func (c *capture) stop() { c.from.Close() }
