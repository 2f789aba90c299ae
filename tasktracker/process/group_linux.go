package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// processAttributes puts the worker into a new process group. The kernel kills the worker
// if the tracker dies.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// reap kills the rest of the group before it reaps the leader: until the leader is reaped,
// no other group can get the number.
func (w *process) reap() error {
	awaitExit(w.pid())
	w.Kill()
	awaitGroup(w.pid())
	w.limiting.Lock()
	defer w.limiting.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reaped = true
	return w.cmd.Wait()
}

// awaitExit waits until a child has ended, and does not reap it.
func awaitExit(pid int) {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// awaitGroup waits until no member of a killed group is alive, except for its unreaped
// leader.
func awaitGroup(group int) {
	for end := time.Now().Add(groupWait); time.Now().Before(end); time.Sleep(time.Millisecond) {
		alive := false
		for _, pid := range otherMembers(group) {
			p, err := readProcess(pid)
			alive = alive || err == nil && p.alive()
		}
		if !alive {
			return
		}
	}
}

// otherMembers returns the members of a process group without its leader.
func otherMembers(group int) []int {
	return slices.DeleteFunc(groupMembers()[group], func(pid int) bool { return pid == group })
}

// groupMembers returns all processes by group. A system call for each process costs less
// than reading its files in /proc.
func groupMembers() map[int][]int {
	groups := make(map[int][]int)
	dir, err := os.Open("/proc")
	if err != nil {
		return groups
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return groups
	}
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if g, err := syscall.Getpgid(pid); err == nil {
			groups[g] = append(groups[g], pid)
		}
	}
	return groups
}

// procStat has fields of /proc/<pid>/stat.
type procStat struct {
	state   byte // of the main thread
	threads string
	start   uint64 // in clock ticks since the machine started
}

// alive reports whether a process has not ended. Its main thread may have.
func (p procStat) alive() bool {
	return p.state != 'Z' && p.state != 'X' || p.state == 'Z' && p.threads != "1"
}

func readProcess(pid int) (procStat, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return procStat{}, err
	}
	// The name, in parentheses, may have any characters; the fields are after it.
	fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
	if len(fields) < 20 {
		return procStat{}, fmt.Errorf("/proc/%d/stat has %d fields", pid, len(fields))
	}
	start, err := strconv.ParseUint(fields[19], 10, 64)
	return procStat{fields[0][0], fields[17], start}, err
}
