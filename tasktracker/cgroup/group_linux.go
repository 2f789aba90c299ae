package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// Group is a worker's group; nil: none.
type Group struct {
	groups *Groups
	name   string
	handle *os.File // of the group of version 2, until Started

	mu   sync.Mutex
	dirs []groupDir // those that exist: version 2 first, version 1 once the worker was moved
	last Limits     // of the last Limit
	gone bool       // after Remove
	old  counts     // until the last Limit
}

// counts is how often the kernel has enforced something.
type counts struct {
	killed  int64 // processes, as memory was exhausted: that of the group, of one around it, or of the machine
	reached int64 // the group's own limit of memory; version 1 does not tell
	refused int64 // processes and threads
}

// groupDir is a group in one hierarchy.
type groupDir struct {
	*hierarchy
	path string
}

// Prepare lets the kernel start a process in the group, in version 2. Call Started after the start.
func (c *Group) Prepare(attr *syscall.SysProcAttr) {
	if c != nil && c.handle != nil {
		attr.UseCgroupFD, attr.CgroupFD = true, int(c.handle.Fd())
	}
}

// Started ends what Prepare began.
func (c *Group) Started() {
	if c != nil && c.handle != nil {
		c.handle.Close()
		c.handle = nil
	}
}

// Limit sets the group's limits. In version 1 it first moves the worker into the group, if there is a
// limit. With pid 0, before the start, it does not.
func (c *Group) Limit(pid int, l Limits) error {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if l.Weight == 1 {
		l.Weight = 0
	}
	if c.gone {
		return nil
	}
	var err error
	if l != c.last {
		for _, d := range c.dirs {
			err = errors.Join(err, d.limit(d.path, &l, d.limits))
		}
		c.last = l
	}
	if pid > 0 && l != (Limits{}) {
		err = errors.Join(err, c.join(pid, &l))
	}
	if l.Memory > 0 || l.Tasks > 0 {
		c.old = c.counts()
	}
	return err
}

// join moves a worker and its descendants into limited groups of version 1, unless it is there.
func (c *Group) join(pid int, l *Limits) error {
	for _, h := range c.groups.v1 {
		if c.in(h) {
			continue
		}
		path, err := h.add(c.name)
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("make a control group: %w", err)
		}
		if err := errors.Join(h.limit(path, l, h.limits), h.move(path, pid, c.groups.cfg.Children)); err != nil {
			return fmt.Errorf("move process %d into %s: %w", pid, path, errors.Join(err, h.sys.rmdir(path)))
		}
		c.dirs = append(c.dirs, groupDir{h, path})
	}
	return nil
}

// move moves a process into a group, and the children that it has already. Later ones are born there.
func (h *hierarchy) move(group string, pid int, children func(int) []int) error {
	if err := set(group, "cgroup.procs", strconv.Itoa(pid)); err != nil {
		return err
	}
	moved := map[int]bool{pid: true}
	for todo := children(pid); len(todo) > 0; todo = todo[1:] {
		child := todo[0]
		if moved[child] {
			continue
		}
		moved[child] = true
		_ = set(group, "cgroup.procs", strconv.Itoa(child)) // it may have ended
		todo = append(todo, children(child)...)
	}
	return nil
}

func (c *Group) in(h *hierarchy) bool {
	for _, d := range c.dirs {
		if d.hierarchy == h {
			return true
		}
	}
	return false
}

func (c *Group) counts() (n counts) {
	for _, d := range c.dirs {
		for _, controller := range d.limits {
			switch {
			case controller == memory && d.version == 2:
				events := get(d.path, "memory.events")
				n.killed, n.reached = parseCount(events, "oom_kill"), parseCount(events, "oom")
			case controller == memory:
				n.killed = parseCount(get(d.path, "memory.oom_control"), "oom_kill")
				n.reached = n.killed // memory.failcnt counts also what needed no kill, and not all kernels count all
			case controller == pids:
				n.refused = parseCount(get(d.path, "pids.events"), "max")
			}
		}
	}
	return n
}

// Exhausted returns which limits the kernel has enforced since the last Limit.
func (c *Group) Exhausted() (e Exhausted) {
	if c == nil {
		return e
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.counts()
	e.Tasks = now.refused > c.old.refused
	e.Memory = now.killed > c.old.killed && now.reached > c.old.reached
	if !e.Memory {
		return e
	}
	for _, d := range c.dirs {
		for _, file := range []string{"memory.peak", "memory.max_usage_in_bytes"} {
			e.Peak = max(e.Peak, parseBytes(get(d.path, file)))
		}
	}
	return e
}

// Members returns the processes of the group. Not ok: they are not known.
func (c *Group) Members() (list []int, ok bool) {
	if c == nil {
		return nil, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.dirs) == 0 {
		return nil, false
	}
	return parsePids(get(c.dirs[0].path, "cgroup.procs")), true
}

// Whole reports whether Kill kills all processes at once, also those that start meanwhile.
func (c *Group) Whole() bool { return c != nil && c.groups.v2 != nil }

// Kill kills the processes of the group. It does not wait.
func (c *Group) Kill() {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, d := range c.dirs {
		d.kill(d.path)
	}
}

// Remove kills all processes of the group and removes it. If this fails, Close or RemoveLeftover
// removes it.
func (c *Group) Remove() {
	if c == nil {
		return
	}
	c.mu.Lock()
	dirs := c.dirs
	c.dirs, c.gone = nil, true
	c.mu.Unlock() // Kill never waits
	end := time.Now().Add(c.groups.cfg.Wait)
	for _, d := range dirs {
		_ = d.remove(d.path, end)
	}
}
