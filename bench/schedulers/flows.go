package schedulers

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/quernmr/quern/bench/schedulers/tasktimes"
	"github.com/quernmr/quern/bench/testbed"
	"github.com/quernmr/quern/scheduler"
	"github.com/quernmr/quern/scheduler/flowflex"
	flowbounds "github.com/quernmr/quern/sim/papers/flowflex"
	"github.com/quernmr/quern/wire"
)

// Flows as in FlowFlex's experiments (section 5.1), with smaller factors. Jobs are in
// topological order: each follows each earlier one with odds of a half, and the last follows all
// jobs without successor. As in the paper, tall jobs can use all slots, others a random number;
// wide jobs, and all jobs of big flows, take longer.
const (
	flowCount                = 4
	minFlowJobs, maxFlowJobs = 5, 10 // jobs of a flow
	flowSlots                = 24
	tallOdds                 = 0.6 // as in sim/papers/flowflex
	wideOdds                 = 0.5
	wideFactor               = 3.0
	bigFlows                 = 1
	bigFactor                = 8.0
)

// A tall job has so many waves that none is longer than longWave seconds. Flows with a task
// shorter than shortTask are drawn again: their times would depend more on a job's fixed cost,
// about jobCost, than on the schedule.
const (
	longWave  = 0.6
	shortTask = 0.05
	jobCost   = 0.2
)

// flowJob is a drawn job, before its tasks are drawn.
type flowJob struct {
	seconds float64 // with all slots that it can use
	slots   int
	tall    bool
	after   []int
}

// drawFlows draws flows of work slot-seconds and their goals, the same for every policy.
func drawFlows(seed uint64, work float64) *batch {
	return drawUntil(seed, "flowflex", func(r *rand.Rand) *batch { return drawFlowsOnce(r, seed, work) })
}

func drawFlowsOnce(r *rand.Rand, seed uint64, work float64) *batch {
	flows, total := make([][]flowJob, flowCount), 0.0
	for i := range flows {
		scale := 1.0
		if i < bigFlows {
			scale = bigFactor
		}
		flows[i] = drawDAG(r, scale)
		for _, j := range flows[i] {
			total += j.seconds * float64(j.slots)
		}
	}
	r.Shuffle(len(flows), func(i, k int) { flows[i], flows[k] = flows[k], flows[i] })
	drawn := &batch{}
	for i, jobs := range flows {
		flow := tasktimes.Flow{}
		for _, j := range jobs {
			n := j.node(r, work/total)
			if n.Mean.Seconds() < shortTask {
				return nil
			}
			flow = append(flow, n)
		}
		drawn.jobs = append(drawn.jobs, drawGoals(r, fmt.Sprintf("flow%d-%d", seed, i), flow))
	}
	return drawn
}

// drawDAG draws the jobs of a flow.
func drawDAG(r *rand.Rand, scale float64) []flowJob {
	jobs := make([]flowJob, minFlowJobs+r.IntN(maxFlowJobs-minFlowJobs+1))
	followed := make([]bool, len(jobs))
	for k := range jobs {
		j := &jobs[k]
		for before := range k {
			if r.Float64() < 0.5 || k == len(jobs)-1 && !followed[before] {
				j.after = append(j.after, before)
				followed[before] = true
			}
		}
		j.slots, j.tall = 1+r.IntN(flowSlots), r.Float64() < tallOdds
		if j.tall {
			j.slots = flowSlots
		}
		j.slots = max(j.slots, len(j.after)) // a map for each predecessor
		j.seconds = scale * (1 + 3*r.Float64())
		if r.Float64() < wideOdds {
			j.seconds *= wideFactor
		}
	}
	return jobs
}

// node returns the job with its tasks. It multiplies all times by factor.
func (j flowJob) node(r *rand.Rand, factor float64) tasktimes.Node {
	took, waves := j.seconds*factor, 1
	if j.tall {
		waves = max(1, int(math.Ceil(took/longWave)))
	}
	return tasktimes.Node{
		Tasks: j.slots * waves, After: j.after,
		Job: tasktimes.Job{Seed: r.Uint64(), Mean: time.Duration(took / float64(waves) * float64(time.Second)), Spread: 0.3},
	}
}

