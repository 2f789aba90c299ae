package core

import "slices"

// A policy to which machines are not alike says in its Plan what each tracker is to
// run next (scheduler.Queue). A tracker takes the tasks of its queue first, near their
// input or not: the policy has chosen it. Maps that stand in queues wait there, also
// while a slot is free on a tracker where they would end later; only what is in no
// queue, or can no more be launched from one, is given to whoever has a free slot.
// Queues end with the next Plan, with their tracker, and by themselves.

// queuesLast is how long queues are obeyed without another Plan, in allocation periods.
const queuesLast = 4

// queued is a number of tasks of a job that a tracker is to run.
type queued struct {
	job   *job
	tasks int
}

// requeue brings the queues into line with a new plan.
func (l *Live) requeue(p *phase) {
	if !p.queued && len(p.plan.Queues) == 0 {
		return
	}
	l.dropQueues(p)
	i := p.index
	for _, q := range p.plan.Queues {
		t := l.trackers[q.Tracker]
		if t == nil || !t.fit() {
			continue
		}
		for _, r := range q.Runs {
			if j := l.job(r.Job); j != nil {
				t.queues[i] = append(t.queues[i], queued{j, r.Tasks})
				l.cover(j, i, r.Tasks)
			}
		}
		if i == mapPhase && l.free[i].Has(t.index) {
			l.fresh.Add(t.index)
		}
	}
	if p.queued = len(p.plan.Queues) > 0; p.queued {
		p.queuedUntil = l.now + queuesLast*l.c.cfg.Period
	}
}

// cover counts the tasks of a job that stand in queues.
func (l *Live) cover(j *job, phase, tasks int) {
	j.covered[phase] += tasks
	l.move(j)
}

func (l *Live) dropQueues(p *phase) {
	p.queued, p.queuedUntil = false, never
	for _, t := range l.byIndex {
		if t != nil {
			l.dropQueue(t, p.index)
		}
	}
}

func (l *Live) dropQueue(t *tracker, phase int) {
	for _, q := range t.queues[phase] {
		l.cover(q.job, phase, -q.tasks)
	}
	t.queues[phase] = nil
}

// expireQueues drops those of plans that no other has followed for too long.
func (l *Live) expireQueues() {
	for i := range l.phases {
		if p := &l.phases[i]; l.now >= p.queuedUntil {
			p.plan.Queues = nil
			l.dropQueues(p)
			l.notePlan(p)
		}
	}
}

// serveQueues launches maps from the queues of those trackers that have become free.
func (l *Live) serveQueues() {
	if !l.phases[mapPhase].queued {
		return
	}
	for i := range l.fresh.All() {
		if l.free[mapPhase].Has(i) {
			l.serveQueue(l.byIndex[i])
		}
	}
	l.lineUp()
}

// serveQueue launches what a tracker's queue has next.
func (l *Live) serveQueue(t *tracker) {
	queue := t.queues[mapPhase]
	for k := 0; k < len(queue) && l.free[mapPhase].Has(t.index); {
		q := &queue[k]
		m := -1
		if q.tasks > 0 && l.mayTake(q.job, mapPhase) {
			m = q.job.pickFor(t)
		}
		if m < 0 {
			k++
			continue
		}
		q.tasks--
		l.cover(q.job, mapPhase, -1)
		l.giveMap(q.job, m, t)
	}
	if l.free[mapPhase].Has(t.index) {
		l.dropVain(t)
	}
}

// dropVain drops from the queue of a tracker with a free slot what it has run, and what
// it cannot: maps that have failed there are anybody's.
func (l *Live) dropVain(t *tracker) {
	t.queues[mapPhase] = slices.DeleteFunc(t.queues[mapPhase], func(q queued) bool {
		vain := q.tasks > 0 && l.mayTake(q.job, mapPhase)
		if vain {
			l.cover(q.job, mapPhase, -q.tasks)
		}
		return vain || q.tasks == 0
	})
}

// pickFor is a job's map to launch that is nearest to a tracker, or -1.
func (j *job) pickFor(t *tracker) int {
	if m := j.pickNear(t, true); m >= 0 {
		return m
	}
	if m := j.pickInRack(amongPending, t, true); m >= 0 {
		return m
	}
	return j.pickAny(amongPending, t, true)
}

// nextReduce is the ready partition on a tracker that its queue has next, or nil.
func (l *Live) nextReduce(t *tracker) (*job, int) {
	queue := t.queues[reducePhase]
	for k := range queue {
		q := &queue[k]
		if ready := t.ready[q.job]; q.tasks > 0 && ready != nil && ready.Len() > 0 && l.mayTake(q.job, reducePhase) {
			q.tasks--
			l.cover(q.job, reducePhase, -1)
			return q.job, ready.Next(0)
		}
	}
	return nil, 0
}
