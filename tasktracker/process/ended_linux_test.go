package process

import (
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
)

// mainEndsVariable makes this binary end its main thread. The rest ends with its standard input.
const mainEndsVariable = "QUERN_TEST_MAIN_ENDS"

var _ = endMainThread() // only the initialisation is sure to run there

func endMainThread() (none struct{}) {
	if os.Getenv(mainEndsVariable) == "" {
		return
	}
	go func() {
		io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	runtime.LockOSThread()
	syscall.Syscall(syscall.SYS_EXIT, 0, 0, 0)
	return
}

// TestAllEnded: children that have ended are not left over, unless there are many. One without
// its main thread still runs.
func TestAllEnded(t *testing.T) {
	var pids []int
	for range maxEnded + 1 {
		cmd := exec.Command("true")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		defer cmd.Wait()
		awaitExit(cmd.Process.Pid)
		pids = append(pids, cmd.Process.Pid)
	}
	if !allEnded(nil) || !allEnded(pids[1:]) {
		t.Error("ended children are left over")
	}
	if allEnded(pids) {
		t.Errorf("%d children take numbers of the machine", len(pids))
	}
	if cat := startEcho(t, false); allEnded([]int{pids[0], cat.pid}) {
		t.Error("a running child is not left over")
	}

	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), mainEndsVariable+"=1")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for state := byte(0); state != 'Z'; runtime.Gosched() {
		p, err := readProcess(cmd.Process.Pid)
		if err != nil {
			t.Fatal(err)
		}
		state = p.state
	}
	if allEnded([]int{cmd.Process.Pid}) {
		t.Error("a child without its main thread is not left over")
	}
	in.Close()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
