// Package tasktimes computes how long each task of a benchmark's job holds its slot. The job
// program (../waiting) waits for that time, and the benchmark computes the jobs' work from it.
package tasktimes

import (
	"math/rand/v2"
	"time"
)

// TrackerVariable is the environment variable with the ID of a task's tracker.
const TrackerVariable = "BENCH_TRACKER"

// Job describes the tasks of one phase of a job. A task waits for Mean, plus or minus up to
// Spread*Mean; its number selects the deviation.
type Job struct {
	Seed   uint64
	Mean   time.Duration
	Spread float64
}

// Task returns the wait of task n on a tracker of ordinary speed.
func (j Job) Task(n int) time.Duration {
	r := rand.New(rand.NewPCG(j.Seed, uint64(n)))
	return time.Duration(float64(j.Mean) * (1 + j.Spread*(2*r.Float64()-1)))
}

// Seconds returns the total wait of n tasks.
func (j Job) Seconds(n int) float64 {
	total := 0.0
	for i := range n {
		total += j.Task(i).Seconds()
	}
	return total
}
