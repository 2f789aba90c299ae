// Package disks has the directories of a tracker: its own and those for the data of jobs,
// each on a disk of its own. It claims them, tells which are of use, keeps room on them,
// and finds what an earlier process has left there. What follows of that is for
// tasktracker/core.
//
// # Files
//
// The layout of package datadir says what may be in a directory. On each disk:
//
//	jobs/   what attempts and homes make; names are tasktracker/core's
//	trash/  what is being removed: moving things there is quick
//	probe   while the disk is probed
//
// # Invariants
//
//	D1  Nothing is removed but below a directory that is claimed.
//	D2  A directory that another process uses ends the start; a disk that cannot be had for
//	    another reason is one to do without, and may be claimed by a later probe.
//	D3  Of what an earlier process left on a disk, map outputs with a report stay; a
//	    [Left] is of use once Verify says so.
//	D4  At most one goroutine looks for the attempt that has filled a disk.
//
// # Concurrency
//
// All methods may be called by any goroutine. What looks at a disk may hang for as long as
// the disk does; nothing holds a lock meanwhile, except that the search of D4 waits for
// files to go, [RemoveWait] at most.
package disks

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/quernmr/quern/datadir"
	"github.com/quernmr/quern/tasktracker/core"
	"github.com/quernmr/quern/wire"
)

// Config names a tracker's directories.
type Config struct {
	Dir    string   // its own
	Disks  []string // for the data of jobs; Dir may be one
	Layout datadir.Layout
	Free   func(dir string) (int64, error) // bytes on the disk of a directory; nil: as the system says
}

// Set has a tracker's directory and its disks, as far as they could be had. Make one
// with [Claim].
type Set struct {
	cfg Config
	bad map[int]error // disks that were no good at the start

	mu     sync.Mutex
	open   map[string]*datadir.Dir // by path
	closed bool
}

// Claim claims a tracker's directory and its disks. A disk that cannot be had,
// other than because it is in use, is none to run without.
func Claim(cfg Config) (*Set, error) {
	if cfg.Free == nil {
		cfg.Free = freeBytes
	}
	s := &Set{cfg: cfg, bad: make(map[int]error)}
	if err := s.claim(cfg.Dir); err != nil {
		return nil, err
	}
	for i, disk := range cfg.Disks {
		err := s.claim(disk)
		if errors.Is(err, datadir.ErrInUse) {
			s.Close()
			return nil, err
		}
		if err != nil {
			s.bad[i] = err
		}
	}
	return s, nil
}

func freeBytes(dir string) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, fmt.Errorf("look at free space: %w", err)
	}
	return int64(st.Bavail * uint64(st.Bsize)), nil
}

// Bad are the disks that were no good at the start, by number, after Sift.
func (s *Set) Bad() map[int]error { return s.bad }

// claim makes a directory, if need be, and locks it: a second tracker there would kill
// the first one's workers. One that is claimed stays so.
func (s *Set) claim(path string) error {
	if s.at(path) != nil {
		return nil
	}
	dir, err := datadir.Open(path, s.cfg.Layout) // for which a sick disk may take for ever
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.open[path] != nil || s.closed:
		if err == nil {
			dir.Close()
		}
		return nil
	case err != nil:
		return err
	}
	if s.open == nil {
		s.open = make(map[string]*datadir.Dir)
	}
	s.open[path] = dir
	return nil
}

func (s *Set) at(path string) *datadir.Dir {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open[path]
}

// Remove removes a file or tree below one of them, and no other.
func (s *Set) Remove(path string) error {
	s.mu.Lock()
	var in *datadir.Dir
	var name string
	for at, dir := range s.open {
		if below, ok := strings.CutPrefix(path, at+"/"); ok {
			in, name = dir, below
		}
	}
	s.mu.Unlock()
	if in == nil {
		return fmt.Errorf("%s is in no directory of this tracker", path)
	}
	return in.Remove(name)
}

// Close unlocks all.
func (s *Set) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, dir := range s.open {
		dir.Close()
	}
}

// Output finds a map's output on one of the disks.
func (s *Set) Output(job wire.JobID, m, attempt int) (string, error) {
	var err error
	for _, disk := range s.cfg.Disks {
		file := core.MapOutputPath(disk, job, m, attempt)
		if len(s.cfg.Disks) == 1 {
			return file, nil
		}
		_, e := os.Stat(file)
		if e == nil {
			return file, nil
		}
		// Another disk's trouble must not hide that it is missing on the good ones,
		// nor that it may be on the bad one.
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			err = e
		}
	}
	return "", err
}
