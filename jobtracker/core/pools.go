package core

import (
	"cmp"
	"maps"
	"reflect"
	"slices"

	"github.com/quernmr/quern/jobtracker/core/assign"
	"github.com/quernmr/quern/jobtracker/core/facts"
	"github.com/quernmr/quern/scheduler/pool"
	"github.com/quernmr/quern/wire"
)

// poolsRead handles a pool table that the owner has read. If the table is invalid, the old one
// stays in force.
func (l *leader) poolsRead(r PoolsRead) {
	if r.Err != nil {
		l.sharing.poolsError = r.Err.Error()
		return
	}
	l.sharing.poolsError = ""
	waiting := l.sharing.pendingPools != nil
	l.sharing.pendingPools = &r.Table
	if !waiting {
		l.proposePools()
	}
}

// proposePools proposes the last table that was read, unless it is in force.
func (l *leader) proposePools() {
	n, table := l.facts.Pools()
	if reflect.DeepEqual(l.sharing.pendingPools, table) {
		l.sharing.pendingPools = nil
		return
	}
	l.propose(&facts.PoolsChanged{N: n + 1, Table: *l.sharing.pendingPools})
}

// poolsApplied uses a new table. If the table was proposed earlier, perhaps by another leader,
// the last table that was read is proposed again.
func (l *leader) poolsApplied(changed bool) {
	if changed {
		for i := range l.phases {
			l.phases[i].planNow(l.now)
		}
		l.setPools()
	}
	if l.sharing.pendingPools != nil {
		l.proposePools()
	}
}

// poolStatus says from which file the pool table came, and why a newer one is not in force.
func (l *leader) poolStatus() string {
	_, table := l.facts.Pools()
	file := table.From
	switch {
	case l.sharing.poolsError == "":
		return file
	case file == "":
		return "none: " + l.sharing.poolsError
	}
	return file + ": the last valid version is in force: " + l.sharing.poolsError
}

// poolsInUse lists the pools of a table and the pools of jobs, by name. The jobs of a pool are also
// those of the pools around it.
func poolsInUse(table *pool.Table, uses map[string]assign.PoolUse) []wire.PoolStatus {
	all := make(map[string]*wire.PoolStatus)
	find := func(name string) *wire.PoolStatus {
		s := all[name]
		if s == nil {
			p, inTable := table.Find(name)
			s = &wire.PoolStatus{Name: name, Min: p.Min, Max: p.Max, Weight: cmp.Or(p.Weight, 1), MaxJobs: p.MaxRunning, Removed: !inTable}
			all[name] = s
		}
		return s
	}
	for _, p := range table.Pools {
		find(p.Name)
	}
	for of, use := range uses { // any order: it only counts
		for name := of; name != ""; name = table.Around(name) {
			s := find(name)
			s.Jobs += use.Jobs
			for phase := range s.Running {
				s.Running[phase] += use.Slots[phase]
			}
		}
	}
	var list []wire.PoolStatus
	for _, name := range slices.Sorted(maps.Keys(all)) {
		list = append(list, *all[name])
	}
	return list
}

// poolName returns the pool of a submission.
func poolName(s *facts.Submission) string { return cmp.Or(s.Pool(), wire.DefaultPool) }

// poolOf returns the pool of a job, which may have left the table. It then has no limits of its own.
func (l *leader) poolOf(id wire.JobID) string {
	if f := l.facts.Find(id); f != nil {
		return poolName(f.Submission())
	}
	return wire.DefaultPool
}
