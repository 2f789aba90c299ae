package testbed

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quernmr/quern/integration/processes"
)

// Resources is what a process and its children have used.
type Resources struct {
	Usage
	Memory  int64 // largest sum of their own memory at a time, without pages of files, in bytes
	Written int64 // bytes written to disks, counted when pages get dirty; memory file systems count nothing
}

// memoryPause is the time between two looks at the memory of processes. With 20 ms, a sort on two cores took 7 % longer.
const memoryPause = 100 * time.Millisecond

// Consumed runs a command. Only Linux can tell.
func Consumed(cmd *exec.Cmd) (r Resources, err error) {
	var printed bytes.Buffer
	cmd.Stdout, cmd.Stderr = &printed, &printed
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return r, err
	}
	exited := make(chan error, 1)
	go func() { exited <- awaitExit(cmd.Process.Pid) }()
	tick := time.NewTicker(memoryPause)
	defer tick.Stop()
	for running := true; running; {
		select {
		case err = <-exited:
			running = false
		case <-tick.C:
			r.Memory = max(r.Memory, ownMemory(cmd.Process.Pid))
		}
	}
	r.Elapsed = time.Since(began)
	if err == nil {
		r.Written, err = written(cmd.Process.Pid)
	}
	if failed := cmd.Wait(); failed != nil {
		return r, fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), failed, &printed)
	}
	r.Processor = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return r, err
}

// awaitExit waits for the exit of a child, which stays a zombie: its figures can still be read.
func awaitExit(pid int) error {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// ownMemory returns the memory of a process and of all below it.
func ownMemory(pid int) int64 {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid)) // empty if it has ended
	total := (number(status, "RssAnon:") + number(status, "RssShmem:")) << 10
	for _, child := range processes.Children(pid) {
		total += ownMemory(child)
	}
	return total
}

// written returns the bytes that an exited process has written, with the children that it has waited for.
func written(pid int) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", pid))
	return number(text, "\nwrite_bytes:"), err
}

// number returns the number after a name in a file of /proc; 0 if there is none.
func number(text []byte, name string) int64 {
	_, after, _ := bytes.Cut(text, []byte(name))
	fields := bytes.Fields(after)
	if len(fields) == 0 {
		return 0
	}
	n, err := strconv.ParseInt(string(fields[0]), 10, 64)
	if err != nil {
		return 0
	}
	return n
}
