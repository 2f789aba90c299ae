// Package scheduler is the allocation layer: how many slots each job should
// have. It answers one question, as a function of values: given this Snapshot,
// what is the Plan? Which task goes into which slot is not decided here but by
// the assignment layer in jobtracker/core, which follows the Plan.
//
// Invariants
//
//	S1  A Plan depends on its Snapshot alone: no clock, no I/O, no state between
//	    calls, no dependence on map order; ties are broken by job id.
//	S2  A valid Plan never allocates more slots than there are, nor more to a job
//	    than its Max ([Plan.Validate]).
//	S3  Maps and reduces are planned apart, by one Plan each.
//
// A Policy may be called from any goroutine, one call at a time.
package scheduler

import (
	"fmt"
	"time"

	"github.com/quernmr/quern/wire"
)

// Snapshot is what a policy sees of one phase, map or reduce, of all live jobs.
type Snapshot struct {
	Phase wire.Kind // wire.Map or wire.Reduce
	Slots int       // of live trackers
	Jobs  []Job     // that have tasks left in this phase, by id
}

// Job is one job's phase.
type Job struct {
	ID      wire.JobID
	Arrived time.Duration // since the core's zero time
	Running int           // tasks in slots now
	Max     int           // useful slots: tasks not yet done, runnable or running
}

// Plan is the slots each job should have.
type Plan struct {
	Targets []Target // in order of precedence: earlier ones are served first when short
}

// Target is one job's allocation.
type Target struct {
	Job   wire.JobID
	Slots int
}

// Policy computes Plans.
type Policy interface {
	Plan(s Snapshot) (Plan, error)
}

// Validate reports the first way in which p breaks S2 or names a job twice or
// one that s does not have.
func (p Plan) Validate(s Snapshot) error {
	left := make(map[wire.JobID]int, len(s.Jobs))
	for _, j := range s.Jobs {
		left[j.ID] = j.Max
	}
	total := 0
	for _, t := range p.Targets {
		limit, ok := left[t.Job]
		switch {
		case !ok:
			return fmt.Errorf("plan names %v, unknown or for the second time", t.Job)
		case t.Slots < 0 || t.Slots > limit:
			return fmt.Errorf("plan gives %v %d slots of at most %d", t.Job, t.Slots, limit)
		}
		delete(left, t.Job)
		total += t.Slots
	}
	if total > s.Slots {
		return fmt.Errorf("plan gives %d slots of %d", total, s.Slots)
	}
	return nil
}
