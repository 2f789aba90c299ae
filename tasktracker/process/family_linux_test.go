package process

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
)

// TestEarlierChildrenAreSpared: a child that was there before the first worker lives on, as one that a
// shell script started before it executed the tracker.
func TestEarlierChildrenAreSpared(t *testing.T) {
	earlier := exec.Command("cat")
	in, err := earlier.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := earlier.Start(); err != nil {
		t.Fatal(err)
	}
	spareEarlier()
	killStrangers()
	in.Close()
	if err := earlier.Wait(); err != nil {
		t.Errorf("it ended: %v", err)
	}
}

// TestStrangersEnd: a child that this process did not start through StartChild is killed and reaped.
func TestStrangersEnd(t *testing.T) {
	spareEarlier()
	stranger := exec.Command("cat")
	if _, err := stranger.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := stranger.Start(); err != nil {
		t.Fatal(err)
	}
	killStrangers()
	if err := unix.Kill(stranger.Process.Pid, 0); err != unix.ESRCH {
		t.Errorf("signal to the stranger: %v, want %v", err, unix.ESRCH)
		stranger.Process.Kill()
	}
}

// TestHangingExecution: while a file system does not answer for a program that is being started, other
// programs start, and strangers end. The program is no stranger.
func TestHangingExecution(t *testing.T) {
	spareEarlier()
	name := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(name, []byte("#!/bin/sh\nexit 7\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	// An execution waits until the lease has ended.
	if _, err := unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_WRLCK); err != nil {
		t.Skipf("no lease on a file of %s: %v", t.TempDir(), err)
	}
	slow := exec.Command(name)
	started := make(chan error, 1)
	go offMainThread(func() {
		ended, err := StartChild(slow)
		if err == nil {
			defer ended()
			err = slow.Wait()
		}
		started <- err
	})
	for lease := unix.F_WRLCK; lease == unix.F_WRLCK; runtime.Gosched() {
		if lease, err = unix.FcntlInt(f.Fd(), unix.F_GETLEASE, 0); err != nil {
			t.Fatal(err)
		}
	}
	stranger := startEcho(t, false)
	other := exec.Command("true")
	ended, err := StartChild(other)
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Wait(); err != nil {
		t.Error(err)
	}
	ended()
	killStrangers()
	if stranger.lives() {
		t.Error("a stranger lives")
	}
	if _, err := unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_UNLCK); err != nil {
		t.Fatal(err)
	}
	if err := <-started; err == nil || err.Error() != "exit status 7" {
		t.Errorf("the program ended: %v", err)
	}
}

// offMainThread calls f on another thread than the main one.
func offMainThread(f func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if unix.Gettid() != os.Getpid() {
		f()
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		offMainThread(f)
	}()
	<-done
}

// TestNumberOfEndedChild: a child that got the number of an ended one is no stranger.
func TestNumberOfEndedChild(t *testing.T) {
	first := exec.Command("true")
	ended, err := StartChild(first)
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Wait(); err != nil {
		t.Fatal(err)
	}
	second := new(exec.Cmd)
	family.mu.Lock()
	family.started[first.Process.Pid] = second
	family.mu.Unlock()
	ended()
	family.mu.Lock()
	defer family.mu.Unlock()
	if family.started[first.Process.Pid] != second {
		t.Error("the second child is a stranger")
	}
	delete(family.started, first.Process.Pid)
}

// TestSurvivor: of a process that cannot be killed, only the first worker's end waits. Others are still
// ended, with the children that they leave.
func TestSurvivor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		alive := []int{7}
		surviving := make(map[int]bool)
		took := func() time.Duration {
			began := time.Now()
			endAll(func() []int { return slices.Clone(alive) }, surviving, func(pid int) bool {
				i := slices.Index(alive, pid)
				switch {
				case pid == 7:
					return false
				case pid > 20:
					alive[i] = pid - 1 // its child
				default:
					alive = slices.Delete(alive, i, i+1)
				}
				return true
			})
			return time.Since(began)
		}
		if first, second := took(), took(); first < groupWait || second > 0 {
			t.Errorf("the first call took %v, the second one %v", first, second)
		}
		alive = append(alive, 23)
		if later := took(); later > groupWait/2 || !slices.Equal(alive, []int{7}) {
			t.Errorf("a later call took %v, and %v are left", later, alive)
		}
		alive = nil
		if took(); len(surviving) != 0 {
			t.Errorf("%v are still entered", surviving)
		}
	})
}

// BenchmarkKillStrangers measures the search for strangers where there are none, which each attempt
// costs.
func BenchmarkKillStrangers(b *testing.B) {
	for b.Loop() {
		killStrangers()
	}
}
