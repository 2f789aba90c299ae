// Package waits is how long the tasks of the benchmarks' jobs hold their slots, so
// that the jobs, and who judges their ends, know the same.
package waits

import (
	"math/rand/v2"
	"time"
)

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
