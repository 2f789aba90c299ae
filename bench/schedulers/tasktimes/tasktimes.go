// Package tasktimes has the times for which the tasks of the benchmarks' jobs hold their slots.
// The job program (../waiting) waits for them, and the benchmark compares the jobs' ends with
// them.
package tasktimes

import (
	"math/rand/v2"
	"time"
)

// TrackerVariable is the environment variable with the name of a task's tracker.
const TrackerVariable = "BENCH_TRACKER"

// Job is the tasks of one phase of a job: each waits for Mean plus or minus up to Spread of it,
// depending on its number.
type Job struct {
	Seed   uint64
	Mean   time.Duration
	Spread float64
}

// Task is the wait of a task by number, on a tracker of ordinary speed.
func (j Job) Task(n int) time.Duration {
	r := rand.New(rand.NewPCG(j.Seed, uint64(n)))
	return time.Duration(float64(j.Mean) * (1 + j.Spread*(2*r.Float64()-1)))
}

// Seconds is the total wait of n tasks.
func (j Job) Seconds(n int) float64 {
	total := 0.0
	for i := range n {
		total += j.Task(i).Seconds()
	}
	return total
}
