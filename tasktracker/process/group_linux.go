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

// groupWait limits the wait for the death of a killed group.
const groupWait = 2 * time.Second

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
	state byte
	start uint64 // in clock ticks since the machine started
}

func (p procStat) alive() bool { return p.state != 'Z' && p.state != 'X' }

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
	return procStat{fields[0][0], start}, err
}

// appendRecord adds a process to the file of workers.
func appendRecord(file string, pid int) error {
	p, err := readProcess(pid)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "%d %d\n", pid, p.start)
	return errors.Join(err, f.Close())
}

func bootID() (string, error) {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(id)), err
}

// killRecorded kills the recorded process groups that still exist.
func killRecorded(file string) error {
	data, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	boot, err := bootID()
	if err != nil {
		return err
	}
	head, rest, _ := strings.Cut(string(data), "\n")
	if head != boot {
		return nil // the machine was restarted
	}
	for line := range strings.Lines(rest) {
		var pid int
		var start uint64
		if _, err := fmt.Sscanf(line, "%d %d\n", &pid, &start); err != nil || pid <= 1 {
			continue // a torn write
		}
		killGroup(pid, start)
	}
	return nil
}

// killGroup kills a worker's group. If its leader has ended, another group may have the
// number: then it kills only members with a worker's environment.
func killGroup(group int, start uint64) {
	leader, err := readProcess(group)
	switch {
	case err == nil && leader.start == start:
		if g, err := syscall.Getpgid(group); err == nil && g == group {
			_ = syscall.Kill(-group, syscall.SIGKILL)
		}
	case err == nil:
		return // another process has the number, so the group has ended
	default:
		for _, pid := range otherMembers(group) {
			if p, err := readProcess(pid); err == nil && p.start >= start && inWorkerMode(pid) {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	}
	awaitDeath(group, start)
}

// awaitDeath waits for a killed worker of another tracker process, and its group.
func awaitDeath(pid int, start uint64) {
	for end := time.Now().Add(groupWait); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if p, err := readProcess(pid); err != nil || p.start != start || !p.alive() {
			break
		}
	}
	awaitGroup(pid)
}

func inWorkerMode(pid int) bool {
	env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		return false
	}
	for v := range bytes.SplitSeq(env, []byte{0}) {
		if string(v) == workerMode {
			return true
		}
	}
	return false
}

// newRecord starts a new file of workers.
func newRecord(file string) error {
	boot, err := bootID()
	if err != nil {
		return err
	}
	return os.WriteFile(file, []byte(boot+"\n"), 0o666)
}
