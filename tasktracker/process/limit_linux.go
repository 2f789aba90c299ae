package process

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/quernmr/quern/tasktracker/core"
	"github.com/quernmr/quern/wire"
)

// measureEvery is how often limited workers are measured.
const measureEvery = 100 * time.Millisecond

// meter holds workers to their limits by looking at them now and then: it sums the
// resident memory and the processes of each worker's control group or, where it has
// none, of its process group and of what a member has started that has left that.
type meter struct {
	mu      sync.Mutex
	workers map[*process]*allowance
	busy    bool // somebody measures
}

// allowance is what a worker may take, and what is known of it.
type allowance struct {
	most     core.Limit
	exceeded func(reason string)
	strays   map[int]uint64 // descendants outside the group: start times by number
	over     bool           // it was told
}

// limit sets or changes a worker's limits, unless it has ended.
func (m *meter) limit(w *process, most core.Limit, exceeded func(reason string)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if w.ended() {
		return // and has left, or will
	}
	a := m.workers[w]
	if a == nil {
		if m.workers == nil {
			m.workers = make(map[*process]*allowance)
		}
		a = &allowance{strays: make(map[int]uint64)}
		m.workers[w] = a
	}
	a.most, a.exceeded = most, exceeded
	if !m.busy {
		m.busy = true
		go m.run()
	}
}

// leave forgets a worker that has ended or has no limits any more, and kills its
// strays, which then are an earlier attempt's.
func (m *meter) leave(w *process) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if a := m.workers[w]; a != nil {
		a.killStrays()
		delete(m.workers, w)
	}
}

// run measures until there are no workers.
func (m *meter) run() {
	tick := time.NewTicker(measureEvery)
	defer tick.Stop()
	for range tick.C {
		m.mu.Lock()
		if len(m.workers) == 0 {
			m.busy = false
			m.mu.Unlock()
			return
		}
		tell := m.measure()
		m.mu.Unlock()
		for _, t := range tell {
			t()
		}
	}
}

// measure returns what is to be done about workers that have taken too much.
func (m *meter) measure() (tell []func()) {
	groups := groupMembers()
	for w, a := range m.workers {
		members := groups[w.pid()]
		if w.group != nil {
			members = w.group.members()
		}
		use := a.use(members)
		reason := use.beyond(&a.most)
		if reason == "" || a.over {
			continue
		}
		a.over = true
		a.freeze(w)
		tell = append(tell, func() {
			a.exceeded(reason)
			w.Kill()
			m.mu.Lock()
			defer m.mu.Unlock()
			a.killStrays()
		})
	}
	return tell
}

// usage is what a worker's processes take.
type usage struct {
	memory    int64
	processes int
}

// use measures the members of a group and all that descends from them.
func (a *allowance) use(group []int) (u usage) {
	inGroup := make(map[int]bool, len(group))
	todo := slices.Clone(group)
	for _, pid := range group {
		inGroup[pid] = true
	}
	for pid, start := range a.strays {
		if p, err := readProcess(pid); err != nil || p.start != start || !p.alive() {
			delete(a.strays, pid)
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
		if _, known := a.strays[pid]; !inGroup[pid] && !known {
			if p, err := readProcess(pid); err == nil {
				a.strays[pid] = p.start
			}
		}
		todo = append(todo, children(pid)...)
	}
	return u
}

// freeze stops a worker with all that descends from it, until nothing new is found:
// what is started while the rest is being killed could not be told any more.
func (a *allowance) freeze(w *process) {
	if w.group != nil {
		return // which is killed as a whole
	}
	for range freezeRounds {
		known := len(a.strays)
		w.signal(syscall.SIGSTOP)
		a.signalStrays(syscall.SIGSTOP)
		a.use(groupMembers()[w.pid()])
		if len(a.strays) <= known {
			return
		}
	}
}

const freezeRounds = 20

func (a *allowance) killStrays() { a.signalStrays(syscall.SIGKILL) }

func (a *allowance) signalStrays(s syscall.Signal) {
	for pid, start := range a.strays {
		if p, err := readProcess(pid); err == nil && p.start == start {
			_ = syscall.Kill(pid, s)
		}
	}
}

// beyond says which limit is exceeded and how; empty: none.
func (u usage) beyond(most *core.Limit) string {
	switch {
	case most.Memory > 0 && u.memory > most.Memory:
		return fmt.Sprintf("its %d processes have %s of memory, more than the %s it may have (%s)",
			u.processes, mebibytes(u.memory), mebibytes(most.Memory), memoryProperty(most.Kind))
	case most.Processes > 0 && u.processes > most.Processes:
		return fmt.Sprintf("it has %d processes, more than the %d it may have (quern.task.processes)", u.processes, most.Processes)
	}
	return ""
}

func memoryProperty(kind wire.Kind) string {
	if kind == wire.Reduce {
		return "mapreduce.reduce.memory.mb"
	}
	return "mapreduce.map.memory.mb"
}

func mebibytes(n int64) string { return strconv.FormatFloat(float64(n)/(1<<20), 'f', 0, 64) + " MiB" }

// residentMemory is what a process has in memory; not ok: it has ended.
func residentMemory(pid int) (bytes int64, ok bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	fields := strings.Fields(string(text))
	if err != nil || len(fields) < 2 {
		return 0, false
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	// A process that waits to be reaped has no memory at all.
	return pages * int64(os.Getpagesize()), err == nil && fields[0] != "0"
}

// children lists what the threads of a process have started and not left to others.
func children(pid int) (list []int) {
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return nil
	}
	for _, task := range tasks {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", pid, task.Name()))
		if err != nil {
			continue
		}
		for _, field := range strings.Fields(string(text)) {
			if child, err := strconv.Atoi(field); err == nil {
				list = append(list, child)
			}
		}
	}
	return list
}
