// Package disks manages the directories of a tracker: its own, and one on each disk for the
// data of jobs. It claims them, probes them, keeps free space on them, and finds leftover
// files of an earlier process. tasktracker/core decides which disks and outputs are used.
//
// # Files
//
// The [datadir.Layout] of the tracker limits what may be in a directory. On each disk:
//
//	jobs/    files of attempts and homes, with names of tasktracker/core
//	shared/  copies of archives that jobs share, see package sidedirs
//	trash/   files that are being removed: moving them there is quick
//	probe    exists while the disk is probed
//
// # Invariants
//
//	D1  Files are removed only below a claimed directory, and files of a job only below its own, wherever its
//	    links lead.
//	D2  If another process uses a directory, the start fails. A disk that cannot be
//	    claimed for another reason is bad; a later probe may claim it.
//	D3  [Set.RemoveJobs] keeps only map outputs with a report. [Leftover.Verify] checks
//	    whether they are usable.
//	D4  At most one goroutine at a time searches for an attempt that filled a disk.
//	D5  For ten seconds after a disk was full, other attempts than the one that filled it are
//	    not blamed. They may be read only after files are removed.
//
// # Concurrency
//
// Any goroutine may call any method. Calls block while a disk hangs, without a lock. Only
// the search of D4 holds a lock while it measures.
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
	Dir    string   // the tracker's own directory
	Disks  []string // directories for the data of jobs; Dir may be one of them
	Layout datadir.Layout
	Free   func(dir string) (int64, error) // returns the free bytes on the disk of a directory; nil: the system does
}

// Set has the claimed directories of a tracker. Make one with [Claim].
type Set struct {
	cfg        Config
	badAtStart map[int]error // disks that were bad at the start, by index

	mu     sync.Mutex
	open   map[string]*datadir.Dir // by path
	closed bool
}

// Claim claims a tracker's directory and its disks. It fails if another process uses one of
// them, but not if a disk is bad.
func Claim(cfg Config) (*Set, error) {
	if cfg.Free == nil {
		cfg.Free = freeBytes
	}
	s := &Set{cfg: cfg, badAtStart: make(map[int]error)}
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
			s.badAtStart[i] = err
		}
	}
	return s, nil
}

func freeBytes(dir string) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, fmt.Errorf("get the free space: %w", err)
	}
	return int64(st.Bavail * uint64(st.Bsize)), nil
}

// totalBytes returns the size of the disk of a directory; 0: not known.
func totalBytes(dir string) int64 {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0
	}
	return int64(st.Blocks * uint64(st.Bsize))
}

// BadAtStart returns the disks that were bad at the start, by index. Call it after RemoveJobs.
func (s *Set) BadAtStart() map[int]error { return s.badAtStart }

// claim locks a directory until Close, and makes it if it is missing. Without the lock, a
// second tracker there would kill the workers of the first.
func (s *Set) claim(path string) error {
	if s.opened(path) != nil {
		return nil
	}
	dir, err := datadir.Open(path, s.cfg.Layout) // may block for ever on a bad disk
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

// opened returns a claimed directory; nil: it is not claimed.
func (s *Set) opened(path string) *datadir.Dir {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open[path]
}

// Remove removes a file or tree below a claimed directory. Other paths are an error.
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
		return fmt.Errorf("%s is not in a directory of this tracker", path)
	}
	parts := strings.SplitN(name, "/", 3)
	if len(parts) < 3 || parts[0] != core.JobsDir {
		return in.Remove(name)
	}
	// The job may have put links into its directory. One that leads out of it is not followed.
	dir := parts[0] + "/" + parts[1]
	err := datadir.Permit(in.Root(), dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	job, err := in.Root().OpenRoot(dir)
	if err != nil {
		return err
	}
	defer job.Close()
	return datadir.RemoveAll(job, parts[2])
}

// Close unlocks all directories.
func (s *Set) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, dir := range s.open {
		dir.Close()
	}
}

// OutputPath returns the path of a map output, on whichever disk it is.
func (s *Set) OutputPath(job wire.JobID, m, attempt int) (string, error) {
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
		// Prefer the error of a bad disk to "not found": the output may be on that disk.
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			err = e
		}
	}
	return "", err
}
