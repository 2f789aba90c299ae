package scheduler

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/quernmr/quern/wire"
)

// Tracker is a machine with slots of the snapshot's phase, for policies to which
// machines are not alike.
type Tracker struct {
	ID   string
	Free []float64 // by slot: seconds until it is free, as far as can be told
}

// Measured is the tasks of one job, of the snapshot's phase, that ended on one tracker.
type Measured struct {
	Job     wire.JobID // need not be in Jobs any more: it tells of the tracker too
	Tracker string     // need not be in Trackers any more: it tells of the job too
	Tasks   int
	Seconds float64 // of all of them together
}

// Queue is what one tracker's slots should run, in order. It is for tasks that have not
// started; while others run, the Plan's Targets say nothing else.
type Queue struct {
	Tracker string
	Runs    []Run
}

// Run is a number of tasks of one job. A job may have several in a Queue.
type Run struct {
	Job   wire.JobID
	Tasks int
}

// normalTrackers is [Snapshot.Normal] for machines and what was measured on them:
// sorted by id; trackers without slots are left out, and what took no time, as on a clock
// that stands still: it tells nothing. Refused are trackers whose slots together are not Slots, a tracker or a pair
// given twice, and times that are negative, NaN, infinite or above 1e15.
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
			if !amount(at) {
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
		if !amount(m.Seconds) {
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

// validateQueues is [Plan.Validate] for what trackers should run: no tracker twice or
// unknown, and of no job more than its tasks.
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
