package core

import (
	"time"

	"github.com/quernmr/quern/scheduler"
	"github.com/quernmr/quern/wire"
)

// completionGap is the least time between allocations that completed tasks ask for.
const completionGap = 20 * time.Millisecond

// phase is the allocation layer's side of the map or the reduce phase.
type phase struct {
	index int
	kind  wire.Kind
	seq   uint64
	asked bool          // an Allocate is under way
	due   time.Duration // of the next one
	last  time.Duration // when the last was asked for

	plan    scheduler.Plan // in force; its Targets are these two:
	targets map[int]int    // slots by job number, of the current plan
	ranks   map[int]int    // places in the current plan
	line    []*job         // with tasks to launch, in the order in which they are served
}

func newPhase(k wire.Kind) phase {
	return phase{index: phaseOf(k), kind: k, due: never, last: -completionGap}
}

// drop forgets the plan, and the one that is asked for.
func (p *phase) drop() {
	p.plan, p.targets, p.ranks, p.asked = scheduler.Plan{}, nil, nil, false
	p.seq++
	p.planned()
}

// begun asks for a plan at once: a job has its first tasks of the phase.
func (p *phase) begun(now time.Duration) { p.due = min(p.due, now) }

// completed asks for a plan soon: a slot is free or a job needs fewer.
func (p *phase) completed(now time.Duration) {
	p.due = min(p.due, max(now, p.last+completionGap))
}

// allocate asks for the plans that are due.
func (l *Live) allocate() {
	for i := range l.phases {
		p := &l.phases[i]
		if p.asked || l.now < p.due {
			continue
		}
		s := l.snapshot(i)
		if len(s.Jobs) == 0 {
			p.due, p.targets, p.ranks = never, nil, nil
			continue
		}
		p.seq++
		p.asked, p.last, p.due = true, l.now, l.now+l.c.cfg.Period
		l.c.emit(Allocate{Epoch: l.epoch, Seq: p.seq, Phase: p.kind, Policy: l.wishes.name, Snapshot: s})
	}
}

// snapshot is what the policy sees of a phase.
func (l *Live) snapshot(i int) scheduler.Snapshot {
	s := scheduler.Snapshot{Phase: l.phases[i].kind, Now: l.now, Metric: l.wishes.metric}
	for _, t := range l.byIndex {
		if t != nil && !t.losing && t.Excluded == "" {
			s.Slots += t.slots[i]
		}
	}
	for _, j := range l.order {
		if !j.runnable() || j.facts.sub.suspended {
			continue
		}
		left := j.inSlots[i] + j.toLaunch(i)
		if left > 0 {
			terms := j.facts.sub.terms
			s.Jobs = append(s.Jobs, scheduler.Job{
				ID: j.id, Arrived: j.arrived, Running: j.inSlots[i], Max: left,
				Goal: goalOf(terms, j.arrived), Priority: int(terms.Priority), Batch: terms.Batch,
			})
		}
	}
	return s
}

// allocated takes a new plan over. Without one the old plan stays.
func (l *Live) allocated(r Allocated) {
	p := &l.phases[phaseOf(r.Phase)]
	if r.Epoch != l.epoch || r.Seq != p.seq || !p.asked {
		return
	}
	p.asked = false
	l.wishes.noPlan = ""
	if r.Err != nil {
		l.wishes.noPlan = r.Err.Error()
		return
	}
	p.plan, p.targets, p.ranks = r.Plan, make(map[int]int), make(map[int]int)
	for i, t := range r.Plan.Targets {
		if l.job(t.Job) != nil {
			p.targets[t.Job.N], p.ranks[t.Job.N] = t.Slots, i
		}
	}
	p.planned()
	l.uneven = true
}
