package scheduler

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/quernmr/quern/wire"
)

// Tracker is a machine with slots of the snapshot's phase, for policies that tell machines
// apart.
type Tracker struct {
	ID   string
	Free []float64 // by slot: estimated seconds until it is free
}

// Measured sums up the ended tasks of one job on one tracker, in the snapshot's phase.
type Measured struct {
	Job     wire.JobID // may be absent from Jobs: it still measures the tracker
	Tracker string     // may be absent from Trackers: it still measures the job
	Tasks   int
	Seconds float64 // of all its tasks together
}

// Queue lists tasks that have not started, for the slots of one tracker, in order.
type Queue struct {
	Tracker string
	Runs    []Run
}

// Run is consecutive tasks of one job. A Queue may have several Runs of a job.
type Run struct {
	Job   wire.JobID
	Tasks int
}

// normalTrackers is [Snapshot.Normal] for trackers and measurements. It sorts them by id, and
// drops trackers without slots and measurements without time. It rejects Trackers with slots
// that do not add up to Slots, duplicates, and invalid amounts.
func (s *Snapshot) normalTrackers() error {
	s.Trackers, s.Measured = slices.Clone(s.Trackers), slices.Clone(s.Measured)
	slices.SortFunc(s.Trackers, func(a, b Tracker) int { return cmp.Compare(a.ID, b.ID) })
	slots := 0
	for i, t := range s.Trackers {
		slots += len(t.Free)
		if i > 0 && t.ID == s.Trackers[i-1].ID {
			return fmt.Errorf("tracker %s: field ID is given twice", t.ID)
		}
		for _, at := range t.Free {
			if !validAmount(at) {
				return fmt.Errorf("tracker %s: field Free has %v", t.ID, at)
			}
		}
	}
	if len(s.Trackers) > 0 && slots != s.Slots {
		return fmt.Errorf("snapshot: field Trackers has %d slots, field Slots is %d", slots, s.Slots)
	}
	s.Trackers = slices.DeleteFunc(s.Trackers, func(t Tracker) bool { return len(t.Free) == 0 })
	for _, m := range s.Measured {
		if m.Tasks < 0 {
			return fmt.Errorf("%v: field Measured has %d tasks on tracker %s", m.Job, m.Tasks, m.Tracker)
		}
		if !validAmount(m.Seconds) {
			return fmt.Errorf("%v: field Measured has %v seconds on tracker %s", m.Job, m.Seconds, m.Tracker)
		}
	}
	s.Measured = slices.DeleteFunc(s.Measured, func(m Measured) bool { return m.Tasks == 0 || m.Seconds == 0 })
	slices.SortFunc(s.Measured, func(a, b Measured) int {
		return cmp.Or(a.Job.Compare(b.Job), cmp.Compare(a.Tracker, b.Tracker))
	})
	for i, m := range s.Measured {
		if i > 0 && m.Job == s.Measured[i-1].Job && m.Tracker == s.Measured[i-1].Tracker {
			return fmt.Errorf("%v: field Measured has tracker %s twice", m.Job, m.Tracker)
		}
	}
	return nil
}

// validateQueues is [Plan.Validate] for the queues: each tracker is known and named once, and
// no job has more tasks in queues than tasks not yet done.
func (p Plan) validateQueues(s Snapshot) error {
	if len(p.Queues) == 0 {
		return nil
	}
	trackers, left := make(map[string]bool, len(s.Trackers)), make(map[wire.JobID]int, len(s.Jobs))
	for _, t := range s.Trackers {
		trackers[t.ID] = true
	}
	for _, j := range s.Jobs {
		left[j.ID] = max(j.Tasks, j.Max)
	}
	for _, q := range p.Queues {
		if !trackers[q.Tracker] {
			return fmt.Errorf("plan names tracker %s, unknown or for the second time", q.Tracker)
		}
		delete(trackers, q.Tracker)
		for _, r := range q.Runs {
			if left[r.Job] -= r.Tasks; r.Tasks < 1 || left[r.Job] < 0 {
				return fmt.Errorf("plan has tracker %s run %d tasks of %v, which has too few", q.Tracker, r.Tasks, r.Job)
			}
		}
	}
	return nil
}
