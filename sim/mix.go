package sim

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/wire"
)

// Mix is a cluster without faults and its workload: jobs of very different sizes that users submit at
// random times. Most of them are submitted again and again under the same name, with other inputs. The
// predicted ends are recorded.
type Mix struct {
	Seed      uint64
	Jobs      int
	Scheduler string
}

// The shape of a mix.
const (
	mixTrackers = 10
	mixEvery    = 20 * time.Second // mean time between two submissions: two thirds of the map slots are busy
	jobsPerName = 6                // mean
)

var mixSlots = [2]int{4, 2}

// Predicted is what was predicted of a job's end while it ran.
type Predicted struct {
	Name    string
	Known   bool // a job of the same name had ended before it was submitted
	Life    time.Duration
	samples []predictedAt
}

type predictedAt struct {
	elapsed    time.Duration
	prediction wire.Prediction
}

// At returns what was predicted when a fraction of the job's life had passed.
func (p *Predicted) At(fraction float64) wire.Prediction {
	at := time.Duration(fraction * float64(p.Life))
	i, _ := slices.BinarySearchFunc(p.samples, at+1, func(s predictedAt, at time.Duration) int { return cmp.Compare(s.elapsed, at) })
	if i == 0 {
		return wire.Prediction{}
	}
	return p.samples[i-1].prediction
}

// shapedJob is a job of a mix: its tasks, and their times by phase.
type shapedJob struct {
	name   string
	tasks  [2]int
	each   [2]time.Duration // mean time of a task
	spread float64          // standard deviation of the logarithm of task times
}

// serviceTime is how long setups, commits and cleanups take.
const serviceTime = 200 * time.Millisecond

// time draws how long an attempt of the job takes.
func (j *shapedJob) time(rnd *rand.Rand, kind wire.Kind) time.Duration {
	switch kind {
	case wire.Map:
		return logNormal(rnd, j.each[0], j.spread)
	case wire.Reduce:
		return logNormal(rnd, j.each[1], j.spread)
	}
	return serviceTime
}

// logNormal draws a time with a log-normal distribution, which has this mean and this standard deviation
// of the logarithm.
func logNormal(rnd *rand.Rand, mean time.Duration, deviation float64) time.Duration {
	return time.Duration(float64(mean) * math.Exp(deviation*rnd.NormFloat64()-deviation*deviation/2))
}

// drawName draws what the jobs of a name have in common. A third has no reduces.
func drawName(rnd *rand.Rand, n int) shapedJob {
	j := shapedJob{name: fmt.Sprintf("name%d", n), spread: 0.1 + 0.3*rnd.Float64()}
	j.tasks[0] = min(max(4, int(40*math.Exp(rnd.NormFloat64()))), 400)
	j.each[0] = time.Duration(float64(4*time.Second) * math.Pow(4, rnd.Float64()))
	if rnd.IntN(3) > 0 {
		j.tasks[1] = 1 + rnd.IntN(20)
		j.each[1] = time.Duration(float64(6*time.Second) * math.Pow(5, rnd.Float64()))
	}
	return j
}

// again draws another job of the same name: its input is larger or smaller.
func (j shapedJob) again(rnd *rand.Rand) shapedJob {
	j.tasks[0] = max(1, int(float64(j.tasks[0])*math.Exp(0.3*rnd.NormFloat64())))
	for phase := range j.each {
		j.each[phase] = logNormal(rnd, j.each[phase], 0.1)
	}
	return j
}

// Run plays the mix and returns the predictions of its jobs, in the order of their submission.
func (m Mix) Run() ([]*Predicted, error) {
	r := &Result{Options: Options{Seed: m.Seed}}
	jobs := m.play(r)
	if r.Violation != "" {
		return nil, fmt.Errorf("mix of seed %d under %s: %s", m.Seed, m.Scheduler, r.Violation)
	}
	return jobs, nil
}

