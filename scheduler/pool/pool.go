// Package pool has the table of pools: groups of jobs with guaranteed slots, maximum slots and
// weights, and the limits of users. [Parse] reads a table from a Hadoop fair scheduler's
// allocation file; [Table.Apply] applies it to the jobs of a snapshot, and [Table.Standings]
// compares the pools with their shares.
//
// Pools form a tree: "a.b" is in "a", and all are in the root. Only pools without others in them
// take jobs. Parse resolves inherited settings: each [Pool] has all its users, groups and rules of
// preemption. It does not resolve limits: the jobs of an inner pool are those of all pools in it.
//
// Results depend on the arguments alone; there is no I/O.
package pool

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quernmr/quern/wire"
)

// Table is the pools of a cluster. In the zero Table every name is a pool without limits, of
// weight 1.
type Table struct {
	Pools    []Pool   `msgpack:"Pools"`    // by name
	From     string   `msgpack:"From"`     // the file it was read from; empty: none
	Warnings []string `msgpack:"Warnings"` // the first warnings about settings without effect

	// Users has the limits of users, by name. The one without a name is for all others.
	Users []UserLimit `msgpack:"Users,omitempty"`
}

// Pool is one pool. Slots are by phase: maps, reduces.
type Pool struct {
	Name       string   `msgpack:"Name"`
	Min        [2]int   `msgpack:"Min"`        // guaranteed
	Max        [2]int   `msgpack:"Max"`        // at most; Unlimited
	Weight     float64  `msgpack:"Weight"`     // 0: 1
	MaxRunning int      `msgpack:"MaxRunning"` // jobs that may have slots at a time; Unlimited
	Submitters []string `msgpack:"Submitters"` // users who may submit; none: all users

	Inner          bool        `msgpack:"Inner,omitempty"`          // pools are in it: it takes no jobs
	Administrators []string    `msgpack:"Administrators,omitempty"` // users who may change and kill all its jobs, and submit
	Preemption     *Preemption `msgpack:"Preemption,omitempty"`     // nil: it never takes slots from others, and gives them

	// Groups of users who may submit, in addition to Submitters, and who are in addition to Administrators.
	SubmitterGroups     []string `msgpack:"SubmitterGroups,omitempty"`
	AdministratorGroups []string `msgpack:"AdministratorGroups,omitempty"`
}

// Preemption says when a pool takes slots from others, and whether it gives any.
type Preemption struct {
	MinTimeout  time.Duration `msgpack:"MinTimeout"`  // below its minimum; 0: never
	FairTimeout time.Duration `msgpack:"FairTimeout"` // below Threshold of its fair share; 0: never
	Threshold   float64       `msgpack:"Threshold"`
	Spared      bool          `msgpack:"Spared"` // its tasks are not preempted
}

// UserLimit is the limit of a user's jobs.
type UserLimit struct {
	Name       string `msgpack:"Name"`       // empty: each user without a limit of its own
	MaxRunning int    `msgpack:"MaxRunning"` // jobs that may have slots at a time
}

// Unlimited is the maximum of a pool without one.
const Unlimited = -1

// AllUsers in a list stands for all users.
const AllUsers = "*"

// Root is the name of the pool around all others. It is in a table only if it has a limit.
const Root = "root"

func unlimited(name string) Pool {
	return Pool{Name: name, Max: [2]int{Unlimited, Unlimited}, MaxRunning: Unlimited}
}

// Find returns a pool by name. The default pool always exists, and every pool does if the table
// has none.
func (t *Table) Find(name string) (Pool, bool) {
	if name == "" {
		name = wire.DefaultPool
	}
	for _, p := range t.Pools {
		if p.Name == name {
			return p, true
		}
	}
	return unlimited(name), len(t.Pools) == 0 || name == wire.DefaultPool
}

// Around returns the name of the pool of the table around another one: the longest one before a
// dot, else the root. It is empty if the table has none.
func (t *Table) Around(name string) string { return around(name, t.has) }

func (t *Table) has(name string) bool {
	return slices.ContainsFunc(t.Pools, func(p Pool) bool { return p.Name == name })
}

func around(name string, has func(name string) bool) string {
	for outer, ok := before(name); ok; outer, ok = before(outer) {
		if has(outer) {
			return outer
		}
	}
	if name != Root && has(Root) {
		return Root
	}
	return ""
}

// before returns a name without its last part.
func before(name string) (string, bool) {
	i := strings.LastIndexByte(name, '.')
	return name[:max(i, 0)], i > 0
}

// Admits reports whether a user, who is in some groups, may submit to the pool. A user without a name may
// submit only to a pool that admits all users.
func (p *Pool) Admits(owner string, in func(group string) bool) bool {
	listed := wire.ACL{Users: p.Submitters, Groups: p.SubmitterGroups}
	return len(p.Submitters) == 0 || listed.Admits(owner, in) || p.AdministeredBy(owner, in)
}

// AdministeredBy reports whether a user, who is in some groups, may change and kill all jobs of the pool.
func (p *Pool) AdministeredBy(user string, in func(group string) bool) bool {
	a := p.ACL()
	return a.Admits(user, in)
}

// ACL lists the administrators of the pool.
func (p *Pool) ACL() wire.ACL {
	return wire.ACL{All: slices.Contains(p.Administrators, AllUsers), Users: p.Administrators, Groups: p.AdministratorGroups}
}

// HasGroups reports whether a list of the table names groups.
func (t *Table) HasGroups() bool {
	return slices.ContainsFunc(t.Pools, func(p Pool) bool { return p.SubmitterGroups != nil || p.AdministratorGroups != nil })
}

// WithoutGroups returns the table for a job tracker that knows no groups: they admit no user. A warning
// names them.
func (t Table) WithoutGroups() Table {
	var groups []string
	t.Pools = slices.Clone(t.Pools)
	for i := range t.Pools {
		p := &t.Pools[i]
		groups = slices.Concat(groups, p.SubmitterGroups, p.AdministratorGroups)
		p.SubmitterGroups, p.AdministratorGroups = nil, nil
	}
	if len(groups) == 0 {
		return t
	}
	slices.Sort(groups)
	groups = slices.Compact(groups)
	shown := groups[:min(len(groups), maxWarnings)]
	t.Warnings = append(slices.Clone(t.Warnings), fmt.Sprintf("%s: groups in lists admit no user (%s): start the job trackers with -groups, or name the users", t.From, strings.Join(shown, ", ")))
	return t
}

// MaxRunningOf returns how many jobs of a user may have slots at a time. A user without a name has
// no limit.
func (t *Table) MaxRunningOf(user string) int {
	most := Unlimited
	for _, u := range t.Users {
		if user != "" && (u.Name == "" || u.Name == user) { // the one without a name is the first
			most = u.MaxRunning
		}
	}
	return most
}

// IsTree reports whether the table has inner pools, preemption, administrators or limits of users.
func (t *Table) IsTree() bool {
	return len(t.Users) > 0 || slices.ContainsFunc(t.Pools, func(p Pool) bool {
		return p.Inner || p.Administrators != nil || p.AdministratorGroups != nil || p.Preemption != nil
	})
}

// Preempts reports whether any pool takes slots from others.
func (t *Table) Preempts() bool {
	return slices.ContainsFunc(t.Pools, func(p Pool) bool {
		return !p.Inner && p.Preemption != nil && (p.Preemption.MinTimeout > 0 || p.Preemption.FairTimeout > 0)
	})
}

// Name normalizes a pool name in Hadoop's notation: it drops the root queue.
func Name(text string) string {
	return strings.TrimPrefix(strings.TrimSpace(text), Root+".")
}
