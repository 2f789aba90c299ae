package process

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// measureEvery is the period of measurements.
const measureEvery = 100 * time.Millisecond

// meter enforces workers' limits by periodic measurements. It adds up the resident memory
// and the processes of a worker's control group. Without one it measures the process group
// and descendants that left it.
type meter struct {
	mu      sync.Mutex
	workers map[*process]*workerLimits
	running bool // a goroutine runs run
}

// workerLimits has the limits of a worker, and the state of its measurement.
type workerLimits struct {
	limit    Limits
	exceeded func(reason string)
	detached map[int]uint64 // start times of descendants outside the group
	reported bool           // exceeded was called
}

// limit sets or changes a worker's limits, unless it has ended.
func (m *meter) limit(w *process, limit Limits, exceeded func(reason string)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if w.ended() {
		return // forget was called, or will be
	}
	a := m.workers[w]
	if a == nil {
		if m.workers == nil {
			m.workers = make(map[*process]*workerLimits)
		}
		a = &workerLimits{detached: make(map[int]uint64)}
		m.workers[w] = a
	}
	a.limit, a.exceeded = limit, exceeded
	if !m.running {
		m.running = true
		go m.run()
	}
}

// forget removes a worker that has ended or has no limits any more. It kills detached
// processes: they belong to an earlier attempt.
func (m *meter) forget(w *process) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if a := m.workers[w]; a != nil {
		a.killDetached()
		delete(m.workers, w)
	}
}

// run measures while there are limited workers.
func (m *meter) run() {
	tick := time.NewTicker(measureEvery)
	defer tick.Stop()
	for range tick.C {
		m.mu.Lock()
		if len(m.workers) == 0 {
			m.running = false
			m.mu.Unlock()
			return
		}
		actions := m.measure()
		m.mu.Unlock()
		for _, t := range actions {
			t()
		}
	}
}

// measure returns the actions for workers that exceeded a limit.
func (m *meter) measure() (actions []func()) {
	groups := groupMembers()
	for w, a := range m.workers {
		members := groups[w.pid()]
		if grouped, ok := w.group.Members(); ok {
			members = grouped
		}
		use := a.measure(members)
		reason := cmp.Or(use.exceeded(&a.limit), a.limit.exhausted(w.group))
		if reason == "" || a.reported {
			continue
		}
		a.reported = true
		a.freeze(w)
		actions = append(actions, func() {
			a.exceeded(reason)
			w.Kill()
			m.mu.Lock()
			defer m.mu.Unlock()
			a.killDetached()
		})
	}
	return actions
}

// usage is the resource usage of a worker's processes.
type usage struct {
	memory    int64
	processes int
}

// measure measures the members of a group and all their descendants.
func (a *workerLimits) measure(group []int) (u usage) {
	inGroup := make(map[int]bool, len(group))
	todo := slices.Clone(group)
	for _, pid := range group {
		inGroup[pid] = true
	}
	for pid, start := range a.detached {
		if p, err := readProcess(pid); err != nil || p.start != start || !p.alive() {
			delete(a.detached, pid)
			continue
		}
		todo = append(todo, pid)
	}
	seen := make(map[int]bool, len(todo))
	for len(todo) > 0 {
		pid := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if seen[pid] {
			continue
		}
		seen[pid] = true
		resident, ok := residentMemory(pid)
		if !ok {
			continue
		}
		u.memory += resident
		u.processes++
		if _, recorded := a.detached[pid]; !inGroup[pid] && !recorded {
			if p, err := readProcess(pid); err == nil {
				a.detached[pid] = p.start
			}
		}
		todo = append(todo, children(pid)...)
	}
	return u
}

// freeze suspends a worker and all its descendants before a kill. Otherwise they could
// start processes during the kill, which it would not find.
func (a *workerLimits) freeze(w *process) {
	if w.group.Whole() {
		return
	}
	for range freezeRounds {
		before := len(a.detached)
		w.signal(syscall.SIGSTOP)
		a.signalDetached(syscall.SIGSTOP)
		a.measure(groupMembers()[w.pid()])
		if len(a.detached) <= before {
			return
		}
	}
}

const freezeRounds = 20

func (a *workerLimits) killDetached() { a.signalDetached(syscall.SIGKILL) }

func (a *workerLimits) signalDetached(s syscall.Signal) {
	for pid, start := range a.detached {
		if p, err := readProcess(pid); err == nil && p.start == start {
			_ = syscall.Kill(pid, s)
		}
	}
}

// exceeded returns an error text if a limit is exceeded.
func (u usage) exceeded(limit *Limits) string {
	switch {
	case limit.Memory > 0 && u.memory > limit.Memory:
		return fmt.Sprintf("its %d processes have %s of memory, more than the %s it may have (%s)",
			u.processes, mebibytes(u.memory), mebibytes(limit.Memory), limit.memoryName())
	case limit.Processes > 0 && u.processes > limit.Processes:
		return fmt.Sprintf("it has %d processes, more than the %d it may have (%s)", u.processes, limit.Processes, limit.processesName())
	}
	return ""
}

// residentMemory returns the resident memory of a process, in bytes; not ok: it has ended.
func residentMemory(pid int) (bytes int64, ok bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	fields := strings.Fields(string(text))
	if err != nil || len(fields) < 2 {
		return 0, false
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	// A process that is not reaped yet has no memory.
	return pages * int64(os.Getpagesize()), err == nil && fields[0] != "0"
}

// limitTasks limits the threads of a worker in a user namespace of its own, between measurements; 0: no more than at its
// start. A group limits them, too, but there may be none.
func limitTasks(pid, most int) {
	var limit unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_NPROC, nil, &limit); err != nil {
		return // it has ended
	}
	if limit.Cur = limit.Max; most > 0 {
		limit.Cur = min(uint64(most), limit.Max)
	}
	_ = unix.Prlimit(pid, unix.RLIMIT_NPROC, &limit, nil) // measurements limit them, too
}