func (m Mix) play(r *Result) (jobs []*Predicted) {
	w := mixWorld(r, m.Scheduler)
	defer w.finish(r)
	rnd, at := rand.New(rand.NewPCG(m.Seed, 24)), fleetStart
	names := make([]shapedJob, 0, m.Jobs/jobsPerName+1)
	for n := range cap(names) {
		names = append(names, drawName(rnd, n))
	}
	for i := range m.Jobs {
		w.addMixJob(names[rnd.IntN(len(names))].again(rnd), i, at)
		at += time.Duration(rnd.ExpFloat64() * float64(mixEvery))
	}
	jobs = make([]*Predicted, m.Jobs)
	for end := at + time.Hour; w.now < end && !w.allEnded(); {
		w.run(func() bool { return false }, w.now+time.Second)
		w.recordPredictions(jobs)
	}
	w.checkFleet()
	return jobs
}

// mixWorld makes the cluster of a mix, without jobs.
func mixWorld(r *Result, scheduler string) *world {
	w := emptyWorld(r)
	w.scheduling = wire.Scheduling{Scheduler: scheduler, Metric: "sum-response", Delay: "none"}
	w.allocation = core.PoolsRead{Err: errPools}
	w.calm, w.stepping = true, stepping{max: maxFleetSteps, factsEvery: 1000}
	w.attemptTime, w.callTime, w.verifyTime = time.Second, 5*time.Millisecond, time.Second
	w.shape.slots, w.shape.calmFacts = mixSlots, true
	w.addNodes(mixTrackers)
	return w
}

func (w *world) addMixJob(j shapedJob, i int, at time.Duration) {
	w.addFleetJob(&Fleet{Maps: j.tasks[0], Reduces: j.tasks[1]}, i, at)
	c := w.clients[i]
	c.sub.Plan.Jobs[0].Name, c.shaped = j.name, &j
}

// recordPredictions asks the leader for the status of all jobs.
func (w *world) recordPredictions(jobs []*Predicted) {
	ended := make(map[string]bool)
	for i, c := range w.clients {
		if p := jobs[i]; p != nil && p.Life > 0 {
			ended[p.Name] = true
		}
		if len(c.ids) == 0 || jobs[i] != nil && jobs[i].Life > 0 || w.raft.leader == nil {
			continue
		}
		s, ok := w.raft.leader.core.StatusAt(w.raft.leader.clock(), c.ids[0])
		if !ok {
			w.fail("the leader does not know %v", c.ids[0])
		}
		if jobs[i] == nil {
			jobs[i] = &Predicted{Name: s.Name, Known: ended[s.Name]}
		}
		if jobs[i].samples = append(jobs[i].samples, predictedAt{s.Elapsed, s.Prediction}); s.State.Ended() {
			jobs[i].Life = s.Elapsed
		}
	}
}

// Judgement says how good the predictions of jobs were, when a fraction of their lives had passed. Jobs
// without a prediction count as bad.
type Judgement struct {
	Jobs   int
	Named  int     // a range was predicted
	Held   int     // it held the true end
	Narrow int     // its width was at most a quarter of the job's life, on either side of its middle
	Right  int     // the likely end differed from the true one by at most a quarter of the job's life
	Width  float64 // median of half of the widths, as a fraction of the job's life
}

// Judge compares what was predicted at a fraction of the jobs' lives with their true ends.
func Judge(jobs []*Predicted, fraction float64) Judgement {
	j := Judgement{Jobs: len(jobs)}
	var widths []float64
	for _, p := range jobs {
		x := p.At(fraction)
		if !x.Known() {
			continue
		}
		j.Named++
		if x.Earliest <= p.Life && p.Life <= x.Latest {
			j.Held++
		}
		width := (x.Latest - x.Earliest).Seconds() / 2 / p.Life.Seconds()
		if widths = append(widths, width); width <= 0.25 {
			j.Narrow++
		}
		if (x.Likely - p.Life).Abs() <= p.Life/4 {
			j.Right++
		}
	}
	if len(widths) > 0 {
		slices.Sort(widths)
		j.Width = widths[len(widths)/2]
	}
	return j
}
