package whatif

import (
	"math"
	"slices"

	"github.com/quernmr/quern/scheduler"
	"github.com/quernmr/quern/scheduler/pool"
)

// poolUse counts the slots of a pool's jobs.
type poolUse struct{ used, max [2]int }

// setCaps sets the maxima of pools for a phase, with their parts of the maxima around them.
func (p *play) setCaps(phase int) {
	use := make(map[string]pool.Use)
	for _, j := range p.jobs {
		u, w := use[j.Pool], &j.phases[phase]
		u.Running += w.running
		u.Demand += w.running
		if p.mayRun(j, phase) {
			u.Demand += w.pending
		}
		use[j.Pool] = u
	}
	parts := p.Pools.Parts(phase, use)
	for name, u := range p.pools {
		of, _ := p.Pools.Find(name)
		u.max[phase] = of.Max[phase]
		if part, limited := parts[name]; limited {
			u.max[phase] = part
		}
	}
}

// mayRun reports whether tasks of a phase may get slots, apart from maxima of pools.
func (p *play) mayRun(j *job, phase int) bool {
	return j.begun && !j.ended && !j.held && j.Closing == 0 && (phase == Map || j.reducible)
}

// mayTake reports whether a job may take another slot.
func (p *play) mayTake(j *job, phase int) bool {
	w, u := &j.phases[phase], j.pool
	return w.pending > 0 && p.mayRun(j, phase) && (u.max[phase] == pool.Unlimited || u.used[phase] < u.max[phase]) &&
		w.running < j.Job.Phases[phase].Fits
}

// assign fills the free slots of a phase.
func (p *play) assign(phase int) {
	plan := &p.phases[phase]
	for i := range plan.queues {
		p.assignQueue(phase, i)
	}
	for {
		j, on := p.next(phase), p.freest(phase)
		if j == nil || on < 0 {
			return
		}
		p.launch(j, phase, on)
	}
}

// assignQueue launches tasks of a tracker's queue there.
func (p *play) assignQueue(phase, on int) {
	queue := p.phases[phase].queues[on]
	for k := 0; k < len(queue) && p.trackers[on].free[phase] > 0; {
		j := p.byID[queue[k].Job]
		if queue[k].Tasks == 0 || j == nil || !p.mayTake(j, phase) {
			k++
			continue
		}
		n := p.launch(j, phase, on)
		n = min(n, queue[k].Tasks)
		queue[k].Tasks -= n
		j.phases[phase].queued -= n
	}
}

// next returns the job that gets the next slot; nil: none can use it. It is the one that lacks the largest part of its
// planned slots, then the first one in the plan.
func (p *play) next(phase int) *job {
	var best *job
	most := 0.0
	for _, j := range p.jobs {
		w := &j.phases[phase]
		if w.pending <= w.queued || !p.mayTake(j, phase) {
			continue
		}
		lacks := float64(max(0, w.target-w.running)) / float64(max(1, w.target))
		if best == nil || lacks > most || lacks == most && w.rank < best.phases[phase].rank {
			best, most = j, lacks
		}
	}
	return best
}

// freest returns the tracker with the most free slots; -1: none has one.
func (p *play) freest(phase int) int {
	best, most := -1, 0
	for i := range p.trackers {
		if n := p.trackers[i].free[phase]; n > most {
			best, most = i, n
		}
	}
	return best
}

// launch begins tasks of a job in a slot, and returns how many.
func (p *play) launch(j *job, phase, on int) (tasks int) {
	w := &j.phases[phase]
	tasks = min(w.joined, w.pending)
	seconds := 0.0
	for range tasks {
		seconds += w.time(j.Job.Phases[phase].Deviation)
		w.launched++
	}
	if s := p.speeds[phase]; s != nil {
		seconds *= min(max(s.Factor(j.ID, p.Trackers[on].Name), leastFactor), 1/leastFactor)
	}
	if w.pending -= tasks; w.pending == 0 {
		p.phases[phase].dirty = true
	}
	p.begin(j, phase, on, tasks, seconds)
	return tasks
}

// leastFactor bounds the speeds of trackers: few measurements mislead.
const leastFactor = 0.2

// time is the time of the next task. The times of all tasks are at equal distances in their distribution; a step that
// has no common divisor with their number goes to each of them once.
func (w *work) time(deviation float64) float64 {
	if deviation <= 0 {
		return w.seconds
	}
	step := max(1, int(0.618*float64(w.all)))
	for gcd(step, w.all) != 1 {
		step++
	}
	at := (float64((w.launched*step)%w.all) + 0.5) / float64(w.all)
	variance := math.Log1p(deviation * deviation)
	return w.seconds * math.Exp(math.Sqrt(variance)*math.Sqrt2*math.Erfinv(2*at-1)-variance/2)
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// replan makes the plans that are due.
func (p *play) replan() error {
	for phase := range p.phases {
		x := &p.phases[phase]
		if !x.dirty {
			continue
		}
		x.dirty = false
		p.setCaps(phase)
		s := p.snapshot(phase)
		if len(s.Jobs) == 0 && len(s.Transfers) == 0 {
			p.setPlan(phase, &scheduler.Plan{})
			continue
		}
		plan, keep, err := p.plan(s, 1-float64(p.phasesLeft)/float64(max(1, p.phasesAll)))
		switch {
		case err != nil:
			return err
		case keep && x.made:
			p.out.Kept++
			continue
		}
		x.made = true
		p.out.Plans++
		p.setPlan(phase, &plan)
	}
	return nil
}

// setPlan puts a plan into force.
func (p *play) setPlan(phase int, plan *scheduler.Plan) {
	x := &p.phases[phase]
	for _, j := range p.jobs {
		w := &j.phases[phase]
		w.target, w.rank, w.queued = 0, len(plan.Targets), 0
	}
	for i, t := range plan.Targets {
		if j := p.byID[t.Job]; j != nil {
			j.phases[phase].target, j.phases[phase].rank = t.Slots, i
		}
	}
	x.shares, x.queues = plan.ShuffleShares, nil
	if len(plan.Queues) == 0 {
		return
	}
	x.queues = make([][]scheduler.Run, len(p.trackers))
	for _, q := range plan.Queues {
		on, known := p.index[q.Tracker]
		if !known {
			continue
		}
		x.queues[on] = slices.Clone(q.Runs)
		for _, r := range q.Runs {
			if j := p.byID[r.Job]; j != nil {
				j.phases[phase].queued += r.Tasks
			}
		}
	}
}
