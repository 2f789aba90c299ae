// Package forecast estimates task times, and predicts the ends of phases, shuffles, jobs and
// flows. All predicted ends come from here.
//
// Predictions depend only on arguments: the state of each job ([Job], with a [Phase] for its maps
// and one for its reduces), of the cluster ([Cluster]), and the time. Nothing here reads a clock.
// Only [Measures] and [Overheads] have state: sums of measured times.
//
// # Steps of a forecast
//
//  1. [TaskTimes.Task] estimates the time of a task from the job's ended tasks, else from the
//     last job of the same name, else from tasks of other jobs ([Mean]).
//  2. [Phase.Correct] corrects this for running tasks, since long tasks end late.
//  3. [Phase.Work] computes the slot-seconds that the phase has left.
//  4. [Predict] predicts the ends of all jobs, given the plans in force: maps first, in the order
//     of the plan, then shuffles, reduces, and jobs that have not begun.
//  5. [Range] says how far the end may be from that. Its width comes from the spread of task times,
//     the number of measured tasks and of tasks left, the shuffle, and the work of other jobs.
package forecast

import "time"

// The phases of a job, as indexes.
const (
	Map = iota
	Reduce
)

// Never stands for an end that cannot be predicted.
const Never = time.Duration(1<<63 - 1)

// farFuture bounds predictions, in seconds: thirty years.
const farFuture = 1e9

// Duration converts seconds to a time.Duration, at most farFuture.
func Duration(seconds float64) time.Duration {
	if !(seconds < farFuture) {
		seconds = farFuture
	}
	return time.Duration(seconds * float64(time.Second))
}

// TotalSeconds is tasks times each, in seconds. A time.Duration could overflow.
func TotalSeconds(tasks int, each time.Duration) float64 { return float64(tasks) * each.Seconds() }
