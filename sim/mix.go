package sim

import (
	"cmp"
	"fmt"
	"hash/fnv"
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
	Jobs      int // that are judged; users submit more while these run
	Scheduler string

	last time.Duration // jobs that are submitted later are left out; 0: none is
	only int           // the run ends with this job, by its index from 1; 0: with the last one
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
	Alone   time.Duration // its life if no job comes after half of it, see Mix.WithoutLater; 0: not known
	shaped  *shapedJob
	later   []time.Duration // when other jobs were submitted after it, since its submission
	begun   time.Duration   // when it was submitted
	samples []sample
}

// sample is what was predicted at a time, and from what.
type sample struct {
	elapsed    time.Duration
	prediction wire.Prediction
	phases     []sampledPhase
}

type sampledPhase struct {
	left, running int     // tasks
	seconds       float64 // estimate of a task
	source        string  // of the estimate
}

// at returns the last sample before a fraction of the job's life had passed, or an empty one.
func (p *Predicted) at(fraction float64) sample {
	at := time.Duration(fraction * float64(p.Life))
	i, _ := slices.BinarySearchFunc(p.samples, at+1, func(s sample, at time.Duration) int { return cmp.Compare(s.elapsed, at) })
	if i == 0 {
		return sample{}
	}
	return p.samples[i-1]
}

// At returns what was predicted when a fraction of the job's life had passed.
func (p *Predicted) At(fraction float64) wire.Prediction { return p.at(fraction).prediction }

// shapedJob is a job of a mix: its tasks, and their times by phase.
type shapedJob struct {
	seed   uint64
	name   string
	tasks  [2]int
	each   [2]time.Duration // mean time of a task
	spread float64          // standard deviation of the logarithm of task times
}

// serviceTime is how long setups, commits and cleanups take.
const serviceTime = 200 * time.Millisecond

// time is how long an attempt of the job takes. It is drawn from the mix's seed and the attempt's id alone, so that
// other jobs do not change it.
func (j *shapedJob) time(id wire.AttemptID) time.Duration {
	h := fnv.New64a()
	fmt.Fprint(h, id.Task.Job.N, id.Task.Kind, id.Task.N, id.N)
	rnd := rand.New(rand.NewPCG(j.seed, h.Sum64()))
	switch id.Task.Kind {
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
func drawName(seed uint64, rnd *rand.Rand, n int) shapedJob {
	j := shapedJob{seed: seed, name: fmt.Sprintf("name%d", n), spread: 0.1 + 0.3*rnd.Float64()}
	j.tasks[0] = min(max(4, int(40*math.Exp(rnd.NormFloat64()))), 400)
	j.each[0] = time.Duration(float64(4*time.Second) * math.Pow(4, rnd.Float64()))
	if rnd.IntN(3) > 0 {
		j.tasks[1] = 1 + rnd.IntN(20)
		j.each[1] = time.Duration(float64(6*time.Second) * math.Pow(5, rnd.Float64()))
	}
	return j
}

// again draws another job of the same name. If its input is larger, it has more maps, and its reduces take longer.
func (j shapedJob) again(rnd *rand.Rand) shapedJob {
	larger := math.Exp(0.3 * rnd.NormFloat64())
	j.tasks[0] = max(1, int(float64(j.tasks[0])*larger))
	j.each[1] = time.Duration(float64(j.each[1]) * larger)
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
		names = append(names, drawName(m.Seed, rnd, n))
	}
	jobs = make([]*Predicted, m.Jobs)
	for i := 0; slices.ContainsFunc(jobs, func(p *Predicted) bool { return p == nil || p.Life == 0 }); {
		if w.now > time.Duration(m.Jobs)*time.Hour {
			w.fail("after %v not all jobs of the mix have ended:%s", w.now, w.unfinished())
		}
		for ; at <= w.now+time.Second && i < 2*m.Jobs; i++ { // users go on after the jobs that are judged
			if job := names[rnd.IntN(len(names))].again(rnd); m.last == 0 || at <= m.last {
				w.addMixJob(job, i, at-w.now)
			}
			at += time.Duration(rnd.ExpFloat64() * float64(mixEvery))
		}
		w.run(func() bool { return false }, w.now+time.Second)
		w.recordPredictions(jobs)
		if m.only > 0 && jobs[m.only-1] != nil && jobs[m.only-1].Life > 0 {
			break
		}
	}
	w.noteLater(jobs)
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

// noteLater notes for each job when others came after it.
func (w *world) noteLater(jobs []*Predicted) {
	for i, p := range jobs {
		for _, other := range jobs[i+1:] {
			if p != nil && other != nil {
				p.later = append(p.later, other.begun-p.begun)
			}
		}
	}
}

func (w *world) addMixJob(j shapedJob, i int, at time.Duration) {
	w.addFleetJob(&Fleet{Maps: j.tasks[0], Reduces: j.tasks[1]}, i, at)
	c := w.clients[i]
	c.sub.Plan.Jobs[0].Name, c.shaped = j.name, &j
}

// recordPredictions asks the leader for the status of all jobs.
func (w *world) recordPredictions(jobs []*Predicted) {
	ended := make(map[string]bool)
	for i, c := range w.clients[:min(len(jobs), len(w.clients))] {
		if p := jobs[i]; p != nil && p.Life > 0 {
			ended[p.Name] = true
		}
		if len(c.ids) == 0 || jobs[i] != nil && jobs[i].Life > 0 || w.raft.leader == nil {
			continue
		}
		leader, now := w.raft.leader.core, w.raft.leader.clock()
		s, ok := leader.StatusAt(now, c.ids[0])
		if !ok {
			w.fail("the leader does not know %v", c.ids[0])
		}
		if jobs[i] == nil {
			jobs[i] = &Predicted{Name: s.Name, Known: ended[s.Name], shaped: c.shaped, begun: w.now - s.Elapsed}
		}
		p, x := jobs[i], sample{elapsed: s.Elapsed, prediction: s.Prediction}
		explained, _ := leader.Explain(now, c.ids[0])
		for _, phase := range explained.Phases {
			x.phases = append(x.phases, sampledPhase{phase.Tasks - phase.Done, phase.Running, phase.TaskSeconds, phase.Source})
		}
		if p.samples = append(p.samples, x); s.State.Ended() {
			p.Life = s.Elapsed
		}
		if s.State.Ended() && s.State != wire.Succeeded {
			w.fail("%v of a mix without faults is %v: %s", s.ID, s.State, s.Error)
		}
	}
}

// WithoutLater plays the mix again for every n-th job, without the jobs that are submitted after half of its life. So its
// Alone tells what jobs of the future, which no forecast can know, do to it. Nothing else differs: until
// then, all is as in Run, and the times of tasks stay.
func (m Mix) WithoutLater(jobs []*Predicted, n int) error {
	for i := n - 1; i < len(jobs); i += n {
		p := jobs[i]
		m.last, m.only = p.begun+p.Life/2, i+1
		again, err := m.Run()
		if err != nil {
			return err
		}
		p.Alone = again[i].Life
	}
	return nil
}
