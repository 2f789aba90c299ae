package disks

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quernmr/quern/datadir"
	"github.com/quernmr/quern/tasktracker/core"
	"github.com/quernmr/quern/wire"
)

// TestTreeBytes: a tree with many files and directories is measured, up to the given sum.
func TestTreeBytes(t *testing.T) {
	root := t.TempDir()
	const files, size = 3 * dirBatch, 4096
	for i := range files {
		dir := filepath.Join(root, fmt.Sprint(i%50))
		if i%2 == 0 {
			dir = root
		}
		if err := os.MkdirAll(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("f%d", i)), make([]byte, size), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if n := treeBytes(root, math.MaxInt64); n < files*size || n > 2*files*size {
		t.Errorf("the tree has %d bytes, want about %d", n, files*size)
	}
	if n := treeBytes(root, 10*size); n <= 10*size || n >= files*size {
		t.Errorf("it measured %d bytes, want a few more than %d", n, 10*size)
	}
	if n := treeBytes(filepath.Join(root, "missing"), math.MaxInt64); n != 0 {
		t.Errorf("a missing tree has %d bytes", n)
	}
}

// TestReplacedTree: a job may replace its directory while it is measured. The measurement does not
// wait for a pipe, and does not follow a link.
func TestReplacedTree(t *testing.T) {
	other := t.TempDir()
	if err := os.WriteFile(filepath.Join(other, "f"), make([]byte, 1<<16), 0o666); err != nil {
		t.Fatal(err)
	}
	link, pipe := filepath.Join(t.TempDir(), "link"), filepath.Join(t.TempDir(), "pipe")
	if err := errors.Join(os.Symlink(other, link), syscall.Mkfifo(pipe, 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{link, pipe} {
		measured := make(chan int64, 1)
		go func() { measured <- treeBytes(dir, math.MaxInt64) }()
		select {
		case n := <-measured:
			if n != 0 {
				t.Errorf("%s has %d bytes, want 0", dir, n)
			}
		case <-time.After(time.Minute):
			t.Fatalf("the measurement still waits for %s", dir)
		}
	}
}

// fullDisk is a disk with attempts, for a SpaceGuard.
type fullDisk struct {
	t        *testing.T
	guard    SpaceGuard
	dir      string
	free     int64
	attempts []core.Running
	ended    []int // numbers of the attempts that the guard has ended
}

func newFullDisk(t *testing.T) *fullDisk {
	d := &fullDisk{t: t, dir: t.TempDir()}
	d.guard = SpaceGuard{Tracker: "t1",
		Disks:      &Set{cfg: Config{Free: func(string) (int64, error) { return d.free, nil }}},
		Running:    func(int) []core.Running { return d.attempts },
		EndAttempt: func(_ int, a core.Running, _ string) { d.ended = append(d.ended, a.Attempt.N) },
	}
	return d
}

// begin begins an attempt while so many MiB are free.
func (d *fullDisk) begin(n int, free int64) {
	d.t.Helper()
	a := core.Running{Worker: n, Attempt: wire.AttemptID{N: n}, Dir: filepath.Join(d.dir, fmt.Sprint(n))}
	if err := os.Mkdir(a.Dir, 0o777); err != nil {
		d.t.Fatal(err)
	}
	d.free = 0
	d.guard.note(0, d.free) // nothing was free a moment ago
	d.attempts, d.free = append(d.attempts, a), free<<20
	d.guard.note(0, d.free)
}

// write writes so many MiB into the directory of an attempt.
func (d *fullDisk) write(n int, size int64) {
	d.t.Helper()
	f, err := os.Create(filepath.Join(d.dir, fmt.Sprint(n), "f"))
	if err != nil {
		d.t.Fatal(err)
	}
	if err := errors.Join(unix.Fallocate(int(f.Fd()), 0, 0, size<<20), f.Close()); err != nil {
		d.t.Fatal(err)
	}
}

// remove ends an attempt and removes its files.
func (d *fullDisk) remove(n int) {
	d.t.Helper()
	d.attempts = slices.DeleteFunc(d.attempts, func(a core.Running) bool { return a.Attempt.N == n })
	if err := os.RemoveAll(filepath.Join(d.dir, fmt.Sprint(n))); err != nil {
		d.t.Fatal(err)
	}
}

// check compares the attempt that has filled the disk, and all that were ended so far. 0: the disk
// is full, but no attempt has filled it; -1: it is not full.
func (d *fullDisk) check(filler int, ended ...int) {
	d.t.Helper()
	got := -1
	if full := d.guard.FullDisk([]core.Place{{Disk: 0, Path: d.dir}}); full != nil {
		got = full.Filler.N
		if named := strings.Contains(full.Reason, filepath.Join(d.dir, fmt.Sprint(got))+" take "); !strings.Contains(full.Reason, d.dir) || named != (got > 0) {
			d.t.Errorf("the reason is %s", full.Reason)
		}
	}
	if got != filler || !slices.Equal(d.ended, ended) {
		d.t.Errorf("attempt %d has filled the disk, want %d; the guard has ended %v, want %v", got, filler, d.ended, ended)
	}
}

// TestFiller: the attempt that filled a disk is the largest of those that wrote their share of what
// was free when they began.
func TestFiller(t *testing.T) {
	d := newFullDisk(t)
	d.begin(1, 10<<10)
	d.begin(2, 10<<10)
	d.write(1, 70)
	d.check(-1)
	d.free = 10 << 20
	d.check(0) // other files have filled it: 70 MiB are no share of 10 GiB
	d.begin(3, 150)
	d.write(3, 66)
	d.check(0) // it was full a moment ago
	d.free = 10 << 20
	d.check(3, 3) // smaller, but beyond its share

	// Others learn of it also after its files are removed, until the disk is full again.
	d.remove(3)
	d.free = 1 << 30
	d.check(3, 3)
	d.free = 10 << 20
	d.check(0, 3)
	d.begin(4, 80)
	d.write(4, 68)
	d.free = 0
	d.check(4, 3, 4)
}

// TestFillerAlone: an attempt alone on a small disk has filled it if it has taken more than other
// files, which may be those of its job.
func TestFillerAlone(t *testing.T) {
	for _, c := range []struct{ free, size, left, filler int64 }{
		{118, 92, 26, 1},
		{118, 70, 5, 1}, // others have taken 43 MiB
		{218, 70, 5, 0}, // others have taken 143 MiB
		{50, 97, 10, 1}, // it began while files were removed
		{150, 60, 90, -1},
	} {
		d := newFullDisk(t)
		d.begin(1, c.free)
		d.write(1, c.size)
		d.free = c.left << 20
		if c.filler > 0 {
			d.check(1, 1)
			continue
		}
		d.check(int(c.filler))
	}
}

// TestFillerBegan: the free space at the start of an attempt is at least what it has taken.
func TestFillerBegan(t *testing.T) {
	d := newFullDisk(t)
	d.begin(1, 50)
	d.write(1, 97)
	d.free = 10 << 20
	full := d.guard.FullDisk([]core.Place{{Disk: 0, Path: d.dir}})
	if want := "take 97 MiB of the 107 MiB that were free when it began, and 10 MiB are free now"; full == nil || !strings.Contains(full.Reason, want) {
		t.Errorf("got %+v, want %q", full, want)
	}
}

// TestPrivateTmp: what an attempt writes to its private /tmp counts like its other files, on the disk where it is.
func TestPrivateTmp(t *testing.T) {
	d := newFullDisk(t)
	d.begin(1, 150)
	tmp := filepath.Join(d.dir, "run/7/tmp")
	if err := os.MkdirAll(tmp, 0o777); err != nil {
		t.Fatal(err)
	}
	d.attempts[0].Tmp = tmp
	d.write(1, 66)
	if err := os.Rename(filepath.Join(d.dir, "1/f"), tmp+"/f"); err != nil {
		t.Fatal(err)
	}
	d.write(1, 10)
	d.free = 10 << 20
	other := t.TempDir()
	if full := d.guard.FullDisk([]core.Place{{Disk: 1, Path: other}}); full == nil || full.Filler.N != 0 {
		t.Errorf("it has filled another disk: %+v", full)
	}
	full := d.guard.FullDisk([]core.Place{{Disk: 0, Path: d.dir}})
	if full == nil || full.Filler.N != 1 || !strings.Contains(full.Reason, "/1 and its private /tmp take 76 MiB") {
		t.Errorf("got %+v", full)
	}
}

// TestSlowDisk: a disk that does not answer does not keep the guard from another disk.
func TestSlowDisk(t *testing.T) {
	d := newFullDisk(t)
	d.begin(1, 200)
	d.write(1, 180)
	d.free = 0
	slow := t.TempDir()
	asked, answer := make(chan struct{}), make(chan struct{})
	d.guard.Disks.cfg.Free = func(path string) (int64, error) {
		if path == slow {
			close(asked)
			<-answer
			return 0, errors.New("it was too slow")
		}
		return d.free, nil
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		d.guard.FullDisk([]core.Place{{Disk: 1, Path: slow}})
	}()
	defer func() { close(answer); <-ended }()
	<-asked
	checked := make(chan struct{})
	go func() {
		defer close(checked)
		d.guard.note(0, d.free)
		d.check(1, 1)
	}()
	select {
	case <-checked:
	case <-time.After(time.Minute):
		t.Fatal("the guard of a full disk still waits for another disk")
	}
}

// TestRemoveThroughLink: a job replaces its directories by links to those of another job. Removing its files
// removes nothing of the other job.
func TestRemoveThroughLink(t *testing.T) {
	dir := t.TempDir()
	s, err := Claim(Config{Dir: dir, Disks: []string{dir}, Layout: datadir.Layout{Daemon: "tracker", Marker: "marker", Dirs: []string{core.JobsDir}}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	jobs := filepath.Join(dir, core.JobsDir)
	run := filepath.Join(jobs, "job_1_2/home-00000/run")
	if err := errors.Join(os.MkdirAll(filepath.Dir(run), 0o777), os.MkdirAll(jobs+"/job_1_1/a", 0o777), os.WriteFile(run, nil, 0o666),
		os.Symlink("../job_1_2/home-00000", jobs+"/job_1_1/home-00000")); err != nil {
		t.Fatal(err)
	}
	if err := s.Remove(jobs + "/job_1_1/home-00000/run"); err == nil {
		t.Error("no error")
	}
	for _, name := range []string{"/job_1_1/home-00000", "/job_1_1/a", "/job_1_1", "/job_1_3/a"} {
		if err := s.Remove(jobs + name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := os.Stat(run); err != nil {
		t.Errorf("the file of the other job: %v", err)
	}
	if _, err := os.Stat(jobs + "/job_1_1"); err == nil {
		t.Error("the job's directory is left")
	}
}
