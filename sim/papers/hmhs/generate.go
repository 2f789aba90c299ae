package hmhs

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/quernmr/quern/scheduler/hmhs"
)

// workload is one of the paper's two.
type workload struct {
	name        string
	long, large float64 // share of long and of large jobs
}

func workloads() []workload {
	return []workload{{name: "single"}, {name: "hybrid", long: 0.15, large: 0.05}}
}

// machines is the number of map machines, and of reduce machines.
const machines = 100

// cluster controls the drawing of factors.
type cluster struct {
	slow        float64 // share of slow machines, with factors of U[0.9, 1]
	perMachine  bool    // a reading: a machine has the same factor for all jobs
	randomSizes bool    // a reading: each job is long or large at random, not in fixed numbers
}

// batch draws jobs (section 4.1). The first map machines and the first reduce machines are slow.
// Factors are drawn for each job and machine.
func (w workload) batch(jobs int, c cluster, r *rand.Rand) *hmhs.Batch {
	b := &hmhs.Batch{Maps: free(machines), Reduces: free(machines)}
	slow := int(math.Round(c.slow * machines))
	var shared [2][]float64
	for k := range shared {
		shared[k] = factors(slow, r)
	}
	factor := func(kind int) []float64 {
		if c.perMachine {
			return shared[kind]
		}
		return factors(slow, r)
	}
	order := r.Perm(jobs)
	long := int(math.Round(w.long * float64(jobs)))
	large := int(math.Round(w.large * float64(jobs)))
	for i := range jobs {
		j := hmhs.Job{ID: fmt.Sprint(i)}
		isLong, isLarge := order[i] < long, order[i] >= long && order[i] < long+large
		if c.randomSizes {
			x := r.Float64()
			isLong, isLarge = x < w.long, x >= w.long && x < w.long+w.large
		}
		j.Map, j.Reduce = stages(isLong, isLarge, r)
		j.Map.Factor, j.Reduce.Factor = factor(0), factor(1)
		b.Jobs = append(b.Jobs, j)
	}
	return b
}

func stages(long, large bool, r *rand.Rand) (maps, reduces hmhs.Stage) {
	maps = hmhs.Stage{Tasks: wholeBetween(r, 1, 300), Time: between(r, 5, 45)}
	reduces = hmhs.Stage{Tasks: wholeBetween(r, 1, 40), Time: between(r, 15, 135)}
	if long {
		maps.Time, reduces.Time = between(r, 100, 2000), between(r, 300, 6000)
	}
	if large {
		maps.Tasks, reduces.Tasks = wholeBetween(r, 2000, 5000), wholeBetween(r, 100, 400)
	}
	return maps, reduces
}

func factors(slow int, r *rand.Rand) []float64 {
	all := make([]float64, machines)
	for m := range all {
		all[m] = between(r, 0.1, 1)
		if m < slow {
			all[m] = between(r, 0.9, 1)
		}
	}
	return all
}

func free(n int) []hmhs.Machine {
	all := make([]hmhs.Machine, n)
	for m := range all {
		all[m].Free = []float64{0}
	}
	return all
}

func between(r *rand.Rand, low, high float64) float64 { return low + (high-low)*r.Float64() }

func wholeBetween(r *rand.Rand, low, high int) int { return low + r.IntN(high-low+1) }
