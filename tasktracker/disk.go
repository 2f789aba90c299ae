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

	"golang.org/x/sys/unix"

	"github.com/quernmr/quern/tasktracker/core"
)

// What a disk must have room for to be of use.
const (
	probeBytes = 64 << 10
	leastFree  = 16 << 20
)

const (
	probeName = "probe"
	trashName = "trash" // what is being removed in the background
)

// probe tries whether a disk can be written and read.
func (l *loop) probe(c core.Probe) {
	ev := core.DiskProbed{Disk: c.Disk}
	err := l.dirs.claim(c.Path) // one that was bad at the start
	if err == nil {
		err = probeDisk(c.Path)
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

func probeDisk(dir string) (err error) {
	if err := os.MkdirAll(filepath.Join(dir, core.JobsDir), 0o777); err != nil {
		return err
	}
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return fmt.Errorf("look at free space: %w", err)
	}
	if free := st.Bavail * uint64(st.Bsize); free < leastFree {
		return fmt.Errorf("%d MiB are free, fewer than %d", free>>20, leastFree>>20)
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
