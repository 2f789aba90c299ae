package core

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/quernmr/quern/wire"
)

// Cluster returns the status of the cluster at a time. Only the leader knows the trackers.
func (c *Core) Cluster(now time.Duration) wire.ClusterStatus { return c.ClusterView(now)() }

// ClusterView copies what the status of the cluster needs, and returns a function that makes the status. Any
// goroutine may call it, once.
func (c *Core) ClusterView(now time.Duration) func() wire.ClusterStatus {
	boot := c.facts.Boot()
	total, ended := c.facts.CountJobs()
	s := wire.ClusterStatus{
		Cluster: boot.Cluster, Start: boot.Start, Staging: boot.Staging,
		Epoch: c.facts.Epoch(), Leader: c.facts.Leader().Leader, Addr: c.facts.Leader().Addr, IsLeader: c.IsLeader(),
		Jobs: total - ended,
	}
	if c.leader == nil {
		return func() wire.ClusterStatus { return s }
	}
	l := c.leader
	_, inForce := c.facts.Pools()
	table, uses := *inForce, l.assign.PoolUses()
	s.Scheduling, s.NoPlan, s.Pools = l.sharing.Requested, l.noPlanReason(), l.poolStatus()
	s.Limits = l.limitsInUse()
	s.Drains, s.Exclusions = l.drainStatuses(), l.exclusionStatuses()
	s.Trackers = slices.Grow(s.Trackers, len(l.fleet.trackers))
	for _, t := range l.fleet.trackers {
		s.Trackers = append(s.Trackers, l.trackerStatus(t, max(now, c.now)))
	}
	s.Lost = l.fleet.losses.Current(max(now, c.now))
	return func() wire.ClusterStatus {
		s.InPools, s.PoolNotes = poolsInUse(&table, uses), slices.Clone(table.Warnings)
		slices.SortFunc(s.Trackers, func(a, b wire.TrackerStatus) int { return cmp.Compare(a.Tracker, b.Tracker) })
		return s
	}
}

func (l *leader) trackerStatus(t *tracker, now time.Duration) wire.TrackerStatus {
	s := wire.TrackerStatus{
		Tracker: t.Name, Host: t.Host, Addr: t.Addr, Incarnation: t.Incarnation,
		MapSlots: t.slots[mapPhase], ReduceSlots: t.slots[reducePhase],
		Maps: t.slots[mapPhase] - t.assign.Free(mapPhase), Reduces: t.slots[reducePhase] - t.assign.Free(reducePhase),
		Memory:    wire.Offer{Total: t.assign.Offer().Memory, Used: t.assign.Used().Memory},
		Cores:     wire.Offer{Total: int64(t.assign.Offer().Cores), Used: int64(t.assign.Used().Cores)},
		Connected: t.usable(), Silent: (now - t.contact.lastHeard).Milliseconds(),
		Excluded: t.Excluded, Trouble: t.contact.trouble, Rack: t.rack, Limits: t.contact.limits, Isolation: t.contact.isolation,
		Machine: t.machine, Faults: t.faults,
	}
	if t.contact.unhealthy != "" {
		s.Trouble = strings.TrimPrefix(s.Trouble+"; unhealthy: "+t.contact.unhealthy, "; ")
	}
	if t.contact.notIsolated != "" {
		s.Trouble = strings.TrimPrefix(s.Trouble+"; jobs are not isolated: "+t.contact.notIsolated+" (-isolation none accepts this)", "; ")
	}
	if t.contact.stops {
		s.Trouble = strings.TrimPrefix(s.Trouble+"; it stops", "; ")
	}
	if t.health.OnProbation() {
		s.Trouble = strings.TrimPrefix(s.Trouble+"; it was excluded, and runs one attempt at a time until one succeeds", "; ")
	}
	if conflict := l.fleet.topo.Conflict(t.Host, t.Tracker.Rack); conflict != "" {
		s.Trouble = strings.TrimPrefix(s.Trouble+"; "+conflict, "; ")
	}
	return s
}
