package tasktracker

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quernmr/quern/wire"
)

// TestDiskFails: a disk that cannot be written is not used any more. Its outputs are
// reported lost, its homes gather again, and attempts use the other disk.
func TestDiskFails(t *testing.T) {
	good, bad := t.TempDir(), filepath.Join(t.TempDir(), "disk")
	l := startUnregistered(t, Config{ID: "t1", Dir: good, Disks: []string{bad, good}})
	l.connect(1)
	onBad := l.succeed(wire.Map, 0, doMap).Output // round robin: the first attempt uses the first disk
	onGood := l.succeed(wire.Map, 1, doMap).Output
	l.send(&wire.SetHome{Epoch: 1, Job: job1, Partition: 0, Generation: wire.Generation{Epoch: 1, N: 1}, Maps: 2})
	l.send(wire.OutputsOf(1, job1, *onBad, *onGood))
	await(l, func(h *wire.HomeReport) bool { return h.Complete })

	if err := errors.Join(os.RemoveAll(bad), os.WriteFile(bad, nil, 0o666)); err != nil {
		t.Fatal(err)
	}
	// Disks are used round robin: one of two attempts gets the bad one.
	first, second := l.launch(wire.Map, 2, doSucceed), l.launch(wire.Map, 3, doSucceed)
	capacity := await[*wire.Capacity](l, nil)
	if capacity.MapSlots != 2 || capacity.ReduceSlots != 2 || !strings.Contains(capacity.Reason, bad) {
		t.Errorf("capacity is %+v", capacity)
	}
	lost := await[*wire.OutputLost](l, nil)
	if lost.Map != onBad.Map || lost.Attempt != onBad.Attempt || !strings.Contains(lost.Reason, bad) {
		t.Errorf("lost is %+v", lost)
	}
	again := l.succeed(wire.Map, 0, doMap).Output
	l.send(wire.OutputsOf(1, job1, *again))
	await(l, func(h *wire.HomeReport) bool { return h.Complete })
	for range 3 {
		l.succeed(wire.Map, 4, doSucceed)
	}
	l.conn.Close()
	inventory := l.connect(2)
	failed := 0
	for _, r := range inventory.Attempts {
		if (r.Attempt == first || r.Attempt == second) && r.State == wire.AttemptFailed { // the other one may still run
			failed++
		}
	}
	if failed != 1 {
		t.Errorf("%d attempts failed with the disk", failed)
	}
}

// TestDiskReturns: the log says that a disk failed, once, and that it is used again.
func TestDiskReturns(t *testing.T) {
	logged := make(chan string, 1000)
	disk := filepath.Join(t.TempDir(), "disk")
	l := startUnregistered(t, Config{
		ID: "t1", Dir: t.TempDir(), Disks: []string{disk}, hooks: hooks{probeAgain: 100 * time.Millisecond},
		Logger: slog.New(slog.NewTextHandler(lineWriter(logged), nil)),
	})
	l.lease = 10 * time.Second // for a heartbeat every 3 s
	l.connect(1)
	if err := errors.Join(os.RemoveAll(disk), os.WriteFile(disk, nil, 0o666)); err != nil {
		t.Fatal(err)
	}
	l.launch(wire.Map, 0, doSucceed)
	await(l, func(c *wire.Capacity) bool { return c.MapSlots == 0 })
	await[*wire.Heartbeat](l, nil) // meanwhile it is probed again
	if err := errors.Join(os.Remove(disk), os.Mkdir(disk, 0o777)); err != nil {
		t.Fatal(err)
	}
	await(l, func(c *wire.Capacity) bool { return c.MapSlots == 2 })
	if err := l.stop(); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for len(logged) > 0 {
		if line := <-logged; strings.Contains(line, disk) && strings.Contains(line, "msg=\"disk ") {
			lines = append(lines, line)
		}
	}
	if len(lines) != 2 || !strings.Contains(lines[0], "disk failed") || !strings.Contains(lines[1], "disk works again, and is used") {
		t.Errorf("it logged %q", lines)
	}
}

// sizeOf returns the size of the files below a directory.
func sizeOf(dir string) (sum int64) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // it was just removed
		}
		if info, err := d.Info(); err == nil && info.Mode().IsRegular() {
			sum += info.Size()
		}
		return nil
	})
	return sum
}

// startOnSmallDisk starts a tracker with a disk of 100 MiB for attempts.
func startOnSmallDisk(t *testing.T) (l *leader, disk string) {
	const size = 100 << 20
	disk = t.TempDir()
	l = startUnregistered(t, Config{ID: "t1", Dir: t.TempDir(), Disks: []string{disk}, hooks: hooks{free: func(dir string) (int64, error) {
		if dir != disk {
			return size, nil
		}
		return max(size-sizeOf(disk), 0), nil
	}}})
	l.connect(1)
	return l, disk
}

