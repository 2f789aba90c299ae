// Package attemptlog writes, reads, serves and expires what attempts write to stdout and
// stderr. It knows files and pipes; which attempt runs, and who may read its logs, is for
// its callers to know.
//
// # Capture
//
// On Linux, what an attempt writes to stdout and stderr comes through two named pipes of
// its worker, <worker's directory>/logs/<stdout|stderr>, and this process writes the
// attempt's logs. So they are held to a size, and no attempt waits for room on a disk.
// When the attempt ends, the worker closes its ends. The next attempt gets the same pipes,
// with other logs at their ends, unless some process still has one of them open: then
// the worker gets new pipes. The old ones, and their log, are left to that process, as long
// as it runs. So what a process writes that its attempt left behind is in that
// attempt's log. Elsewhere than on Linux, attempts write their logs themselves, without
// a limit.
//
// What a worker writes outside of attempts comes through a pipe without a name, into the
// file stderr of its directory.
//
// # Files
//
//	<attempt's logs>/<stdout|stderr>           the first part of a log: half of what it may take
//	<attempt's logs>/<stdout|stderr>+<offset>  a piece of the rest, a quarter, by where it
//	                                           begins; the last two stay
//
// # Invariants
//
//	A1  Of a long log the first and the last part are kept. A line says how much is missing.
//	A2  A process that writes into a pipe waits neither for room nor for a limit.
//	A3  A log that cannot be written is told of once, and makes room for others.
//	A4  Nothing waits more than [diskGrace] for a disk that hangs when a worker ends.
//
// # Concurrency
//
// Each pipe has a goroutine, which ends when no process has the pipe open to write, or with
// [Captures.Stop]. All methods of Captures and Streams may be called by any goroutine, but
// Capture by one. A Text is for one goroutine at a time.
package attemptlog

import (
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Captures are the pipes of a process that are being read. The zero value has none.
type Captures struct {
	mu  sync.Mutex
	all map[*capture]bool
}

// Start takes what comes through a pipe, which it closes, into the file stderr of a
// worker's directory. Most is how many bytes the logs of an attempt may take.
func (c *Captures) Start(from *os.File, dir string, most int64) (*Streams, error) {
	own, err := captureTo(from, filepath.Join(dir, "stderr"), most/2, nil)
	if err != nil {
		return nil, err
	}
	c.add(own)
	return &Streams{captures: c, dir: dir, most: most, own: own}, nil
}

// begin notes captures, which end when nothing writes to them any more, or with Stop.
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

// Stop reads no more, even if processes still write.
func (c *Captures) Stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for one := range c.all {
		one.stop()
	}
}

// Streams takes what a worker and its attempts, one at a time, write into their logs.
type Streams struct {
	captures *Captures
	dir      string // the worker's
	most     int64
	own      *capture // what the worker writes outside of attempts

	mu    sync.Mutex
	pipes *pipes // of its attempts; nil: none
	ended bool   // the worker has
}

// Capture has the next attempt's logs pass through this process, to a directory, and
// says where the attempt finds their ends. Failed is called when one cannot be written.
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
	err := p.switchTo(logs, s.most, failed)
	s.exchange(p)
	if s.hasEnded() { // and End may have looked before
		s.exchange(nil).release()
	}
	return p.dir, err
}

// exchange replaces the pipes of the last attempt.
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

// Drain takes what was written so far into the logs.
func (s *Streams) Drain() { awaitDisk(s.drain) }

func (s *Streams) drain() {
	s.mu.Lock()
	p := s.pipes
	s.mu.Unlock()
	s.own.drain()
	p.drain()
}

// End takes what the worker, which has ended, has written into the logs. What it started
// and left behind may write on.
func (s *Streams) End() {
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	awaitDisk(func() {
		s.drain()
		s.exchange(nil).release()
	})
}

// diskGrace is how long the disk of the logs may take.
const diskGrace = 2 * time.Second

// awaitDisk waits until something on the disk of the logs is done, or goes on without it if
// the disk hangs.
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
