// Package census has the numbers that the metrics of a job tracker show. Package core counts them.
//
// Counts only grow, and any goroutine may read them. A Census is made for each request: it has the
// jobs and task trackers of one moment. Neither has numbers of single jobs, users or pools, since
// each of them would be a time series that Prometheus keeps.
package census

import (
	"time"

	"github.com/quernmr/quern/meter"
	"github.com/quernmr/quern/wire"
)

// Outcomes are how an attempt ends.
type Outcome int

// The outcomes.
const (
	Succeeded Outcome = iota
	Failed
	Killed
	Lost // with its task tracker
	Outcomes
)

func (o Outcome) String() string { return [...]string{"succeeded", "failed", "killed", "lost"}[o] }

// Phases are maps and reduces, which run in slots.
const Phases = 2

// Counts are what a job tracker has counted in its process, while it was the leader.
type Counts struct {
	Submitted      meter.Count                           // jobs
	Ended          [wire.Killed + 1]meter.Count          // jobs, by final state
	Attempts       [wire.Fence + 1][Outcomes]meter.Count // ended attempts, by kind
	Second         [Phases]meter.Count                   // attempts that were launched beside another one
	Levels         [wire.Remote + 1]meter.Count          // launched maps; 0: their input has no known place
	Preempted      meter.Count                           // attempts
	Lost           meter.Count                           // task trackers
	Excluded       meter.Count                           // task trackers, by the leader
	TaskTimes      [Phases]*meter.Histogram              // of tasks that succeeded
	QueueTime      *meter.Histogram                      // from submission to the first launch of a map or reduce
	ForecastErrors *meter.Histogram                      // of jobs that succeeded, in parts of their lives: see WholeLife
}

// WholeLife is the error of a forecast that is wrong by the whole life of a job.
const WholeLife = 100_000

// NewCounts makes Counts.
func NewCounts() *Counts {
	return &Counts{
		TaskTimes: [Phases]*meter.Histogram{meter.NewTimes(100 * time.Millisecond), meter.NewTimes(100 * time.Millisecond)},
		QueueTime: meter.NewTimes(50 * time.Millisecond), ForecastErrors: meter.NewHistogram(WholeLife / 32),
	}
}

// Census is how many there are of everything, at one moment.
type Census struct {
	Jobs      [wire.Stopping + 1]int // that have not ended, by state
	Suspended int                    // jobs
	Late      int                    // jobs that are predicted to end after their deadlines
	Unstarted time.Duration          // age of the oldest job without any launched map or reduce
	Phases    [Phases]Phase
	Trackers  Trackers
}

// Phase is about maps or reduces of all jobs.
type Phase struct {
	Pending int // tasks that may be launched
	Slots   int // of task trackers that get work
	Used    int // slots of all task trackers
}

// Trackers are how many task trackers there are. One may count several times.
type Trackers struct {
	Registered int
	Usable     int // they get work
	Excluded   int // by the leader or an operator
	Draining   int
	Unhealthy  int
	Probation  int
}
