package process

import (
	"fmt"
	"strconv"

	"github.com/quernmr/quern/tasktracker/cgroup"
	"github.com/quernmr/quern/tasktracker/core"
	"github.com/quernmr/quern/wire"
)

// Maximum is the most that the operator lets each attempt have; 0: no limit. Attempts of jobs that ask for
// more, or for no limit, get the maximum.
type Maximum struct {
	Memory      int64 // bytes
	Processes   int
	Cores       int
	StrictCores bool // an attempt may not use more cores than it requests, at least one
}

func (m *Maximum) limitsCores() bool { return m.Cores > 0 || m.StrictCores }

// Limits are the limits of an attempt: the job's, or the operator's if it is lower.
type Limits struct {
	core.Limit
	quota                   int  // cores; 0: none
	ownMemory, ownProcesses bool // the operator's maximum
}

// Of returns the limits of an attempt with the job's limits.
func (m *Maximum) Of(job core.Limit) Limits {
	l := Limits{Limit: job, quota: m.Cores}
	if m.Memory > 0 && (job.Memory == 0 || job.Memory > m.Memory) {
		l.Memory, l.ownMemory = m.Memory, true
	}
	if m.Processes > 0 && (job.Processes == 0 || job.Processes > m.Processes) {
		l.Processes, l.ownProcesses = m.Processes, true
	}
	if requested := max(job.Cores, 1); m.StrictCores && (l.quota == 0 || requested < l.quota) {
		l.quota = requested
	}
	return l
}

// first returns the limits of a worker before its first attempt.
func (m *Maximum) first() cgroup.Limits {
	l := m.Of(core.Limit{})
	return l.group()
}

// Threads that a group may have: the kernel counts threads, the job's limit counts processes. This many
// stop a job that starts processes faster than they are counted.
const (
	threadsPerProcess = 64
	moreThreads       = 256
)

// group returns the limits as the kernel enforces them.
func (l *Limits) group() cgroup.Limits {
	g := cgroup.Limits{Memory: l.Memory, Cores: l.quota, Weight: l.Cores}
	if l.Processes > 0 {
		g.Tasks = min(l.Processes, 1<<20)*threadsPerProcess + moreThreads
	}
	return g
}

// exhausted returns an error text if the kernel has enforced a limit of the group.
func (l *Limits) exhausted(group *cgroup.Group) string {
	if l.Memory == 0 && l.Processes == 0 {
		return ""
	}
	e := group.Exhausted()
	switch {
	case e.Memory && l.Memory > 0:
		peak := l.Memory // before Linux 5.19, the kernel does not tell
		if e.Peak > 0 {
			peak = min(e.Peak, l.Memory)
		}
		return fmt.Sprintf("its processes had %s of memory and needed more than the %s they may have (%s)", mebibytes(peak), mebibytes(l.Memory), l.memoryName())
	case e.Tasks && l.Processes > 0:
		return fmt.Sprintf("it had %d threads and needed more: %d processes may have no more (%s)", l.group().Tasks, l.Processes, l.processesName())
	}
	return ""
}

// memoryName names the setting with the limit of memory.
func (l *Limits) memoryName() string {
	switch {
	case l.ownMemory:
		return "tasktracker -max-memory"
	case l.Kind == wire.Reduce:
		return "mapreduce.reduce.memory.mb"
	}
	return "mapreduce.map.memory.mb"
}

// processesName names the setting with the limit of processes.
func (l *Limits) processesName() string {
	if l.ownProcesses {
		return "tasktracker -max-processes"
	}
	return "quern.task.processes"
}

func mebibytes(n int64) string { return strconv.FormatFloat(float64(n)/(1<<20), 'f', 0, 64) + " MiB" }
