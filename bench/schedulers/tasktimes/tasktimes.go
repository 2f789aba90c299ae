// Package tasktimes says how long the tasks of the benchmarks' jobs hold their slots. The
// job program (../waiting) waits so long, and the benchmark judges the jobs' ends by it.
package tasktimes

import (
	"math/rand/v2"
	"time"
)

// TrackerVariable is in the environment of tasks: which of the benchmark's trackers they run on.
const TrackerVariable = "BENCH_TRACKER"

// Job is one job's tasks of a phase: they wait for Mean, more or less by up to
// Spread of it, as their numbers say.
type Job struct {
	Seed   uint64
	Mean   time.Duration
	Spread float64
}

// Task is how long the task of that number waits on a tracker of ordinary speed.
func (j Job) Task(n int) time.Duration {
	r := rand.New(rand.NewPCG(j.Seed, uint64(n)))
	return time.Duration(float64(j.Mean) * (1 + j.Spread*(2*r.Float64()-1)))
}

// Seconds is how long n tasks wait together.
func (j Job) Seconds(n int) float64 {
	total := 0.0
	for i := range n {
		total += j.Task(i).Seconds()
	}
	return total
}
