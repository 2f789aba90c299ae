// Package attemptlog writes, reads, serves and expires the stdout and stderr of attempts. It
// knows files and pipes. Callers decide which attempt runs, and which users may read logs.
//
// # Capture
//
// On Linux, attempts write stdout and stderr to two named pipes of their worker,
// <worker's directory>/logs/<stdout|stderr>, and this process writes the logs. So logs have
// a limit, and no attempt waits for a full disk.
//
// When the attempt ends, the worker closes the pipes, and the next attempt uses them again
// with other logs. If a process still has a pipe open, the worker gets new pipes instead, and
// the old pipes stay until that process ends. So the output of a leftover process goes to the
// log of its own attempt. On other systems, attempts write their logs without pipes and
// without a limit.
//
// Outside of attempts, a worker's output goes through an unnamed pipe to the file stderr of
// its directory.
//
// # Files
//
//	<attempt's logs>/<stdout|stderr>           the first part of a log: half of its limit
//	<attempt's logs>/<stdout|stderr>+<offset>  a later part from this offset: a quarter of
//	                                           the limit; the last two parts are kept
//
// # Invariants
//
//	A1  A long log keeps its first and its last part. A line says how much is missing.
//	A2  A process that writes into a pipe never waits for disk space or for a limit.
//	A3  If a log cannot be written, Captures reports it once and frees its space.
//	A4  At a worker's end, nothing waits longer than [diskGrace] for a disk that hangs.
//
// # Concurrency
//
// Each pipe has a goroutine. It ends when no process has the pipe open to write, or with
// [Captures.Stop]. Any goroutine may call any method of Captures and Streams, but only one
// at a time may call Capture. One goroutine at a time may use a Text.
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
// the pipe. The limit is for the logs of an attempt, in bytes.
func (c *Captures) Start(from *os.File, dir string, limit int64) (*Streams, error) {
	output, err := captureTo(from, filepath.Join(dir, "stderr"), limit/2, nil)
	if err != nil {
		return nil, err
	}
	c.add(output)
	return &Streams{captures: c, dir: dir, limit: limit, workerOutput: output}, nil
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
	dir          string // directory of the worker
	limit        int64
	workerOutput *capture // output of the worker outside of attempts

	mu    sync.Mutex
	pipes *pipes // for its attempts; nil: none
	ended bool   // the worker has ended
}

// Capture prepares the pipes for the next attempt's logs, and returns the directory of the
// pipes. It calls onError if a log cannot be written.
func (s *Streams) Capture(logs string, onError func(error)) (string, error) {
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
	err := p.switchTo(logs, s.limit, onError)
	s.exchange(p)
	if s.hasEnded() { // End may have missed the new pipes
		s.exchange(nil).release()
	}
	return p.dir, err
}

// exchange sets new pipes and returns the pipes of the last attempt.
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

// End writes the pending output of an ended worker to the logs. Leftover processes may
// still write.
func (s *Streams) End() {
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	awaitDisk(func() {
		s.drain()
		s.exchange(nil).release()
	})
}

// diskGrace is the longest wait for the disk of the logs.
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
