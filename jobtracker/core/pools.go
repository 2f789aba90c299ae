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

// pools takes a pool table in, which the owner has read anew. A broken one leaves
// the old table in force.
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

// proposePools asks for the table read last to be in force, unless it is.
func (l *Live) proposePools() {
	n, table := l.facts.Pools()
	if reflect.DeepEqual(l.sharing.pendingPools, table) {
		l.sharing.pendingPools = nil
		return
	}
	l.propose(&facts.Pooled{N: n + 1, Table: *l.sharing.pendingPools})
}

// pooled takes up a new table. One of an earlier leader may have come before the
// table read last, which is then proposed anew.
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

// poolStatus says whence the pool table came, and what is wrong with a newer one.
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

// poolsInUse tells of the pools of the table and of those that jobs are in, by name.
func (l *Live) poolsInUse() []wire.PoolStatus {
	_, table := l.facts.Pools()
	var all []wire.PoolStatus
	find := func(name string) *wire.PoolStatus {
		i, ok := slices.BinarySearchFunc(all, name, func(s wire.PoolStatus, name string) int { return cmp.Compare(s.Name, name) })
		if !ok {
			p, known := table.Find(name)
			all = slices.Insert(all, i, wire.PoolStatus{
				Name: name, Min: p.Min, Max: p.Max, Weight: cmp.Or(p.Weight, 1), MaxJobs: p.MaxRunning, Gone: !known,
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

// poolName is the pool that a submission is in.
func poolName(s *facts.Submission) string { return cmp.Or(s.Pool(), wire.DefaultPool) }

// poolOf is the pool that a job is in. Those of a pool that is gone from the table
// are among themselves, without its bounds.
func (l *Live) poolOf(id wire.JobID) string {
	if f := l.facts.Find(id); f != nil {
		return poolName(f.Submission())
	}
	return wire.DefaultPool
}

// shape brings batches and pools into a snapshot: jobs count as arrived with the
// first of their batch that has not ended, whether that has tasks left or not.
func (l *Live) applyPools(s scheduler.Snapshot) scheduler.Snapshot {
	first := make(map[string]time.Duration)
	for _, j := range l.order {
		batch := j.facts.Submission().Terms().Batch
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
