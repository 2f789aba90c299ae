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
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/quernmr/quern/shuffle"
	"github.com/quernmr/quern/tasktracker/core"
	"github.com/quernmr/quern/wire"
)

// A disk is good if probeBytes can be written and read, and minFree bytes are free.
const (
	probeBytes = 64 << 10
	minFree    = 16 << 20
)

// exhaustedPause is the wait of a probe that had no file descriptor or memory.
const exhaustedPause = time.Second

// A disk is full if less than lowFree is free. The attempt that filled it has the largest files
// of those with at least minFillerSize and their share: the free space when the attempt began
// without lowFree, divided among the attempts there and all other files, as one more. If other files
// filled the disk, no attempt has so much.
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

	mu     sync.Mutex // of the map alone: a slow disk must not hold up the others
	spaces map[int]*space
}

// space is what SpaceGuard has seen of a disk.
type space struct {
	last atomic.Pointer[core.Space] // what Watch measured last; nil: nothing yet

	mu     sync.Mutex               // held by findFiller
	free   int64                    // a moment ago
	began  map[wire.AttemptID]int64 // free bytes when an attempt began
	filler filler                   // the last one
	found  time.Time                // when the disk was last full
}

// filler is an attempt that has filled a disk. Its Dir is empty if there is none.
type filler struct {
	core.Running
	bytes, began  int64
	where, reason string
}

// Probe checks that a disk can be written and read. It claims a disk that could not be
// claimed before. On a full disk it ends the attempt with the largest files, and checks again.
// While the process has no file descriptors or memory, which says nothing of the disk, it waits.
func (r *SpaceGuard) Probe(ctx context.Context, disk int, path string) error {
	for {
		err := r.probeOnce(ctx, disk, path)
		if !shuffle.Exhausted(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(exhaustedPause):
		}
	}
}

func (r *SpaceGuard) probeOnce(ctx context.Context, disk int, path string) error {
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
		if free, err := r.Disks.cfg.Free(path); err == nil && r.Disks.opened(path) != nil {
			r.space(disk).last.Store(&core.Space{Disk: disk, Free: free, Total: totalBytes(path)})
			r.note(disk, free)
			if free < lowFree {
				r.freeSpace(ctx, disk, path)
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// Spaces returns what Watch measured last on some disks. It does not wait for a disk.
func (r *SpaceGuard) Spaces(disks int) (all []core.Space) {
	for i := range disks {
		if s := r.space(i).last.Load(); s != nil {
			all = append(all, *s)
		}
	}
	return all
}

// note notes how much space is free on a disk, for the attempts that began since the last call.
// They began with the free space of now or of then.
func (r *SpaceGuard) note(disk int, free int64) {
	running := r.Running(disk)
	s := r.space(disk)
	s.mu.Lock()
	defer s.mu.Unlock()
	began := make(map[wire.AttemptID]int64, len(running))
	for _, a := range running {
		began[a.Attempt] = s.freeAtStart(a.Attempt, free)
	}
	s.free, s.began = free, began
}

func (r *SpaceGuard) space(disk int) *space {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.spaces[disk] == nil {
		if r.spaces == nil {
			r.spaces = make(map[int]*space)
		}
		r.spaces[disk] = &space{}
	}
	return r.spaces[disk]
}

func (s *space) freeAtStart(attempt wire.AttemptID, now int64) int64 {
	if free, known := s.began[attempt]; known {
		return free
	}
	return max(s.free, now)
}

// FullDisk returns the first of the disks that is full or was full a moment ago; nil: none is.
// It ends the attempt that has filled it.
func (r *SpaceGuard) FullDisk(disks []core.Place) *core.FullDisk {
	for _, d := range disks {
		f, full := r.findFiller(d.Disk, d.Path)
		switch {
		case !full:
		case f.Dir == "":
			return &core.FullDisk{Disk: d.Disk, Reason: fmt.Sprintf("disk %s of tracker %s is full, and none of its attempts has filled it: remove other files there", d.Path, r.Tracker)}
		default:
			return &core.FullDisk{Disk: d.Disk, Filler: f.Attempt, Reason: fmt.Sprintf("%v %s", f.Attempt, f.reason)}
		}
	}
	return nil
}

// freeSpace ends the attempt that filled a disk, and waits until its files are removed. It
// reports whether another probe may succeed.
func (r *SpaceGuard) freeSpace(ctx context.Context, disk int, path string) bool {
	f, _ := r.findFiller(disk, path)
	if f.Dir == "" {
		free, err := r.Disks.cfg.Free(path)
		return err == nil && free >= lowFree // another attempt ended
	}
	for end := time.Now().Add(RemoveWait); time.Now().Before(end) && ctx.Err() == nil; time.Sleep(10 * time.Millisecond) {
		if !exists(f.Dir) {
			return true
		}
	}
	return false
}

// findFiller reports whether a disk is full, or was full a moment ago. It returns the attempt that
// filled it, if there is one, and ends it. One goroutine at a time does this for a disk.
func (r *SpaceGuard) findFiller(disk int, path string) (filler, bool) {
	s := r.space(disk)
	s.mu.Lock()
	defer s.mu.Unlock()
	free, err := r.Disks.cfg.Free(path)
	if err != nil {
		return filler{}, false
	}
	if time.Since(s.found) < RemoveWait && (free >= lowFree || s.filler.Dir != "" && exists(s.filler.Dir)) {
		return s.filler, true
	}
	if free >= lowFree {
		return filler{}, false
	}
	attempts := r.Running(disk)
	var f filler
	for _, a := range attempts {
		n, where := treeBytes(a.Dir, math.MaxInt64), a.Dir
		if tmp := treeBytes(a.Tmp, math.MaxInt64); tmp > 0 && strings.HasPrefix(a.Tmp, path+"/") { // else it is on another disk
			n, where = n+tmp, a.Dir+" and its private /tmp"
		}
		began := max(s.freeAtStart(a.Attempt, free), n+free) // more, if files were just being removed
		share := max((began-lowFree)/int64(len(attempts)+1), minFillerSize)
		if n >= share && n > f.bytes {
			f = filler{Running: a, bytes: n, began: began, where: where}
		}
	}
	s.filler, s.found = f, time.Now()
	if f.Dir == "" {
		return f, true
	}
	f.reason = fmt.Sprintf("has filled disk %s of tracker %s: its files in %s take %d MiB of the %d MiB that were free when it began, and %d MiB are free now; it must write less, or needs a larger disk",
		path, r.Tracker, f.where, f.bytes>>20, f.began>>20, free>>20)
	s.filler = f
	r.EndAttempt(disk, f.Running, "it "+f.reason)
	return f, true
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
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
