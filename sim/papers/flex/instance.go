package flex

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/quernmr/quern/scheduler"
	"github.com/quernmr/quern/scheduler/flex"
	"github.com/quernmr/quern/wire"
)

// instance is one experiment's jobs: work, minima, maxima, arrival order, and the data of every
// penalty. The same instance serves all metrics.
type instance struct {
	slots     int
	jobs      []flex.Job // without costs
	arrival   []int      // jobs in order of arrival
	weights   []float64
	deadlines []float64           // seconds
	levels    [][]scheduler.Level // SLA
}

// shape has the parameters of an experiment.
type shape struct {
	jobs, slots int
	small       float64 // share of small jobs
	slack       float64 // mean share of the slots beyond the minima
	tasks       int     // per slot, of all jobs together
	randomSizes bool    // each job is small at random; false: a fixed number of jobs is small
}

// base is the paper's base case.
var base = shape{jobs: 10, slots: 100, small: 0.8, slack: 0.75, tasks: 1000}

const (
	totalWork  = 1000.0 // slot-seconds, of all jobs of an experiment
	largeRatio = 10     // mean work of large jobs over mean work of small jobs
	slaSteps   = 3
	resamples  = 1000 // redraws of a minimum above its maximum
)

// generate draws an instance (FLEX, section 4.1; readings.md has our choices).
func (s shape) generate(r *rand.Rand) (*instance, error) {
	in := &instance{slots: s.slots, jobs: make([]flex.Job, s.jobs)}
	small := int(math.Round(s.small * float64(s.jobs)))
	total := 0.0
	for j := range in.jobs {
		mean := 1.0
		if j >= small && !s.randomSizes || s.randomSizes && r.Float64() >= s.small {
			mean = largeRatio
		}
		in.jobs[j].Work = truncated(r, mean)
		total += in.jobs[j].Work
	}
	task := totalWork / float64(s.tasks*s.slots)
	mean := (1 - s.slack) * float64(s.slots) / float64(s.jobs)
	for j := range in.jobs {
		job := &in.jobs[j]
		job.Work *= totalWork / total
		job.Max = min(s.slots, max(1, int(math.Ceil(job.Work/task))))
		for range resamples {
			if job.Min = max(1, int(math.Round(truncated(r, mean)))); job.Min <= job.Max {
				break
			}
		}
		job.Min = min(job.Min, job.Max)
	}
	in.arrival = r.Perm(s.jobs)
	normal, err := in.snapshot(nil).Normal()
	if err != nil {
		return nil, err
	}
	for j := range in.jobs {
		in.jobs[j].Min = normal.Jobs[j].Min
	}
	horizon := totalWork / float64(s.slots)
	for range in.jobs {
		in.weights = append(in.weights, 1-r.Float64()) // in (0, 1]
		in.deadlines = append(in.deadlines, r.Float64()*horizon)
		levels := make([]scheduler.Level, slaSteps)
		times, costs := make([]float64, slaSteps), make([]float64, slaSteps)
		for k := range levels {
			times[k], costs[k] = r.Float64()*horizon, r.Float64()
		}
		slices.Sort(times)
		slices.Sort(costs)
		for k := range levels {
			levels[k] = scheduler.Level{Due: times[k], Cost: costs[k]}
		}
		in.levels = append(in.levels, levels)
	}
	return in, nil
}

// snapshot returns a policy's view with that much work left, -1 for ended jobs; nil means the
// start. Job j has id j+1.
func (in *instance) snapshot(left []float64) scheduler.Snapshot {
	s := scheduler.Snapshot{Phase: wire.Map, Slots: in.slots, Metric: response}
	place := make([]int, len(in.jobs))
	for i, j := range in.arrival {
		place[j] = i
	}
	for j, job := range in.jobs {
		work := job.Work
		if left != nil {
			if work = left[j]; work < 0 {
				continue
			}
		}
		s.Jobs = append(s.Jobs, scheduler.Job{
			ID: wire.JobID{Start: 1, N: j + 1}, Arrived: time.Duration(place[j]),
			Min: job.Min, Max: job.Max, Work: work, Alone: job.Work,
		})
	}
	return s
}

// closedLoop asks a policy whenever a job ends and returns the ends of all jobs.
func (in *instance) closedLoop(policy scheduler.Policy) ([]float64, error) {
	left, ends := make([]float64, len(in.jobs)), make([]float64, len(in.jobs))
	for j, job := range in.jobs {
		left[j] = job.Work
	}
	now := 0.0
	for range in.jobs {
		s := in.snapshot(left)
		plan, err := policy.Plan(s)
		if err == nil {
			err = plan.Validate(s)
		}
		if err != nil {
			return nil, err
		}
		end, job := math.Inf(1), -1
		for _, t := range plan.Targets {
			j := t.Job.N - 1
			if e := left[j] / float64(t.Slots); t.Slots > 0 && e < end {
				end, job = e, j
			}
		}
		if job < 0 {
			return nil, fmt.Errorf("no job has slots in %+v", plan)
		}
		for _, t := range plan.Targets {
			j := t.Job.N - 1
			left[j] = max(0, left[j]-float64(t.Slots)*end)
		}
		now += end
		left[job], ends[job] = -1, now
	}
	return ends, nil
}

// truncated draws from the normal distribution with that mean and a third of it as standard
// deviation, until the value is positive.
func truncated(r *rand.Rand, mean float64) float64 {
	for {
		if x := mean + r.NormFloat64()*mean/3; x > 0 || mean <= 0 {
			return x
		}
	}
}

// problem returns the instance under a metric.
func (in *instance) problem(m scheduler.Metric) *flex.Problem {
	p := &flex.Problem{Slots: in.slots, Aggregate: m.Aggregate, Jobs: slices.Clone(in.jobs)}
	for j := range p.Jobs {
		c := scheduler.Cost{Penalty: m.Penalty, Weight: 1, Due: in.deadlines[j]}
		if m.Weighted {
			c.Weight = in.weights[j]
		}
		switch m.Penalty {
		case scheduler.Stretch:
			c.Penalty = scheduler.Response
			c.Weight /= p.Jobs[j].Work
		case scheduler.SLA:
			c.Levels = in.levels[j]
		}
		p.Jobs[j].Cost = c
	}
	return p
}
