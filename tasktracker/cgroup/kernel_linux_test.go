package cgroup

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"
)

// asChild makes this test binary a process that takes memory or processes, once it reads a line.
const asChild = "QUERN_TEST_CHILD"

func TestMain(m *testing.M) {
	switch os.Getenv(asChild) {
	case "memory":
		takeMemory()
	case "processes":
		takeProcesses()
	}
	os.Exit(m.Run())
}

func takeMemory() {
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	var taken [][]byte
	for range 256 {
		piece := make([]byte, 1<<20)
		for i := range piece {
			piece[i] = 1
		}
		taken = append(taken, piece)
	}
	runtime.KeepAlive(taken)
	os.Exit(0)
}

// takeProcesses prints how many processes it could start, and waits.
func takeProcesses() {
	in := bufio.NewReader(os.Stdin)
	_, _ = in.ReadString('\n')
	started := 0
	for ; started < 300; started++ {
		if exec.Command("sleep", "1000").Start() != nil {
			break
		}
	}
	fmt.Println(started)
	_, _ = in.ReadString('\n')
	os.Exit(0)
}

// openHere opens the groups that this machine permits.
func openHere(t *testing.T) (*Groups, Found) {
	g, found := Open(Config{File: filepath.Join(t.TempDir(), "record"), Cores: 1, Children: func(int) []int { return nil }, Wait: 30 * time.Second})
	if g == nil {
		t.Skipf("this machine permits no control groups: %v", found)
	}
	t.Log(found)
	t.Cleanup(func() {
		if err := g.Close(); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
	})
	return g, found
}

// startLimited starts this binary in a limited group.
func startLimited(t *testing.T, g *Groups, what string, l Limits) (cmd *exec.Cmd, w *Group, in io.Writer, out *bufio.Reader) {
	cmd = exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), asChild+"="+what)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	w = g.Add()
	w.Prepare(cmd.SysProcAttr)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Started()
	if err := w.Limit(cmd.Process.Pid, l); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(in, "\n"); err != nil {
		t.Fatal(err)
	}
	return cmd, w, in, bufio.NewReader(stdout)
}

// TestKernelMemory: the kernel kills a process that needs more than the memory of its group, and this is found.
func TestKernelMemory(t *testing.T) {
	runtime.LockOSThread() // Pdeathsig
	defer runtime.UnlockOSThread()
	g, found := openHere(t)
	if found.Memory == 0 {
		t.Skipf("this machine does not limit memory by control groups: %v", found)
	}
	cmd, w, _, _ := startLimited(t, g, "memory", Limits{Memory: 64 << 20})
	defer w.Remove()
	if err := cmd.Wait(); err == nil || err.Error() != "signal: killed" {
		t.Errorf("the process ended: %v", err)
	}
	// Version 1 lets a process that ends exceed the limit by some pages.
	if e := w.Exhausted(); !e.Memory || e.Peak < 32<<20 || e.Peak > 65<<20 {
		t.Errorf("found %+v", e)
	}
}

// TestKernelTasks: the kernel refuses processes beyond the number of a group, and this is found.
func TestKernelTasks(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	g, found := openHere(t)
	if found.Pids == 0 {
		t.Skipf("this machine does not limit processes by control groups: %v", found)
	}
	cmd, w, _, out := startLimited(t, g, "processes", Limits{Tasks: 100})
	defer w.Remove()
	var started int
	if _, err := fmt.Fscan(out, &started); err != nil || started >= 100 {
		t.Errorf("%d processes, at most 100 with all threads: %v", started, err)
	}
	if e := w.Exhausted(); !e.Tasks || e.Memory {
		t.Errorf("found %+v", e)
	}
	w.Kill()
	if err := cmd.Wait(); err == nil || err.Error() != "signal: killed" {
		t.Errorf("the process ended: %v", err)
	}
}

// TestKernel: the groups that this machine permits.
func TestKernel(t *testing.T) {
	g, _ := openHere(t)
	child := exec.Command("sleep", "1000")
	child.SysProcAttr = &syscall.SysProcAttr{}
	w := g.Add()
	w.Prepare(child.SysProcAttr)
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	w.Started()
	if err := w.Limit(child.Process.Pid, Limits{Memory: 1 << 30, Tasks: 100, Cores: 1, Weight: 2}); err != nil {
		t.Error(err)
	}
	if members, ok := w.Members(); !ok || !slices.Equal(members, []int{child.Process.Pid}) {
		t.Errorf("members %v, %v, want %d", members, ok, child.Process.Pid)
	}
	w.Kill()
	if err := child.Wait(); err == nil || err.Error() != "signal: killed" {
		t.Errorf("the process ended: %v", err)
	}
	dirs := w.dirs
	w.Remove()
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	for _, d := range dirs {
		if _, err := os.Stat(filepath.Dir(d.path)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is left: %v", filepath.Dir(d.path), err)
		}
	}
}
