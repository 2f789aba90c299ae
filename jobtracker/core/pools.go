package core

import (
	"cmp"
	"reflect"
	"slices"
	"time"

	"github.com/quernmr/quern/jobtracker/core/facts"
	"github.com/quernmr/quern/scheduler"
	"github.com/quernmr/quern/scheduler/menu"
	"github.com/quernmr/quern/wire"
)

// poolsRead handles a pool table that the owner has read. A broken table leaves the old one in
// force.
func (l *Live) poolsRead(r Pools) {
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

// proposePools proposes the table read last, unless it is in force.
func (l *Live) proposePools() {
	n, table := l.facts.Pools()
	if reflect.DeepEqual(l.sharing.pendingPools, table) {
		l.sharing.pendingPools = nil
		return
	}
	l.propose(&facts.PoolsChanged{N: n + 1, Table: *l.sharing.pendingPools})
}

// poolsApplied takes over a new table. An earlier leader's table may be applied first; then the
// table read last is proposed again.
func (l *Live) poolsApplied(fitted bool) {
	if fitted {
		for i := range l.phases {
			l.phases[i].planNow(l.now)
		}
		l.setPools()
	}
	if l.sharing.pendingPools != nil {
		l.proposePools()
	}
}

// poolStatus says where the pool table came from, and why a newer one is not in force.
func (l *Live) poolStatus() string {
	_, table := l.facts.Pools()
	from := table.From
	switch {
	case l.sharing.poolsError == "":
		return from
	case from == "":
		return "none: " + l.sharing.poolsError
	}
	return from + " as it was: " + l.sharing.poolsError
}

// poolsInUse lists the pools of the table and those of jobs, by name.
func (l *Live) poolsInUse() []wire.PoolStatus {
	_, table := l.facts.Pools()
	var all []wire.PoolStatus
	find := func(name string) *wire.PoolStatus {
		i, ok := slices.BinarySearchFunc(all, name, func(s wire.PoolStatus, name string) int { return cmp.Compare(s.Name, name) })
		if !ok {
			p, known := table.Find(name)
			all = slices.Insert(all, i, wire.PoolStatus{
				Name: name, Min: p.Min, Max: p.Max, Weight: cmp.Or(p.Weight, 1), MaxJobs: p.MaxRunning, Removed: !known,
			})
		}
		return &all[i]
	}
	for _, p := range table.Pools {
		find(p.Name)
	}
	for _, j := range l.order {
		s := find(poolName(j.facts.Submission()))
		s.Jobs++
		for phase := range s.Running {
			s.Running[phase] += j.assign.InSlots(phase)
		}
	}
	return all
}

// poolName is the pool of a submission.
func poolName(s *facts.Submission) string { return cmp.Or(s.Pool(), wire.DefaultPool) }

// poolOf is the pool of a job. A pool that is no longer in the table groups its jobs but has no
// limits.
func (l *Live) poolOf(id wire.JobID) string {
	if f := l.facts.Find(id); f != nil {
		return poolName(f.Submission())
	}
	return wire.DefaultPool
}

// applyPools adds batches and pools to a snapshot. Jobs of a batch count as arrived with the
// batch's first job that has not ended, even if that job has no tasks left.
func (l *Live) applyPools(s scheduler.Snapshot) scheduler.Snapshot {
	first := make(map[string]time.Duration)
	for _, j := range l.order {
		batch := j.facts.Submission().Settings().Batch
		if at, ok := first[batch]; !ok || j.spec.arrived < at {
			first[batch] = j.spec.arrived
		}
	}
	for i := range s.Jobs {
		if batch := s.Jobs[i].Batch; batch != "" {
			s.Jobs[i].Arrived = first[batch]
		}
	}
	_, table := l.facts.Pools()
	return table.Shape(s, l.poolOf, menu.NeedsOf(l.sharing.Policy).Pools)
}
