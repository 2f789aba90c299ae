// Package forecast estimates how long tasks take, and predicts when phases, shuffles, jobs
// and flows end. It is the one source of every predicted end.
//
// Everything is a function of values: the caller passes the state of each job ([Job], with a
// [Phase] for its maps and one for its reduces), of the cluster ([Cluster]), and the time.
// Nothing here reads a clock. Only [Measures] and [Overheads] keep state: sums of observed
// times.
//
// # Steps of a forecast
//
//  1. [Known.Task]: the time of a task, from the job's ended tasks, else from the last job of
//     the same name, else from other jobs' tasks ([Mean]).
//  2. [Phase.Correct]: the same, corrected for running tasks, since long tasks end late.
//  3. [Phase.Work]: the slot-seconds that the phase has left.
//  4. [Predict]: the ends of all jobs, given the plans in force. Maps go first, in the order
//     of the plan; shuffles follow, then reduces, then the jobs that have not begun.
package forecast

import "time"

// The phases of a job, as indexes.
const (
	Map = iota
	Reduce
)

// Never is the time of an end that cannot be predicted.
const Never = time.Duration(1<<63 - 1)

// farFuture is a time in seconds, thirty years, after which no end is predicted.
const farFuture = 1e9

// After converts seconds, at most farFuture.
func Duration(seconds float64) time.Duration {
	if !(seconds < farFuture) {
		seconds = farFuture
	}
	return time.Duration(seconds * float64(time.Second))
}

// TotalSeconds is tasks times each, in seconds, which may exceed a time.Duration.
func TotalSeconds(tasks int, each time.Duration) float64 { return float64(tasks) * each.Seconds() }
