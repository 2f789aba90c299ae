package assign

import (
	"slices"
	"time"
)

// A policy to which machines are not alike says in its plan what each tracker is to
// run next (scheduler.Queue). A tracker takes the tasks of its queue first, local to their
// input or not: the policy has chosen it. Maps that stand in queues wait there, also
// while a slot is free on a tracker where they would end later; only what is in no
// queue, or can no more be launched from one, is assigned to other free slots.
// Queues end with the next plan, with their tracker, and by themselves.

// Queue is what a plan has a tracker run next; nil for a tracker that is gone.
type Queue struct {
	Tracker *Tracker
	Runs    []Run
}

// Run is a number of tasks of a job in a queue.
type Run struct {
	Job   *Job
	Tasks int
}

// queueEntry is what is left of a Run.
type queueEntry struct {
	job   *Job
	tasks int
}

// requeue brings the trackers' queues into line with a new plan.
func (a *Assigner) requeue(phase int) {
	p := &a.phases[phase]
	if !p.hasQueues && len(p.queues) == 0 {
		return
	}
	a.dropQueues(phase)
	for _, q := range p.queues {
		t := q.Tracker
		if t == nil || !t.fit {
			continue
		}
		for _, r := range q.Runs {
			p.queueOf[t.index] = append(p.queueOf[t.index], queueEntry{r.Job, r.Tasks})
			a.addQueued(r.Job, phase, r.Tasks)
		}
		if phase == Map {
			a.uncheck(t)
		}
	}
	if p.hasQueues = len(p.queues) > 0; p.hasQueues {
		p.queuedUntil = a.cluster.Now() + a.queuesLast
	}
}

// addQueued counts the tasks of a job that stand in queues.
func (a *Assigner) addQueued(j *Job, phase, tasks int) {
	j.queued[phase] += tasks
	a.Move(j)
}

func (a *Assigner) dropQueues(phase int) {
	p := &a.phases[phase]
	p.hasQueues, p.queuedUntil = false, Never
	for _, t := range a.trackers {
		if t != nil {
			a.dropQueue(t, phase)
		}
	}
}

func (a *Assigner) dropQueue(t *Tracker, phase int) {
	queue := &a.phases[phase].queueOf[t.index]
	for _, q := range *queue {
		a.addQueued(q.job, phase, -q.tasks)
	}
	*queue = nil
}

// ExpireQueues drops the queues of a plan that no other has followed for too long. It says
// whether it did.
func (a *Assigner) ExpireQueues(phase int) bool {
	p := &a.phases[phase]
	if a.cluster.Now() < p.queuedUntil {
		return false
	}
	p.queues = nil
	a.dropQueues(phase)
	return true
}

// QueuedUntil is when ExpireQueues drops the queues, or Never.
func (a *Assigner) QueuedUntil(phase int) time.Duration { return a.phases[phase].queuedUntil }

// Queued counts the tasks of a job that stand in queues.
func (j *Job) Queued(phase int) int { return j.queued[phase] }

// launchQueued launches maps from the queues of those trackers that have become free.
func (a *Assigner) launchQueued() {
	if !a.phases[Map].hasQueues {
		return
	}
	for i := range a.unchecked.All() {
		if a.phases[Map].free.Has(i) {
			a.launchNext(a.trackers[i])
		}
	}
	a.lineUp()
}

// launchNext launches what a tracker's queue has next.
func (a *Assigner) launchNext(t *Tracker) {
	free, queue := &a.phases[Map].free, a.phases[Map].queueOf[t.index]
	for k := 0; k < len(queue) && free.Has(int(t.index)); {
		q := &queue[k]
		m := -1
		if q.tasks > 0 && a.mayTake(q.job, Map) {
			m = a.pickNearest(q.job, t)
		}
		if m < 0 {
			k++
			continue
		}
		q.tasks--
		a.addQueued(q.job, Map, -1)
		a.launch(q.job, m, t)
	}
	if free.Has(int(t.index)) {
		a.dropVain(t)
	}
}

// dropVain drops from the queue of a tracker with a free slot what it has run, and what
// it cannot: other trackers may take maps that have failed there.
func (a *Assigner) dropVain(t *Tracker) {
	queue := &a.phases[Map].queueOf[t.index]
	*queue = slices.DeleteFunc(*queue, func(q queueEntry) bool {
		vain := q.tasks > 0 && a.mayTake(q.job, Map)
		if vain {
			a.addQueued(q.job, Map, -q.tasks)
		}
		return vain || q.tasks == 0
	})
}

// pickNearest is a job's map to launch that is nearest to a tracker, or -1.
func (a *Assigner) pickNearest(j *Job, t *Tracker) int {
	if m := a.pickLocal(j, t, true); m >= 0 {
		return m
	}
	if m := a.pickInRack(j, pending, t, true); m >= 0 {
		return m
	}
	return a.pickAny(j, pending, t, true)
}

// reduceQueued launches the ready partition on a tracker that its queue has next. It says
// whether there was one.
func (a *Assigner) reduceQueued(t *Tracker) bool {
	queue := a.phases[Reduce].queueOf[t.index]
	for k := range queue {
		q := &queue[k]
		if q.tasks > 0 && a.mayTake(q.job, Reduce) && a.cluster.LaunchReduce(q.job, t, false) {
			q.tasks--
			a.addQueued(q.job, Reduce, -1)
			return true
		}
	}
	return false
}
