package tasktracker

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

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

// removeWait is how long files may take to be removed that are to make room.
const removeWait = 10 * time.Second

// roomEvery is how often the room on the disks is looked at.
const roomEvery = time.Second

var errNoRoom = errors.New("there is no room")

const (
	probeName = "probe"
	trashName = "trash" // what is being removed in the background
)

// probe tries whether a disk can be written and read.
func (l *loop) probe(c core.Probe) {
	ev := core.DiskProbed{Disk: c.Disk}
	err := l.dirs.claim(c.Path) // one that was bad at the start
	if err == nil {
		err = l.probeDisk(c.Path)
	}
	for errors.Is(err, errNoRoom) && l.relieve(c.Disk, c.Path) {
		err = l.probeDisk(c.Path)
	}
	if err != nil {
		ev.Error = err.Error()
	}
	l.post(func() {
		if err != nil {
			l.cfg.Logger.Error("disk failed", "path", c.Path, "error", err)
		}
		l.step(ev)
	})
}

func (l *loop) probeDisk(dir string) (err error) {
	if err := os.MkdirAll(filepath.Join(dir, core.JobsDir), 0o777); err != nil {
		return err
	}
	free, err := l.cfg.free(dir)
	if err != nil {
		return err
	}
	if free < leastFree {
		return fmt.Errorf("%w: %d MiB are free, fewer than %d", errNoRoom, free>>20, leastFree>>20)
	}
	name := filepath.Join(dir, probeName)
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

func freeBytes(dir string) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, fmt.Errorf("look at free space: %w", err)
	}
	return int64(st.Bavail * uint64(st.Bsize)), nil
}

// watchRoom ends attempts that fill disks before others find these full.
func (l *loop) watchRoom(disk int, path string) {
	tick := time.NewTicker(roomEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-l.ctx.Done():
			return
		}
		if free, err := l.cfg.free(path); err == nil && free < lowFree && l.dirs.at(path) != nil {
			l.relieve(disk, path)
		}
	}
}

// relieve ends the attempt that has filled a disk, if there is one, and waits until its
// files are gone. One goroutine at a time looks for it.
func (l *loop) relieve(disk int, path string) bool {
	l.relieving.Lock()
	defer l.relieving.Unlock()
	free, err := l.cfg.free(path)
	if err != nil || free >= lowFree {
		return err == nil // another has made room
	}
	var most core.Running
	size := int64(0)
	for _, r := range l.running(disk) {
		if n := treeBytes(r.Dir); n > size {
			most, size = r, n
		}
	}
	if size < hogSize {
		return false
	}
	reason := fmt.Sprintf("it has filled disk %s of tracker %s: its files take %d MiB there, and %d MiB are free",
		path, l.cfg.ID, size>>20, free>>20)
	l.post(func() {
		if slices.Contains(l.core.Running(disk), most) {
			l.step(core.Exceeded{Worker: most.Worker, Reason: reason})
		}
	})
	for end := time.Now().Add(removeWait); time.Now().Before(end) && l.ctx.Err() == nil; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Lstat(most.Dir); errors.Is(err, fs.ErrNotExist) {
			return true
		}
	}
	return false
}

// running lists the attempts on a disk, if the loop still goes.
func (l *loop) running(disk int) []core.Running {
	list := make(chan []core.Running, 1)
	l.post(func() { list <- l.core.Running(disk) })
	select {
	case r := <-list:
		return r
	case <-l.done:
		return nil
	}
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

// reportDisks tells the core of disks that were found bad at start.
func (l *loop) reportDisks(bad map[int]error) {
	for _, i := range slices.Sorted(maps.Keys(bad)) {
		l.cfg.Logger.Error("disk failed", "path", l.cfg.Disks[i], "error", bad[i])
		l.event(core.DiskProbed{Disk: i, Error: bad[i].Error()})
	}
}

// outputPath finds a map's output on one of the disks.
func (l *loop) outputPath(find func(disk string) string) (string, error) {
	var err error
	for _, disk := range l.cfg.Disks {
		file := find(disk)
		if len(l.cfg.Disks) == 1 {
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
