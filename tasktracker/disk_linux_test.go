package tasktracker

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/quernmr/quern/wire"
)

// TestDiskFails: a disk that cannot be written any more is left. What was on it is
// told to be lost, homes gather anew, attempts go to the other disk.
func TestDiskFails(t *testing.T) {
	good, bad := t.TempDir(), filepath.Join(t.TempDir(), "disk")
	l := startUnwelcome(t, Config{ID: "t1", Dir: good, Disks: []string{bad, good}})
	l.connect(1)
	on := l.succeed(wire.Map, 0, doMap).Output // the first goes to the first disk
	other := l.succeed(wire.Map, 1, doMap).Output
	l.tell(&wire.SetHome{Epoch: 1, Job: job1, Partition: 0, Generation: wire.Generation{Epoch: 1, N: 1}, Maps: 2})
	l.tell(&wire.Outputs{Epoch: 1, Job: job1, Outputs: []wire.MapOutput{*on, *other}})
	await(l, func(h *wire.HomeReport) bool { return h.Complete })

	if err := errors.Join(os.RemoveAll(bad), os.WriteFile(bad, nil, 0o666)); err != nil {
		t.Fatal(err)
	}
	// Disks are used in turn: one of two attempts meets the bad one.
	first, second := l.launch(wire.Map, 2, doSucceed), l.launch(wire.Map, 3, doSucceed)
	capacity := await[*wire.Capacity](l, nil)
	if capacity.MapSlots != 2 || capacity.ReduceSlots != 2 || !strings.Contains(capacity.Reason, bad) {
		t.Errorf("capacity is %+v", capacity)
	}
	lost := await[*wire.OutputLost](l, nil)
	if lost.Map != on.Map || lost.Attempt != on.Attempt || !strings.Contains(lost.Reason, bad) {
		t.Errorf("lost is %+v", lost)
	}
	again := l.succeed(wire.Map, 0, doMap).Output
	l.tell(&wire.Outputs{Epoch: 1, Job: job1, Outputs: []wire.MapOutput{*again}})
	await(l, func(h *wire.HomeReport) bool { return h.Complete })
	for range 3 {
		l.succeed(wire.Map, 4, doSucceed)
	}
	l.conn.Close()
	inventory := l.connect(2)
	failed := 0
	for _, r := range inventory.Attempts {
		if r.Attempt == first || r.Attempt == second {
			if r.State != wire.AttemptSucceeded {
				failed++
			}
		}
	}
	if failed != 1 {
		t.Errorf("%d attempts have failed with the disk", failed)
	}
}

// TestDiskIsFull: the attempt fails, and without another disk the slots go.
func TestDiskIsFull(t *testing.T) {
	disk := t.TempDir()
	if err := unix.Mount("none", disk, "tmpfs", 0, "size=40m"); err != nil {
		t.Skipf("cannot mount a small file system: %v", err)
	}
	defer unix.Unmount(disk, unix.MNT_DETACH)
	l := startUnwelcome(t, Config{ID: "t1", Dir: t.TempDir(), Disks: []string{disk}})
	l.connect(1)
	l.succeed(wire.Map, 0, doSucceed)
	if err := os.WriteFile(filepath.Join(disk, "full"), make([]byte, 30<<20), 0o666); err != nil {
		t.Fatal(err)
	}
	r := l.fail(doSpill)
	if !strings.Contains(r.Error, "no space left") {
		t.Errorf("error is %q", r.Error)
	}
	capacity := await[*wire.Capacity](l, nil)
	if capacity.MapSlots != 0 || capacity.ReduceSlots != 0 || !strings.Contains(capacity.Reason, disk) {
		t.Errorf("capacity is %+v", capacity)
	}
	l.final(l.launch(wire.Map, 1, doSucceed), wire.AttemptKilled)
	l.succeed(wire.Cleanup, 0, doSucceed) // what takes no slot goes on
}
