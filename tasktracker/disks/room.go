package disks

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/quernmr/quern/tasktracker/core"
	"github.com/quernmr/quern/wire"
)

// A disk is good if probeBytes can be written and read, and minFree bytes are free.
const (
	probeBytes = 64 << 10
	minFree    = 16 << 20
)

// If less than lowFree is free, SpaceGuard ends the attempt with the largest files on the
// disk, if they take at least minFillerSize.
const (
	lowFree       = 2 * minFree
	minFillerSize = 64 << 20
)

// RemoveWait limits the wait for the removal of an ended attempt's files.
const RemoveWait = 10 * time.Second

// watchPeriod is the period of checks of the free space.
const watchPeriod = time.Second

var errNoSpace = errors.New("not enough free space")

// ProbeFile exists on a disk during a probe.
const ProbeFile = "probe"

// SpaceGuard keeps free space on disks: it ends an attempt that fills a disk before the
// disk is full. Disks have the indexes of the core. Set the exported fields before use.
type SpaceGuard struct {
	Disks      *Set
	Tracker    string                                              // its id
	Running    func(disk int) []core.Running                       // returns the attempts on a disk
	EndAttempt func(disk int, attempt core.Running, reason string) // ends an attempt, if it still runs
	LocalBytes int64                                               // limit of each attempt's working directory; 0: none

	mu sync.Mutex // held by freeSpace
}

// Probe checks that a disk can be written and read. It claims a disk that could not be
// claimed before. On a full disk it ends the attempt with the largest files, and checks again.
func (r *SpaceGuard) Probe(ctx context.Context, disk int, path string) error {
	err := r.Disks.claim(path) // it may have been bad at the start
	if err == nil {
		err = r.Disks.probe(path)
	}
	for errors.Is(err, errNoSpace) && r.freeSpace(ctx, disk, path) {
		err = r.Disks.probe(path)
	}
	return err
}

// WatchAttempts ends attempts that exceed the limit of their working directory, until ctx
// ends. It spends a tenth of its time on measurements, so that large trees do no harm.
func (r *SpaceGuard) WatchAttempts(ctx context.Context, disk int) {
	pause := time.NewTimer(watchPeriod)
	defer pause.Stop()
	for {
		select {
		case <-pause.C:
		case <-ctx.Done():
			return
		}
		began := time.Now()
		for _, attempt := range r.Running(disk) {
			if ctx.Err() != nil {
				return
			}
			if reason := r.tooLarge(attempt); reason != "" {
				r.EndAttempt(disk, attempt, reason)
			}
		}
		pause.Reset(max(watchPeriod, 9*time.Since(began)))
	}
}

// tooLarge returns an error text if the working directory of an attempt exceeds the limit.
func (r *SpaceGuard) tooLarge(attempt core.Running) string {
	limit, name := attempt.LocalBytes, wire.LocalBytesProperty
	if r.LocalBytes > 0 && (limit == 0 || r.LocalBytes < limit) {
		limit, name = r.LocalBytes, "-attempt-disk-bytes of tracker "+r.Tracker
	}
	if limit <= 0 {
		return ""
	}
	dir := core.WorkDir(attempt.Dir)
	size := treeBytes(dir, limit)
	if size <= limit {
		return ""
	}
	return fmt.Sprintf("its files in %s take at least %d bytes, more than the %d it may have there (%s)", dir, size, limit, name)
}

// Watch ends attempts that fill a disk, until ctx ends.
func (r *SpaceGuard) Watch(ctx context.Context, disk int, path string) {
	tick := time.NewTicker(watchPeriod)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if free, err := r.Disks.cfg.Free(path); err == nil && free < lowFree && r.Disks.opened(path) != nil {
			r.freeSpace(ctx, disk, path)
		}
	}
}

// freeSpace ends the attempt that filled a disk, and waits until its files are removed. It
// reports whether another probe may succeed. One goroutine at a time does this.
func (r *SpaceGuard) freeSpace(ctx context.Context, disk int, path string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	free, err := r.Disks.cfg.Free(path)
	if err != nil || free >= lowFree {
		return err == nil // another goroutine freed space
	}
	var largest core.Running
	size := int64(0)
	for _, attempt := range r.Running(disk) {
		if n := treeBytes(attempt.Dir, math.MaxInt64); n > size {
			largest, size = attempt, n
		}
	}
	if size < minFillerSize {
		return false
	}
	reason := fmt.Sprintf("it has filled disk %s of tracker %s: its files take %d MiB there, and %d MiB are free",
		path, r.Tracker, size>>20, free>>20)
	r.EndAttempt(disk, largest, reason)
	for end := time.Now().Add(RemoveWait); time.Now().Before(end) && ctx.Err() == nil; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Lstat(largest.Dir); errors.Is(err, fs.ErrNotExist) {
			return true
		}
	}
	return false
}

// Limits of a measurement: files of a tree, and entries of a directory that are read at once.
const (
	maxMeasured = 1 << 20
	dirBatch    = 1 << 10
)

// treeBytes returns the disk space of a tree, without files that cannot be read. It stops when
// the sum exceeds enough, or after maxMeasured files.
func treeBytes(dir string, enough int64) (sum int64) {
	dirs, measured := []string{dir}, 0
	for len(dirs) > 0 && sum <= enough && measured < maxMeasured {
		name := dirs[len(dirs)-1]
		dirs = dirs[:len(dirs)-1]
		// The job may have replaced the directory by a pipe, or by a link to another one.
		f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
		if err != nil {
			continue // it was just removed, or replaced
		}
		for err == nil && sum <= enough && measured < maxMeasured {
			var entries []os.DirEntry
			entries, err = f.ReadDir(dirBatch)
			for _, e := range entries {
				measured++
				if e.IsDir() {
					dirs = append(dirs, filepath.Join(name, e.Name()))
				}
				if info, err := e.Info(); err == nil {
					if st, ok := info.Sys().(*syscall.Stat_t); ok {
						sum += st.Blocks * 512
					}
				}
			}
		}
		f.Close()
	}
	return sum
}

// probe checks that a disk can be written and read.
func (s *Set) probe(dir string) (err error) {
	if err := os.MkdirAll(filepath.Join(dir, core.JobsDir), 0o777); err != nil {
		return err
	}
	free, err := s.cfg.Free(dir)
	if err != nil {
		return err
	}
	if free < minFree {
		return fmt.Errorf("%w: %d MiB are free, want at least %d", errNoSpace, free>>20, minFree>>20)
	}
	name := filepath.Join(dir, ProbeFile)
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(name)) }()
	want := bytes.Repeat([]byte("quern"), probeBytes/5)
	if _, err := f.Write(want); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	got := make([]byte, len(want))
	if _, err := f.ReadAt(got, 0); err != nil {
		return err
	}
	if !bytes.Equal(got, want) {
		return fmt.Errorf("the bytes read from %s differ from the bytes written", name)
	}
	return nil
}
