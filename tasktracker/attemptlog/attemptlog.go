// Package attemptlog writes, reads, serves and expires the stdout and stderr of attempts. It
// knows files and pipes. Callers know which attempt runs, and which users may read its logs.
//
// # Capture
//
// On Linux, attempts write stdout and stderr to two named pipes of their worker,
// <worker's directory>/logs/<stdout|stderr>, and this process writes the logs. So logs have
// a limit, and no attempt waits for a full disk.
//
// When the attempt ends, the worker closes the pipes, and the next attempt uses them again
// with other logs. If a process still has a pipe open, the worker gets new pipes instead, and
// the old ones stay until that process ends. So the output of a leftover process goes to the
// log of its own attempt. On other systems, attempts write their logs themselves, without a
// limit.
//
// Outside of attempts, a worker's output goes through an unnamed pipe to the file stderr of
// its directory.
//
// # Files
//
//	<attempt's logs>/<stdout|stderr>           the first part of a log: half of its limit
//	<attempt's logs>/<stdout|stderr>+<offset>  a later part, a quarter of the limit, from
//	                                           this offset; the last two are kept
//
// # Invariants
//
//	A1  Of a long log the first and the last part are kept. A line says how much is missing.
//	A2  A process that writes into a pipe never waits for disk space or for a limit.
//	A3  If a log cannot be written, this is reported once, and its space is freed.
//	A4  At a worker's end, nothing waits longer than [diskGrace] for a disk that hangs.
//
// # Concurrency
//
// Each pipe has a goroutine. It ends when no process has the pipe open to write, or with
// [Captures.Stop]. Any goroutine may call any method of Captures and Streams, but one at a
// time Capture. One goroutine at a time may use a Text.
package attemptlog

import (
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Captures are the pipes that this process reads. The zero value has none.
type Captures struct {
	mu  sync.Mutex
	all map[*capture]bool
}

// Start writes the output of a pipe to the file stderr of a worker's directory. It closes
// the pipe. Most is the limit of an attempt's logs in bytes.
func (c *Captures) Start(from *os.File, dir string, most int64) (*Streams, error) {
	own, err := captureTo(from, filepath.Join(dir, "stderr"), most/2, nil)
	if err != nil {
		return nil, err
	}
	c.add(own)
	return &Streams{captures: c, dir: dir, limit: most, workerOutput: own}, nil
}

// add runs captures. They end when no process has their pipe open, or with Stop.
func (c *Captures) add(captures ...*capture) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all == nil {
		c.all = make(map[*capture]bool)
	}
	for _, one := range captures {
		c.all[one] = true
		go func() {
			one.run()
			c.mu.Lock()
			defer c.mu.Unlock()
			delete(c.all, one)
		}()
	}
}

// Stop ends all captures, even if processes still write.
func (c *Captures) Stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for one := range c.all {
		one.stop()
	}
}

// Streams captures the output of a worker and of its attempts, one at a time.
type Streams struct {
	captures     *Captures
	dir          string // the worker's
	limit        int64
	workerOutput *capture // output of the worker outside of attempts

	mu    sync.Mutex
	pipes *pipes // for its attempts; nil: none
	ended bool   // the worker has ended
}

// Capture prepares the pipes for the next attempt's logs, and returns the directory of the
// pipes. It calls failed if a log cannot be written.
func (s *Streams) Capture(logs string, failed func(error)) (string, error) {
	if !namedPipes {
		return logs, nil
	}
	p := s.exchange(nil)
	if !p.reusable() {
		p.release()
		var err error
		if p, err = newPipes(filepath.Join(s.dir, "logs")); err != nil {
			return "", err
		}
		s.captures.add(p.captures...)
	}
	err := p.switchTo(logs, s.limit, failed)
	s.exchange(p)
	if s.hasEnded() { // End may have missed the new pipes
		s.exchange(nil).release()
	}
	return p.dir, err
}

// exchange sets new pipes and returns those of the last attempt.
func (s *Streams) exchange(next *pipes) (last *pipes) {
	s.mu.Lock()
	defer s.mu.Unlock()
	last, s.pipes = s.pipes, next
	return last
}

func (s *Streams) hasEnded() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended
}

// Drain writes pending output to the logs.
func (s *Streams) Drain() { awaitDisk(s.drain) }

func (s *Streams) drain() {
	s.mu.Lock()
	p := s.pipes
	s.mu.Unlock()
	s.workerOutput.drain()
	p.drain()
}

// End writes the pending output of an ended worker to the logs. Its leftover processes may
// continue to write.
func (s *Streams) End() {
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	awaitDisk(func() {
		s.drain()
		s.exchange(nil).release()
	})
}

// diskGrace is how long to wait for the disk of the logs.
const diskGrace = 2 * time.Second

// awaitDisk waits until a function has returned, or for diskGrace.
func awaitDisk(do func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	select {
	case <-done:
	case <-time.After(diskGrace):
	}
}
