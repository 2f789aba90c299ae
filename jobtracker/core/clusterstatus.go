package core

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/quernmr/quern/wire"
)

// Statuses is the status of all jobs kept, oldest first, at the time now.
func (c *Core) Statuses(now time.Duration) []wire.JobStatus {
	kept, _ := c.facts.CountJobs()
	statuses := make([]wire.JobStatus, 0, kept)
	for f := range c.facts.Jobs() {
		if s, ok := c.StatusAt(now, c.facts.ID(f.N())); ok {
			statuses = append(statuses, s)
		}
	}
	return statuses
}

// Attempts lists the attempts of a job that has not ended, by task and number, with its token.
// ok is false for an unknown job, and on followers.
func (c *Core) Attempts(id wire.JobID) (attempts wire.JobAttempts, ok bool) {
	if c.live == nil {
		return wire.JobAttempts{}, false
	}
	j := c.live.job(id)
	if j == nil {
		return wire.JobAttempts{}, false
	}
	return wire.JobAttempts{Attempts: c.live.allAttempts(j), Owner: j.facts.Submission().Owner(), Token: j.spec.token}, true
}

// Cluster is the status of the cluster at a time. Only the leader knows the trackers.
func (c *Core) Cluster(now time.Duration) wire.ClusterStatus {
	boot := c.facts.Boot()
	kept, ended := c.facts.CountJobs()
	_, pools := c.facts.Pools()
	s := wire.ClusterStatus{
		Cluster: boot.Cluster, Start: boot.Start, Staging: boot.Staging,
		Epoch: c.facts.Epoch(), Leader: c.facts.Leader().Leader, Addr: c.facts.Leader().Addr, IsLeader: c.IsLeader(),
		Jobs: kept - ended,
	}
	if c.live == nil {
		return s
	}
	s.Scheduling, s.NoPlan, s.Pools = c.live.sharing.Requested, c.live.noPlanReason(), c.live.poolStatus()
	s.InPools, s.PoolNotes = c.live.poolsInUse(), slices.Clone(pools.Warnings)
	s.Drains = c.live.drainStatuses()
	for _, t := range c.live.fleet.trackers {
		s.Trackers = append(s.Trackers, c.live.trackerStatus(t, max(now, c.now)))
	}
	s.Lost = c.live.fleet.losses.Current(max(now, c.now))
	slices.SortFunc(s.Trackers, func(a, b wire.TrackerStatus) int { return cmp.Compare(a.Tracker, b.Tracker) })
	return s
}

func (l *Live) trackerStatus(t *tracker, now time.Duration) wire.TrackerStatus {
	s := wire.TrackerStatus{
		Tracker: t.Name, Host: t.Host, Addr: t.Addr, Incarnation: t.Incarnation,
		MapSlots: t.slots[mapPhase], ReduceSlots: t.slots[reducePhase],
		Maps: t.slots[mapPhase] - t.assign.Free(mapPhase), Reduces: t.slots[reducePhase] - t.assign.Free(reducePhase),
		Connected: t.usable(), Silent: (now - t.contact.lastHeard).Milliseconds(),
		Excluded: t.Excluded, Trouble: t.contact.trouble, Rack: t.rack,
	}
	if conflict := l.fleet.topo.Conflict(t.Host, t.Tracker.Rack); conflict != "" {
		s.Trouble = strings.TrimPrefix(s.Trouble+"; "+conflict, "; ")
	}
	return s
}
