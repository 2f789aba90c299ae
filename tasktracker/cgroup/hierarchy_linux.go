package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// prefix begins the names of daemons' groups.
const prefix = "quern-"

// hierarchy is a mounted hierarchy in which the daemon has its own group.
type hierarchy struct {
	mount
	parent string   // directory of the group in which dir is
	dir    string   // of the daemon's group
	limits []string // controllers that limit groups here
	weight int      // of the daemon's group, in cores
	sys    *system
}

// system is what tests with plain files replace.
type system struct {
	mkdir, rmdir func(dir string) error
	enter        func(version int, dir, parent string) error // puts a process or thread into a group
	delegated    func(dir string) bool
}

var kernel = system{
	mkdir: func(dir string) error { return os.Mkdir(dir, 0o755) },
	rmdir: unix.Rmdir,
	enter: enter, delegated: delegated,
}

// delegated reports whether systemd delegated a group to its processes.
func delegated(group string) bool {
	var value [1]byte
	for _, name := range []string{"user.delegate", "trusted.delegate"} {
		if n, err := unix.Getxattr(group, name, value[:]); err == nil && n == 1 && value[0] == '1' {
			return true
		}
	}
	return false
}

// enter puts a process into a group of version 2, or this thread into one of version 1 and back. The
// process cannot execute its program: this error shows that the kernel made it.
func enter(version int, dir, parent string) error {
	if version == 1 {
		runtime.LockOSThread()
		if err := set(dir, "tasks", "0"); err != nil {
			runtime.UnlockOSThread()
			return err
		}
		if err := set(parent, "tasks", "0"); err != nil {
			return err // the thread stays locked, so it ends with its goroutine
		}
		runtime.UnlockOSThread()
		return nil
	}
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = syscall.ForkExec(os.DevNull+"/none", []string{"none"}, &syscall.ProcAttr{
		Sys: &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(f.Fd())},
	})
	if errors.Is(err, syscall.ENOTDIR) {
		return nil
	}
	return fmt.Errorf("start a process in %s: %w", dir, err)
}

// set writes a file of a group. It makes no file, so that an absent one is an error.
func set(group, file, value string) error {
	f, err := os.OpenFile(filepath.Join(group, file), os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}

// get reads a file of a group; an unreadable one is empty.
func get(group, file string) string {
	text, err := os.ReadFile(filepath.Join(group, file))
	if err != nil {
		return ""
	}
	return string(text)
}

// open makes the daemon's group, and finds out which of the wanted controllers limit groups here.
func (h *hierarchy) open(wanted []string) error {
	h.limits = wanted
	if err := h.make(); err != nil {
		return err
	}
	if err := h.probe(wanted); err != nil {
		return errors.Join(err, h.sys.rmdir(h.dir))
	}
	return nil
}

// make makes the daemon's group, unless it exists.
func (h *hierarchy) make() error {
	if h.version == 2 {
		for _, c := range h.limits { // fails if the parent has processes; perhaps it is set already
			_ = set(h.parent, "cgroup.subtree_control", "+"+c)
		}
	}
	if err := h.sys.mkdir(h.dir); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if h.version == 2 {
		for _, c := range h.limits { // probe tells what this had no effect for
			_ = set(h.dir, "cgroup.subtree_control", "+"+c)
		}
	}
	if slices.Contains(h.limits, cpu) { // otherwise all workers together would count as one process
		_ = h.limit(h.dir, &Limits{Weight: h.weight}, []string{cpu})
	}
	return nil
}

// probe makes a group, limits it, enters and removes it. Afterwards limits has the controllers that work.
func (h *hierarchy) probe(wanted []string) (err error) {
	dir := filepath.Join(h.dir, "probe")
	if err := h.sys.mkdir(dir); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.sys.rmdir(dir)) }()
	if h.version == 2 {
		if _, err := os.Stat(filepath.Join(dir, "cgroup.kill")); err != nil {
			return fmt.Errorf("this kernel cannot kill control groups: %w", err) // before Linux 5.14
		}
	}
	h.limits = nil
	var failed error
	for _, c := range wanted {
		try := Limits{Memory: 1 << 30, Tasks: 1 << 10, Cores: 1}
		if err := errors.Join(h.limit(dir, &try, []string{c}), h.limit(dir, &Limits{}, []string{c})); err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		h.limits = append(h.limits, c)
	}
	if h.version == 1 && h.limits == nil {
		return failed
	}
	return h.sys.enter(h.version, dir, h.parent)
}

// setting is a file of a group and what is written to it.
type setting struct {
	file, value string
	optional    bool // not all kernels have the file
}

// limit writes limits of controllers to a group.
func (h *hierarchy) limit(dir string, l *Limits, controllers []string) error {
	var err error
	for _, c := range controllers {
		for _, s := range l.settings(h.version, c) {
			if e := set(dir, s.file, s.value); e != nil && !s.optional {
				err = errors.Join(err, e)
			}
		}
	}
	return err
}

// period is that of quotas, in microseconds.
const period = 100_000

// settings returns the files of a controller for the limits, in the order in which they are written.
func (l *Limits) settings(version int, controller string) []setting {
	weight := max(l.Weight, 1)
	switch controller + strconv.Itoa(version) {
	case memory + "2":
		if l.Memory == 0 {
			return []setting{{file: "memory.max", value: "max"}}
		}
		// Swap would only slow an attempt down before it fails.
		return []setting{{"memory.swap.max", "0", true}, {"memory.oom.group", "1", true}, {file: "memory.max", value: number(l.Memory, "max")}}
	case memory + "1":
		// The limit with swap is never below the one without.
		return []setting{
			{"memory.memsw.limit_in_bytes", "-1", true}, {file: "memory.limit_in_bytes", value: number(l.Memory, "-1")},
			{"memory.memsw.limit_in_bytes", number(l.Memory, "-1"), true}, {"memory.max_usage_in_bytes", "0", true},
		}
	case pids + "1", pids + "2":
		return []setting{{file: "pids.max", value: number(int64(l.Tasks), "max")}}
	case cpu + "2":
		return []setting{
			{file: "cpu.weight", value: strconv.Itoa(min(100*weight, 10_000))},
			{file: "cpu.max", value: number(int64(l.Cores)*period, "max") + " " + strconv.Itoa(period)},
		}
	default:
		return []setting{
			{file: "cpu.shares", value: strconv.Itoa(min(1024*weight, 1<<18))},
			{"cpu.cfs_period_us", strconv.Itoa(period), true},
			{file: "cpu.cfs_quota_us", value: number(int64(l.Cores)*period, "-1")},
		}
	}
}

// number formats a limit.
func number(n int64, none string) string {
	if n == 0 {
		return none
	}
	return strconv.FormatInt(n, 10)
}

// removeEmpty removes the empty groups of all daemons, as most belong to killed ones. A live daemon
// makes its group again.
func (h *hierarchy) removeEmpty() {
	for _, name := range groupsIn(h.parent) {
		group := filepath.Join(h.parent, name)
		if !strings.HasPrefix(name, prefix) || h.version == 2 && !strings.Contains(get(group, "cgroup.events"), "populated 0") {
			continue
		}
		for _, worker := range groupsIn(group) {
			_ = h.sys.rmdir(filepath.Join(group, worker)) // the kernel keeps groups in use
		}
		_ = h.sys.rmdir(group)
	}
}

// groupsIn returns the names of the groups in a group. They are no patterns: systemd writes \x2d for a hyphen.
func groupsIn(group string) (names []string) {
	entries, _ := os.ReadDir(group) // one that was just removed has none
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names
}
