package whatif

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/quernmr/quern/scheduler"
	"github.com/quernmr/quern/wire"
)

var kinds = [2]wire.Kind{wire.Map, wire.Reduce}

// snapshot is what a job tracker would give the policy now. It has the fields that the policy needs.
func (p *play) snapshot(phase int) scheduler.Snapshot {
	s := scheduler.Snapshot{
		Phase: kinds[phase], Slots: p.slots[phase], Now: p.Now + time.Duration(p.now*float64(time.Second)), Metric: p.Metric, TaskSeconds: p.Usual[phase],
	}
	var fits []int
	listed := make([]bool, len(p.jobs))
	for _, j := range p.jobs {
		if x, ok := p.jobIn(j, phase); ok {
			s.Jobs, fits = append(s.Jobs, x), append(fits, j.Job.Phases[phase].Fits)
			listed[j.index] = true
		}
	}
	if p.needs.Transfers && phase == Map {
		s.Transfers, s.Bandwidth = p.transfers(), p.Bandwidth
	}
	if p.needs.Trackers {
		s.Trackers, s.Measured = p.freeTrackers(phase), p.Measured[phase]
	}
	if p.needs.Later {
		p.addLater(&s, phase, listed)
	}
	s = p.Pools.Apply(s, func(id wire.JobID) string { return p.byID[id].Pool }, p.needs.Pools)
	for i, n := range fits {
		if 0 < n && n < s.Slots {
			s.Jobs[i].Share = cmp.Or(s.Jobs[i].Share, 1) * float64(n) / float64(s.Slots)
		}
	}
	return s
}

// jobIn describes a job with running or runnable tasks of a phase; ok is false for others.
func (p *play) jobIn(j *job, phase int) (x scheduler.Job, ok bool) {
	w, of := &j.phases[phase], &j.Job.Phases[phase]
	if !j.begun || j.ended || j.held || j.Closing > 0 {
		return x, false
	}
	useful, tasks := w.running, w.tasks
	if p.mayRun(j, phase) || phase == Reduce && p.needs.Early && j.slowstarted() {
		useful, tasks = useful+(w.pending+w.joined-1)/w.joined, tasks+w.pending
	}
	if limit := max(of.Fits, w.running); limit < useful {
		useful = limit
	}
	if useful == 0 {
		return x, false
	}
	x = scheduler.Job{
		ID: j.ID, Arrived: j.Arrived, Running: w.running, Max: useful, Tasks: tasks, Goal: j.Goal, Priority: j.Priority, Batch: j.Batch, Flow: j.Flow,
	}
	if j.Batch != "" {
		x.Arrived = p.Now + time.Duration(p.arrivals[j.Batch]*float64(time.Second))
	}
	if w.known {
		x.Work = float64(w.pending)*w.seconds + max(0, w.ends-float64(w.running)*p.now)
		x.Alone = float64(of.Tasks) * w.seconds
	}
	return x, true
}

// slowstarted reports whether so many maps have ended that some schedulers plan the reduces.
func (j *job) slowstarted() bool {
	w, all := &j.phases[Map], float64(j.Job.Phases[Map].Tasks)
	return all-float64(w.pending+w.tasks) >= j.Slowstart*all
}

func (p *play) transfers() (list []scheduler.Transfer) {
	for _, j := range p.jobs {
		if j.begun && !j.ended && !j.held && j.left > 0 && j.phases[Reduce].pending > 0 {
			w := &j.phases[Map]
			list = append(list, scheduler.Transfer{
				ID: j.ID, Ready: min(j.ready, j.left), Left: j.left, Whole: max(j.Shuffle.Whole, j.left), Maps: float64(j.Job.Phases[Map].Tasks) * w.seconds,
			})
		}
	}
	return list
}

// freeTrackers says when each slot of each tracker becomes free, soonest first.
func (p *play) freeTrackers(phase int) (list []scheduler.Tracker) {
	for i, t := range p.Trackers {
		if t.Slots[phase] <= 0 {
			continue
		}
		free := make([]float64, 0, t.Slots[phase])
		for _, end := range p.trackers[i].ends[phase] {
			free = append(free, max(0, end-p.now))
		}
		slices.Sort(free)
		if more := len(free) - t.Slots[phase]; more > 0 { // the first ends free no slot
			free = free[more:]
		}
		for len(free) < t.Slots[phase] {
			free = slices.Insert(free, 0, 0)
		}
		list = append(list, scheduler.Tracker{ID: t.Name, Free: free})
	}
	return list
}

// addLater adds the phases that cannot use the snapshot's slots yet, and the flows.
func (p *play) addLater(s *scheduler.Snapshot, phase int, listed []bool) {
	flows := make(map[int]bool)
	for _, j := range p.jobs {
		if j.ended || j.Closing > 0 {
			continue
		}
		flows[cmp.Or(j.Flow, j.ID.N)] = true
		for other := range kinds {
			if other == phase && listed[j.index] {
				continue
			}
			if x := p.later(j, other); x.Max > 0 {
				s.Later = append(s.Later, x)
			}
		}
	}
	for _, f := range p.Flows {
		if flows[f.First] {
			s.Flows = append(s.Flows, f)
		}
	}
}

// later describes a phase that waits for others.
func (p *play) later(j *job, phase int) scheduler.LaterPhase {
	w := &j.phases[phase]
	x := scheduler.LaterPhase{ID: j.ID, Phase: kinds[phase], Flow: j.Flow, Max: w.pending + w.tasks, Goal: j.Goal}
	x.Work = float64(x.Max) * w.seconds
	switch {
	case phase == Reduce && (!j.begun || j.phases[Map].pending+j.phases[Map].running > 0):
		x.After = []scheduler.PhaseID{{Job: j.ID, Phase: wire.Map}}
	case phase == Map && !j.begun:
		for _, id := range j.After {
			if before := p.byID[id]; before != nil && math.IsInf(p.out.Ends[before.index], 1) {
				last := wire.Map
				if before.Job.Phases[Reduce].Tasks > 0 {
					last = wire.Reduce
				}
				x.After = append(x.After, scheduler.PhaseID{Job: id, Phase: last})
			}
		}
		x.Lag = max(0, j.Lag)
	}
	return x
}
