// Package forecast estimates how long tasks take, and predicts when phases, shuffles, jobs
// and flows end. It is the one source of every predicted end.
//
// All of it is functions of values: the caller says what is known of a job ([Job], with a
// [Phase] for its maps and one for its reduces) and of the cluster ([Cluster]), and what
// time it is. Nothing here reads a clock or keeps what it was told, but for [Measures] and
// [Overheads], which sum up what has been seen to happen.
//
// # From what is known to an end
//
//  1. [Known.Task]: the time of a task, as those of the job that have ended took, else as
//     those of the last job of the same name, else as other jobs' tasks ([Mean]).
//  2. [Phase.Correct]: the same with regard to the tasks that run, of which the long ones
//     have not ended yet.
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

// absurd is a time in seconds, thirty years, after which no end is predicted.
const absurd = 1e9

// After is so many seconds, as a policy or a quotient gives them.
func After(seconds float64) time.Duration {
	if !(seconds < absurd) {
		seconds = absurd
	}
	return time.Duration(seconds * float64(time.Second))
}

// Times is how many seconds so many tasks take one after the other, which may be more
// than a time.Duration can hold.
func Times(tasks int, each time.Duration) float64 { return float64(tasks) * each.Seconds() }