// TestAttemptFillsDisk: an attempt that fills a disk fails, with that reason. Another
// attempt there continues, and the disk stays in use.
func TestAttemptFillsDisk(t *testing.T) {
	l, disk := startOnSmallDisk(t)
	other := l.launch(wire.Map, 0, doCommit)
	await(l, func(r *wire.Report) bool { return r.Attempt == other && r.State == wire.AttemptReady })
	r := l.fail(doFill)
	if !strings.Contains(r.Error, "it has filled disk "+disk+" of tracker t1: its files in "+filepath.Join(disk, "jobs", job1.String())+"/attempt_") {
		t.Errorf("error is %q", r.Error)
	}
	l.send(&wire.Grant{Epoch: 1, Attempt: other})
	for done := false; !done; {
		switch m := receive(t, l.received, "the other attempt's end").(type) {
		case *wire.Capacity:
			t.Errorf("capacity is %+v", m)
		case *wire.Report:
			if done = m.Attempt == other && m.State.Final(); done && m.State != wire.AttemptSucceeded {
				t.Errorf("it is %v: %+v", m.State, m.Result)
			}
		}
	}
	l.succeed(wire.Map, 2, doSucceed)
}

// TestOthersFindDiskFull: if an attempt has filled a disk, others that find the disk full end as
// killed, which does not count against their tasks. The attempt fails, and the disk stays in use.
func TestOthersFindDiskFull(t *testing.T) {
	l, disk := startOnSmallDisk(t)
	other := l.launch(wire.Map, 0, doFindFull)
	await(l, func(r *wire.Report) bool { return r.Attempt == other && r.State == wire.AttemptReady })
	filler := l.launch(wire.Map, 1, doFill)
	began := false
	waitUntil(t, "the full disk", func() bool {
		_, err := os.Lstat(filepath.Join(disk, "jobs", job1.String(), filler.String()))
		began = began || err == nil
		return sizeOf(disk) >= 90<<20 || began && err != nil // or the tracker was faster
	})
	l.send(&wire.Grant{Epoch: 1, Attempt: other})
	for ended := 0; ended < 2; {
		switch m := receive(t, l.received, "the attempts' ends").(type) {
		case *wire.Capacity:
			t.Errorf("capacity is %+v", m)
		case *wire.Report:
			if !m.State.Final() {
				continue
			}
			ended++
			want, text := wire.AttemptFailed, "it has filled disk "+disk
			if m.Attempt == other {
				want, text = wire.AttemptKilled, "no space left on device (its own disk is "+disk+" of tracker t1) ("+filler.String()+" has filled disk "+disk
			}
			if m.State != want || !strings.Contains(m.Result.Error, text) {
				t.Errorf("%v has %v: %s", m.Attempt, m.State, m.Result.Error)
			}
		}
	}
	l.succeed(wire.Map, 2, doSucceed)
}

// TestAttemptExceedsDiskLimit: an attempt with more files than the job or the tracker allows
// fails. The error names the limit, the bytes and the directory. Quern's own files do not count.
func TestAttemptExceedsDiskLimit(t *testing.T) {
	for name, c := range map[string]struct {
		job, tracker int64
		want         string
	}{
		"job":          {job: 20 << 20, want: "the 20971520 it may have there (" + wire.LocalBytesProperty + ")"},
		"tracker":      {tracker: 30 << 20, want: "the 31457280 it may have there (-attempt-disk-bytes of tracker t1)"},
		"lower of two": {job: 20 << 20, tracker: 30 << 20, want: wire.LocalBytesProperty},
	} {
		t.Run(name, func(t *testing.T) {
			l := startUnregistered(t, Config{ID: "t1", Dir: t.TempDir(), AttemptDisk: c.tracker})
			l.connect(1)
			task := wire.TaskID{Job: job1, Kind: wire.Map}
			within := l.launchAs(task, wire.Launch{Index: doSpill, LocalBytes: c.job})
			l.final(within, wire.AttemptSucceeded)
			id := l.launchAs(task, wire.Launch{Index: doFill, LocalBytes: c.job})
			r := l.final(id, wire.AttemptFailed)
			if dir := l.path("jobs", job1.String(), id.String(), "work"); !strings.Contains(r.Error, "its files in "+dir+" take at least ") || !strings.Contains(r.Error, c.want) {
				t.Errorf("error is %q", r.Error)
			}
		})
	}
}

