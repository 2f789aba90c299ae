// Package cgroup limits workers by control groups of Linux: memory, processes with their threads, and
// processor time. It knows both versions:
//
//	version 2  <parent>/quern-<random>/<number>, which also finds and kills all processes of a worker
//	version 1  the same in the hierarchy of each controller that version 2 does not have here
//
// The parent is the daemon's group, or in version 2 the group above it if systemd delegated that group,
// as with DelegateSubgroup. The daemon itself stays in its group.
//
// [Open] finds out what works by performing it once: it makes a group, limits it, puts a process or a
// thread into it, and removes it. Nothing else can tell: mounts, owners, delegation, namespaces and
// filters of system calls all matter.
//
// # How a worker gets into its group
//
// In version 2 the kernel starts it there. In version 1 its process is moved, with the descendants that
// it already has, when it first gets a limit: a move takes the kernel about 10 ms, so workers without
// limits are not moved.
//
// # Files
//
// Config.File has the directories of the daemon's groups, one a line, for [RemoveLeftover].
//
// # Invariants
//
//	G1  Only groups with the prefix quern- and groups below them are changed or removed. Of the parent,
//	    only cgroup.subtree_control is written, and Open lets a thread return to it.
//	G2  Exhausted tells only what happened since the last Limit, so that an attempt is not blamed for an
//	    earlier one of its worker. In version 2 it is not blamed either when the memory of a group around,
//	    or of the machine, was exhausted.
//	G3  After Remove, no process of the group is left, or it has not died within the time.
//
// On systems other than Linux there are no groups.
//
// # Concurrency
//
// One goroutine at a time calls methods of a Groups. Any goroutine may call the methods of a Group.
package cgroup

import (
	"fmt"
	"strings"
	"time"
)

// Limits of a group; 0: none.
type Limits struct {
	Memory int64 // bytes; swap is not permitted beside
	Tasks  int   // processes and their threads, together
	Cores  int   // that it may use at a time
	Weight int   // share of busy cores in relation to other workers; 0: 1
}

// Config configures the groups of a daemon.
type Config struct {
	File     string              // for RemoveLeftover; empty: no groups are made
	Cores    int                 // of the machine: the weight of all workers together
	Children func(pid int) []int // of all threads of a process
	Wait     time.Duration       // how long killed processes may take to disappear

	proc   string // default /proc/self
	system *system
}

// Found says which controllers limit workers.
type Found struct {
	Memory, Pids, CPU int    // version of control groups; 0: none
	Missing           string // why a controller is missing; empty: none is
}

// String describes it in one line, such as "cgroup v2: memory, pids; without cpu: it is not delegated".
func (f Found) String() string {
	var parts, missing []string
	for version := 2; version >= 1; version-- {
		var names []string
		for _, c := range f.list() {
			if c.version == version {
				names = append(names, c.name)
			}
		}
		if names != nil {
			parts = append(parts, fmt.Sprintf("cgroup v%d: %s", version, strings.Join(names, ", ")))
		}
	}
	for _, c := range f.list() {
		if c.version == 0 {
			missing = append(missing, c.name)
		}
	}
	switch {
	case parts == nil:
		return "no cgroup: " + f.Missing
	case missing != nil:
		parts = append(parts, "without "+strings.Join(missing, ", ")+": "+f.Missing)
	}
	return strings.Join(parts, "; ")
}

type version struct {
	name    string
	version int
}

func (f Found) list() []version {
	return []version{{memory, f.Memory}, {pids, f.Pids}, {cpu, f.CPU}}
}

// Controllers.
const (
	memory = "memory"
	pids   = "pids"
	cpu    = "cpu"
)

// Exhausted says which limits of a group the kernel has enforced since the last Limit.
type Exhausted struct {
	Memory bool  // it has killed a process, as the memory of this group was exhausted
	Peak   int64 // most bytes of memory that the group had
	Tasks  bool  // it has refused a process or thread
}

// Inherited has the limits of this process's groups and of all groups above them.
type Inherited struct {
	Memory int64    // lowest, in bytes; 0: none
	Cores  float64  // lowest; 0: none
	Texts  []string // all limits, for users
}
