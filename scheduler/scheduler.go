// Package scheduler decides how many slots each job should have. A policy is a function of
// values: a [Snapshot] in, a [Plan] out. The assignment layer in jobtracker/core follows the
// Plan and decides which task runs in which slot.
//
// This package has the types of that interface ([Snapshot], [Plan], [Policy]), the metrics
// ([Metric], [Cost]) and the two policies that minimise nothing, [FIFO] and [Fair]. The
// optimizers are in subpackages.
//
// Invariants
//
//	S1  A Plan depends on its Snapshot alone: no clock, no I/O, no state between
//	    calls, no dependence on map order; ties are broken by job id.
//	S2  A valid Plan never allocates more slots than there are, nor more to a job
//	    than its Max ([Plan.Validate]).
//	S3  Maps and reduces are planned separately, by one Plan each.
//	S4  Every policy but FIFO gives each job at least its minimum as [Snapshot.Normal]
//	    leaves it ([Plan.CheckMinima]). A phase that has not been measured yet has a
//	    minimum of one slot as long as there are slots. FIFO keeps only configured
//	    minima, and only with [FIFO.Minima].
//	S5  The jobs of a pool together have at most its Max ([Plan.Validate]). They have
//	    its Min as long as they can use it and all minima fit the slots.
//
// Units: slots are counts, work is in slot-seconds, times of costs are seconds from the
// snapshot's time. Times on the core's clock are time.Durations.
//
// A Policy may be called from any goroutine, one call at a time.
package scheduler

import (
	"fmt"
	"time"

	"github.com/quernmr/quern/wire"
)

// Snapshot is a policy's view of one phase, map or reduce, of all live jobs.
type Snapshot struct {
	Phase       wire.Kind     // wire.Map or wire.Reduce
	Slots       int           // of live trackers
	Jobs        []Job         // jobs with tasks left in this phase, by id
	Now         time.Duration // since the core's zero time
	Metric      Metric        // what to minimise; the zero Metric is the sum of response times
	TaskSeconds float64       // assumed seconds of an unmeasured job's task; 0: the mean of the measured tasks
	Later       []LaterPhase  // phases of flows that wait for others; for policies that plan them too
	Flows       []Flow        // flows of Jobs and Later, by First, for the same policies; none: unknown

	Transfers []Transfer // unfinished shuffles, also of jobs without maps left; with wire.Map
	Bandwidth float64    // bytes per second that all homes together fetch; 0: not measured

	Pools []Pool // jobs of a pool share its bounds as the policy decides, see [PoolLimited]

	Trackers []Tracker  // with slots of this phase; none: unknown, all slots are alike
	Measured []Measured // ended tasks by job and tracker, also of jobs that have ended
}

// Job is one job's phase.
type Job struct {
	ID      wire.JobID
	Arrived time.Duration // since the core's zero time
	Running int           // tasks in slots now
	Max     int           // useful slots: tasks not yet done, runnable or running
	Tasks   int           // tasks not yet done; 0: Max. More than Max if a pool limit lowers Max
	Min     int           // guaranteed slots
	Pool    int           // 1 + its index in Pools; 0: no bounded pool
	Work    float64       // slot-seconds left, as far as measured; 0: not measured yet
	Alone   float64       // slot-seconds of the whole phase, the divisor of stretch; 0: Work
	Goal    Goal
	Flow    int // the flow's number; 0: not in a flow

	Priority int     // higher goes first where the order is by arrival
	Share    float64 // weight for policies that share evenly; 0: 1
	Batch    string  // jobs of one batch are planned as one arrival; empty: no batch
}

// Pool limits the slots that its jobs have together. The minima of all pools fit the slots.
type Pool struct {
	Min, Max int // slots
}

// LaterPhase is a phase of a flow that cannot use slots yet.
type LaterPhase struct {
	ID    wire.JobID
	Phase wire.Kind
	Flow  int
	Max   int       // tasks
	Work  float64   // slot-seconds; 0: unknown
	After []PhaseID // predecessors of the same flow, in Jobs or in Later; others have ended
	Lag   float64   // seconds from the end of After to the start of this phase
	Goal  Goal
}

// Flow is a whole flow, or a job outside flows, including its ended phases.
type Flow struct {
	First int     // the number of its first job, equal to Job.Flow for jobs in flows
	Alone float64 // seconds with all slots, the divisor of stretch; 0: unknown
}

// PhaseID names a job's phase.
type PhaseID struct {
	Job   wire.JobID
	Phase wire.Kind
}

// Plan is the slots each job should have.
type Plan struct {
	Targets       []Target       // in order of precedence: earlier ones get slots first when there are too few
	ShuffleShares []ShuffleShare // of the shuffle, in order of precedence; each leaves its unused part to the next; none: no preference
	Queues        []Queue        // by tracker, its tasks in order; none: no preference
}

// Target is one job's allocation.
type Target struct {
	Job   wire.JobID
	Slots int
	End   float64 // seconds until the phase should end if nothing changes; 0: unknown

	Trackers []string // trackers on which a started task ends soonest, best first; none: no preference
}

// Policy computes Plans.
type Policy interface {
	Plan(s Snapshot) (Plan, error)
}

// Validate reports the first violation of S2, and a job that is unknown to s or named twice.
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
	if err := p.validateShuffleShares(s); err != nil {
		return err
	}
	return p.validateQueues(s)
}

// CheckMinima reports the first job or pool with less than S4 or S5 guarantees.
func (p Plan) CheckMinima(s Snapshot) error {
	normal, err := s.Normal()
	if err != nil {
		return err
	}
	given := make(map[wire.JobID]int, len(p.Targets))
	for _, t := range p.Targets {
		given[t.Job] = t.Slots
	}
	inPool := p.slotsByPool(normal)
	for _, j := range normal.Jobs {
		full := j.Pool > 0 && inPool[j.Pool] == s.Pools[j.Pool-1].Max
		if given[j.ID] < j.Min && !full {
			return fmt.Errorf("plan gives %v %d slots of at least %d", j.ID, given[j.ID], j.Min)
		}
	}
	return p.checkPoolMinima(normal, inPool)
}