// TestFullByAttempt: if an attempt fills a disk before the tracker can end it, only
// attempts that cannot write fail. The next attempt begins when its files are removed.
func TestFullByAttempt(t *testing.T) {
	disk := t.TempDir()
	if err := unix.Mount("none", disk, "tmpfs", 0, "size=100m"); err != nil {
		t.Skipf("cannot mount a small file system: %v", err)
	}
	defer unix.Unmount(disk, unix.MNT_DETACH)
	l := startUnregistered(t, Config{ID: "t1", Dir: t.TempDir(), Disks: []string{disk}})
	l.connect(1)
	other := l.launch(wire.Map, 0, doCommit)
	await(l, func(r *wire.Report) bool { return r.Attempt == other && r.State == wire.AttemptReady })
	for range 3 { // each writes twice the size of the disk
		if r := l.fail(doGrow); !strings.Contains(r.Error, disk) {
			t.Errorf("error is %q", r.Error)
		}
	}
	l.send(&wire.Grant{Epoch: 1, Attempt: other})
	l.final(other, wire.AttemptSucceeded)
	l.succeed(wire.Map, 2, doSucceed)
}

// TestLogsFillDisk: logs have a limit of their own. If the disk is too small for them, the attempt
// ends as killed and names the disk.
func TestLogsFillDisk(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("none", dir, "tmpfs", 0, "size=20m"); err != nil {
		t.Skipf("cannot mount a small file system: %v", err)
	}
	defer unix.Unmount(dir, unix.MNT_DETACH)
	l := startUnregistered(t, Config{ID: "t1", Dir: dir, Disks: []string{t.TempDir()}, Logs: Logs{Attempt: 100 << 20}})
	l.connect(1)
	r := l.final(l.launch(wire.Map, 0, doWriteLongLog), wire.AttemptKilled)
	if !strings.Contains(r.Error, "cannot write its log on disk "+dir) || !strings.Contains(r.Error, "no space left") {
		t.Errorf("error is %q", r.Error)
	}
	l.succeed(wire.Map, 1, doSucceed) // the failed attempt's logs were cut
}

// TestFullDiskUnused: an attempt that finds a disk full of other files ends as killed. The
// tracker reports the disk, keeps its slots, and uses the other disk.
func TestFullDiskUnused(t *testing.T) {
	disk := t.TempDir()
	if err := unix.Mount("none", disk, "tmpfs", 0, "size=40m"); err != nil {
		t.Skipf("cannot mount a small file system: %v", err)
	}
	defer unix.Unmount(disk, unix.MNT_DETACH)
	l := startUnregistered(t, Config{ID: "t1", Dir: t.TempDir(), Disks: []string{disk, t.TempDir()}})
	l.connect(1)
	l.succeed(wire.Map, 0, doSucceed) // on the first disk
	l.succeed(wire.Map, 1, doSucceed)
	if err := os.WriteFile(filepath.Join(disk, "full"), make([]byte, 38<<20), 0o666); err != nil {
		t.Fatal(err)
	}
	if r := l.final(l.launch(wire.Map, 0, doSpill), wire.AttemptKilled); !strings.Contains(r.Error, "no space left on device (disk "+disk+" of tracker t1 is full, and none of its attempts has filled it") {
		t.Errorf("error is %q", r.Error)
	}
	capacity := await[*wire.Capacity](l, nil)
	if capacity.MapSlots != 2 || capacity.ReduceSlots != 2 || !strings.Contains(capacity.Reason, disk) {
		t.Errorf("capacity is %+v", capacity)
	}
	for n := range 3 {
		l.succeed(wire.Map, 2+n, doSpill)
	}
}

// TestDiskIsFull: other files fill the only disk. The attempt ends as killed, and the tracker has
// no slots.
func TestDiskIsFull(t *testing.T) {
	disk := t.TempDir()
	if err := unix.Mount("none", disk, "tmpfs", 0, "size=40m"); err != nil {
		t.Skipf("cannot mount a small file system: %v", err)
	}
	defer unix.Unmount(disk, unix.MNT_DETACH)
	l := startUnregistered(t, Config{ID: "t1", Dir: t.TempDir(), Disks: []string{disk}})
	l.connect(1)
	l.succeed(wire.Map, 0, doSucceed)
	if err := os.WriteFile(filepath.Join(disk, "full"), make([]byte, 30<<20), 0o666); err != nil {
		t.Fatal(err)
	}
	r := l.final(l.launch(wire.Map, 0, doSpill), wire.AttemptKilled)
	if !strings.Contains(r.Error, "no space left") {
		t.Errorf("error is %q", r.Error)
	}
	capacity := await[*wire.Capacity](l, nil)
	if capacity.MapSlots != 0 || capacity.ReduceSlots != 0 || !strings.Contains(capacity.Reason, disk) {
		t.Errorf("capacity is %+v", capacity)
	}
	l.final(l.launch(wire.Map, 1, doSucceed), wire.AttemptKilled)
	l.succeed(wire.Cleanup, 0, doSucceed) // service attempts still run
}