// drawGoals draws a weight, a deadline of one to two times the flow's time alone, and the steps
// of an SLA. The first step is after that time; gaps between steps are shorter than it.
func drawGoals(r *rand.Rand, name string, flow tasktimes.Flow) *job {
	j := &job{name: name, flow: flow, bytes: 1, reduces: 1, weight: 1 + 9*r.Float64()}
	for _, n := range flow {
		j.maps += n.Tasks
		j.work += n.Seconds(n.Tasks)
	}
	j.alone = alone(flow, 0)
	fastest := alone(flow, jobCost)
	j.deadline = fastest * (1 + r.Float64())
	at, cost := fastest, 0.0
	for range 1 + r.IntN(5) {
		at += fastest * r.Float64()
		cost += 1 + 9*r.Float64()
		j.levels = append(j.levels, wire.SLAStep{After: seconds(at), Cost: cost})
	}
	return j
}

// alone returns the minimal time of a flow with all slots, in seconds. It adds fixedCost to each
// job.
func alone(flow tasktimes.Flow, fixedCost float64) float64 {
	ends, longest, area := make([]float64, len(flow)), 0.0, 0.0
	for i, n := range flow {
		for _, before := range n.After {
			ends[i] = max(ends[i], ends[before])
		}
		work := n.Seconds(n.Tasks)
		ends[i] += work/float64(min(n.Tasks, flowSlots)) + fixedCost
		longest, area = max(longest, ends[i]), area+work
	}
	return max(longest, area/flowSlots)
}

// flowMetrics lists the metrics for FlowFlex.
func flowMetrics() []string {
	return []string{"sum-response", "sum-response-weighted", "sum-tardiness-weighted", "sum-sla", "max-response", "max-stretch"}
}

// weightedFair is FAIR with the flows' weights as shares.
const weightedFair = "fair with weights"

func flowColumns() []column {
	weighted := column{weightedFair, wire.Scheduling{Scheduler: "fair", Metric: "sum-response-weighted", Delay: "none"}}
	return append(append(columns("fifo", "fair"), weighted), withMetrics("flowflex", flowMetrics())...)
}

// flows compares FlowFlex with FIFO and FAIR, which only know the ready jobs of a flow.
func (b *bench) flows() error {
	m := &matrix{
		shape:   testbed.Shape{Trackers: 4, Maps: flowSlots / 4, Reduces: 4},
		columns: flowColumns(), seeds: b.Seeds(10), withHistory: true,
		draw: func(seed uint64) *batch { return drawFlows(seed, b.flowWork) },
	}
	fmt.Printf("Seeds %v: %d flows of %d to %d jobs, %.0f slot-seconds, 4 task trackers of %d map slots, no minima. "+
		"The cluster knows the jobs' history from a first run under FIFO, which does not count.\n",
		m.seeds, flowCount, minFlowJobs, maxFlowJobs, b.flowWork, m.shape.Maps)
	r, err := b.measure(m)
	if err != nil {
		return err
	}
	jobs, tasks := 0, 0
	for _, drawn := range r.batches {
		for _, j := range drawn.jobs {
			jobs += len(j.flow)
			tasks += j.maps
		}
	}
	fmt.Printf("%d jobs and %d maps in all. ", jobs, tasks)
	r.printUse(b.lanes)
	const weighted = "flowflex sum-response-weighted"
	r.gains("weighted completion", scheduler.Metric{Penalty: scheduler.Response, Weighted: true},
		gainRow{weighted, "fair", "≥ 20 %"}, gainRow{weighted, weightedFair, "–"}, gainRow{weighted, "fifo", "more than against fair"})
	fmt.Println()
	return r.byMetric("flowflex", flowMetrics(), r.bound)
}

// bound returns a lower bound of the flows' cost, summed over the seeds. It assumes that jobs
// have no fixed cost.
func (r *results) bound(m scheduler.Metric) (float64, error) {
	total := 0.0
	for _, drawn := range r.batches {
		p := flowflex.Problem{Slots: flowSlots}
		for _, j := range drawn.jobs {
			f := flowflex.Flow{ID: j.name, Cost: m.Cost(j.goal(), j.alone, 0)}
			for k, n := range j.flow {
				f.Jobs = append(f.Jobs, flowflex.Job{ID: fmt.Sprint(k), Work: n.Seconds(n.Tasks), Max: n.Tasks, After: n.After})
			}
			p.Flows = append(p.Flows, f)
		}
		bound, err := flowbounds.RaisedBound(p, m.Aggregate)
		if err != nil {
			return 0, err
		}
		total += bound
	}
	return total, nil
}
