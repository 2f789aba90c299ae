// Package scheduler is the allocation layer: how many slots each job should
// have. It answers one question, as a function of values: given this Snapshot,
// what is the Plan? Which task goes into which slot is not decided here but by
// the assignment layer in jobtracker/core, which follows the Plan.
//
// This package has the seam ([Snapshot], [Plan], [Policy]), the menu of what can
// be minimised ([Metric], [Cost]) and the two policies that minimise nothing,
// [FIFO] and [Fair]. The optimizers are in packages below it.
//
// Invariants
//
//	S1  A Plan depends on its Snapshot alone: no clock, no I/O, no state between
//	    calls, no dependence on map order; ties are broken by job id.
//	S2  A valid Plan never allocates more slots than there are, nor more to a job
//	    than its Max ([Plan.Validate]).
//	S3  Maps and reduces are planned apart, by one Plan each.
//	S4  Every policy but FIFO gives each job at least its minimum as [Snapshot.Normal]
//	    leaves it ([Plan.KeepsMinima]); a phase that has not been measured yet has
//	    a minimum of one slot as long as there are slots. FIFO knows only minima that
//	    are asked for, and with [FIFO.Minima] alone.
//	S5  The jobs of a pool have together no more than its Max ([Plan.Validate]). They
//	    have its Min as long as they can use it and minima fit the slots.
//
// Units: slots are counted, work is in slot-seconds, times of costs are seconds
// from the snapshot's time. Times on the core's clock are time.Durations.
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
	Phase  wire.Kind     // wire.Map or wire.Reduce
	Slots  int           // of live trackers
	Jobs   []Job         // that have tasks left in this phase, by id
	Now    time.Duration // since the core's zero time
	Metric Metric        // what to minimise; the zero Metric is the sum of response times
	Usual  float64       // seconds of a task of which nothing is known; 0: the mean of those of which something is
	Later  []Later       // phases of flows that wait for others; for policies that look ahead
	Flows  []Flow        // of Jobs and Later, by First, likewise; none: not told

	Transfers []Transfer // shuffles not done, also of jobs whose maps are; with wire.Map
	Bandwidth float64    // bytes per second that all homes together fetch; 0: not measured

	Pools []Pool // whose bounds their jobs share as the policy has it, see [Within]

	Trackers []Tracker  // with slots of this phase; none: not told, all slots are alike
	Measured []Measured // what ended where, also of jobs that have ended
}

// Job is one job's phase.
type Job struct {
	ID      wire.JobID
	Arrived time.Duration // since the core's zero time
	Running int           // tasks in slots now
	Max     int           // useful slots: tasks not yet done, runnable or running
	Tasks   int           // tasks not yet done, where a limit lowers Max; 0: Max. Queues may have them all
	Min     int           // guaranteed slots
	Pool    int           // 1 + its place in Pools; 0: in none that is bounded
	Work    float64       // slot-seconds left, as far as measured; 0: not measured yet
	Alone   float64       // slot-seconds of the whole phase, what stretch divides by; 0: Work
	Goal    Goal
	Flow    int // the flow's number; 0: the job stands alone

	Priority int     // the higher goes first where order is that of arrival
	Share    float64 // of slots, in proportion to others', where they are shared evenly; 0: 1
	Batch    string  // jobs of one batch are planned as one arrival; empty: alone
}

// Pool is what jobs may have together. Minima fit the slots.
type Pool struct {
	Min, Max int // slots
}

// Later is a phase of a flow that cannot use slots yet.
type Later struct {
	ID    wire.JobID
	Phase wire.Kind
	Flow  int
	Max   int       // tasks
	Work  float64   // slot-seconds; 0: unknown
	After []PhaseID // of the same flow, in Jobs or in Later; others have ended
	Lag   float64   // seconds that pass after those, before it can use slots
	Goal  Goal
}

// Flow is a flow as a whole, or a job that stands alone, with all that has ended of it.
type Flow struct {
	First int     // the number of its first job, which is also Job.Flow of those of a flow
	Alone float64 // seconds that it would take with all slots: what stretch divides by; 0: not known
}

// PhaseID names a job's phase.
type PhaseID struct {
	Job   wire.JobID
	Phase wire.Kind
}

// Plan is the slots each job should have.
type Plan struct {
	Targets  []Target  // in order of precedence: earlier ones are served first when short
	Portions []Portion // of the shuffle, in order of precedence: what one cannot use is the next one's; none: no opinion
	Queues   []Queue   // what each tracker should run, in order; none: no opinion
}

// Target is one job's allocation.
type Target struct {
	Job   wire.JobID
	Slots int
	End   float64 // seconds until the phase should end if nothing changes; 0: not said

	Trackers []string // where its tasks end soonest once started, best first; none: no opinion
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
	if err := p.validatePools(s); err != nil {
		return err
	}
	if err := p.validatePortions(s); err != nil {
		return err
	}
	return p.validateQueues(s)
}

// KeepsMinima reports the first job to which p gives less than S4 asks for, or the first
// pool to which it gives less than S5 does.
func (p Plan) KeepsMinima(s Snapshot) error {
	normal, err := s.Normal()
	if err != nil {
		return err
	}
	given := make(map[wire.JobID]int, len(p.Targets))
	for _, t := range p.Targets {
		given[t.Job] = t.Slots
	}
	has := p.inPools(normal)
	for _, j := range normal.Jobs {
		full := j.Pool > 0 && has[j.Pool] == s.Pools[j.Pool-1].Max
		if given[j.ID] < j.Min && !full {
			return fmt.Errorf("plan gives %v %d slots of at least %d", j.ID, given[j.ID], j.Min)
		}
	}
	return p.keepsPools(normal, has)
}
