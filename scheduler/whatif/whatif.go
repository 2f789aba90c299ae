// Package whatif predicts what a scheduler would make of the jobs that are there now: when each would end, and the
// value of every metric. [Predict] replays the rest of the jobs under a policy. The policy makes its plans itself, from
// the snapshots that the job tracker would give it.
//
// # The replay
//
// The replay goes from event to event: a task ends, a shuffle ends, a job begins or ends.
//
//   - A free slot takes a task of the job that lacks the largest part of its planned slots, then of the first one in
//     the plan: the rule of package jobtracker/core/assign. Queues of a plan come before it. A running task keeps its
//     slot. Pools keep their maxima, and users and pools their limits of running jobs.
//   - Plans are made when a job gets its first tasks of a phase or has launched its last one, when a phase ends, and when
//     its tasks are measured. A job tracker plans more often; in between, targets change little.
//   - A task takes the estimated time of its phase. The tasks of a phase have log-normal times with the phase's
//     deviation, at equal distances in their distribution, in an order that looks random. They depend on the job alone: so
//     two schedulers differ only by their plans. Where tasks were measured on trackers, their speeds count.
//   - Homes fetch map output while maps run, with the measured bandwidth, in the order and with the shares of the plan. A
//     job's reduces may run when all of its map output is at homes.
//   - A job ends a usual time after its last task. A job of a flow begins a usual time after the end of those that
//     write its input.
//
// No job is submitted and nothing fails. Not in the replay: locality and delay rules, room beside slots except as a
// limit of a job, starts of processes, second attempts, preemption.
//
// A job tracker may have 100,000 tasks to launch. Then the replay joins tasks of the jobs with the most of them: they
// run one after the other in a slot. So it has about maxEvents events.
//
// Predict depends on its arguments alone. It costs O(E·J) for E events and J jobs, and the plans.
package whatif

import (
	"context"
	"errors"
	"time"

	"github.com/quernmr/quern/scheduler"
	"github.com/quernmr/quern/scheduler/menu"
	"github.com/quernmr/quern/scheduler/pool"
	"github.com/quernmr/quern/wire"
)

// The phases of a job, as indexes.
const (
	Map = iota
	Reduce
)

// State is the cluster and its jobs at a moment. Predict does not change it.
type State struct {
	Now       time.Duration // on the clock of Arrived and of goals
	Metric    scheduler.Metric
	Trackers  []Tracker  // with slots, by name
	Bandwidth float64    // of all homes together, in bytes a second; 0: not measured, fetches take no time
	Close     float64    // seconds from the last task of a job to its end
	SetUp     float64    // seconds from the begin of a job to its first map
	Usual     [2]float64 // seconds of a task of jobs that are not measured, by phase
	Pools     *pool.Table
	Jobs      []Job        // by id, without suspended and ended ones
	Others    [2][]Running // attempts of other jobs, which keep their slots to their ends; by phase
	Flows     []scheduler.Flow
	Measured  [2][]scheduler.Measured // ended tasks by phase, job and tracker, also of ended jobs
}

// Tracker is a task tracker.
type Tracker struct {
	Name  string
	Slots [2]int
}

// Job is a job that has not ended.
type Job struct {
	ID       wire.JobID
	User     string
	Pool     string
	Arrived  time.Duration
	Goal     scheduler.Goal
	Priority int
	Batch    string
	Flow     int // number of its flow; 0: none

	Begun     bool         // its number of maps is known
	After     []wire.JobID // jobs that write its input, if it has not begun; those that are not in State.Jobs have ended
	Lag       float64      // if it has not begun: seconds from the end of After to its first map
	Closing   float64      // all tasks have ended: seconds to the end of the job, at least; 0: they have not
	Slowstart float64      // part of the maps after which some schedulers plan its reduces

	Phases  [2]Phase
	Shuffle Shuffle
}

// Phase is the maps or the reduces of a job.
type Phase struct {
	Tasks     int       // in all
	Left      int       // that have not succeeded
	Running   []Running // attempts in slots
	Seconds   float64   // of a task; 0: not measured
	Deviation float64   // standard deviation of the times, as a part of their mean
	Fits      int       // the slots that have room for its tasks
}

// Running is an attempt in a slot.
type Running struct {
	Tracker int     // index in State.Trackers; -1: another one, its slot does not count
	Rest    float64 // estimated seconds to its end
}

// Shuffle is the map output of a job, in bytes.
type Shuffle struct {
	Ready float64 // of ended maps, not at homes yet
	Left  float64 // not at homes yet: Ready, and the output of maps to come
	Whole float64
}

// Planner makes a plan for a snapshot. ended is the part of all phases that have ended, from 0 to 1. keep means that
// the plan before stays in force. After an error the prediction fails.
type Planner func(s scheduler.Snapshot, ended float64) (plan scheduler.Plan, keep bool, err error)

// Plans makes a Planner that always asks a policy. A policy that adds forecasts to plans makes many plans for each:
// these are left out.
func Plans(p scheduler.Policy) Planner {
	p = WithoutForecast(p)
	return func(s scheduler.Snapshot, _ float64) (plan scheduler.Plan, keep bool, err error) {
		plan, err = p.Plan(s)
		return plan, false, err
	}
}

// WithoutForecast returns the policy to which a forecast of ends is added.
func WithoutForecast(p scheduler.Policy) scheduler.Policy {
	if f, ok := p.(scheduler.Forecasting); ok {
		return f.Policy
	}
	return p
}

// Prediction says what a scheduler would make of the jobs.
type Prediction struct {
	Ends  []float64 // by index in State.Jobs: seconds from now to the job's end
	Plans int       // plans that were made
	Kept  int       // how often an older plan stayed in force
}

// ErrNeverEnds reports that jobs would never end, as without slots.
var ErrNeverEnds = errors.New("some jobs get no slots")

// maxEvents is about how many tasks a replay launches one by one.
const maxEvents = 30_000

// Predict replays the jobs of a state under a planner. needs are those of its policy. It fails with ErrNeverEnds, the
// planner's error or that of ctx.
func Predict(ctx context.Context, s *State, needs menu.Needs, plan Planner) (*Prediction, error) {
	p := newPlay(s, needs, plan)
	return p.run(ctx)
}
