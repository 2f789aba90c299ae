package disks

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/quernmr/quern/tasktracker/core"
)

// What a disk must have room for to be of use.
const (
	probeBytes = 64 << 10
	leastFree  = 16 << 20
)

// With how little room left an attempt is looked for that has filled a disk, and how much
// of that it must take to be the one.
const (
	lowFree = 2 * leastFree
	hogSize = 64 << 20
)

// RemoveWait is how long files may take to be removed that are to make room.
const RemoveWait = 10 * time.Second

// roomEvery is how often the room on the disks is looked at.
const roomEvery = time.Second

var errNoRoom = errors.New("there is no room")

// ProbeFile is on a disk while that is probed.
const ProbeFile = "probe"

// Room keeps room on disks: an attempt that fills one is ended before others find it full.
// Disks have the core's numbers, by which it knows the tracker's directory too, and paths.
// Its exported fields are set before it is used.
type Room struct {
	Disks   *Set
	Tracker string                                              // its id
	Running func(disk int) []core.Running                       // the attempts on a disk
	End     func(disk int, attempt core.Running, reason string) // ends one, if it still runs

	mu sync.Mutex // see relieve
}

// Probe tries whether a disk can be written and read. One that could not be claimed before
// is claimed, and from one that is full the attempt goes that has filled it.
func (r *Room) Probe(ctx context.Context, disk int, path string) error {
	err := r.Disks.claim(path) // one that was bad at the start
	if err == nil {
		err = r.Disks.probe(path)
	}
	for errors.Is(err, errNoRoom) && r.relieve(ctx, disk, path) {
		err = r.Disks.probe(path)
	}
	return err
}

// Watch ends attempts that fill a disk, until ctx ends.
func (r *Room) Watch(ctx context.Context, disk int, path string) {
	tick := time.NewTicker(roomEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if free, err := r.Disks.cfg.Free(path); err == nil && free < lowFree && r.Disks.at(path) != nil {
			r.relieve(ctx, disk, path)
		}
	}
}

// relieve ends the attempt that has filled a disk, if there is one, and waits until its
// files are gone. One goroutine at a time looks for it.
func (r *Room) relieve(ctx context.Context, disk int, path string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	free, err := r.Disks.cfg.Free(path)
	if err != nil || free >= lowFree {
		return err == nil // another has made room
	}
	var most core.Running
	size := int64(0)
	for _, attempt := range r.Running(disk) {
		if n := treeBytes(attempt.Dir); n > size {
			most, size = attempt, n
		}
	}
	if size < hogSize {
		return false
	}
	reason := fmt.Sprintf("it has filled disk %s of tracker %s: its files take %d MiB there, and %d MiB are free",
		path, r.Tracker, size>>20, free>>20)
	r.End(disk, most, reason)
	for end := time.Now().Add(RemoveWait); time.Now().Before(end) && ctx.Err() == nil; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Lstat(most.Dir); errors.Is(err, fs.ErrNotExist) {
			return true
		}
	}
	return false
}

// treeBytes is what a tree takes of its disk, as far as it can be seen.
func treeBytes(dir string) (sum int64) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // just removed
		}
		if info, err := d.Info(); err == nil {
			if st, ok := info.Sys().(*syscall.Stat_t); ok {
				sum += st.Blocks * 512
			}
		}
		return nil
	})
	return sum
}

// probe tries whether a disk can be written and read.
func (s *Set) probe(dir string) (err error) {
	if err := os.MkdirAll(filepath.Join(dir, core.JobsDir), 0o777); err != nil {
		return err
	}
	free, err := s.cfg.Free(dir)
	if err != nil {
		return err
	}
	if free < leastFree {
		return fmt.Errorf("%w: %d MiB are free, fewer than %d", errNoRoom, free>>20, leastFree>>20)
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
		return fmt.Errorf("%s reads otherwise than it was written", name)
	}
	return nil
}
