package assign

import (
	"slices"
	"time"
)

// The plan of a policy that distinguishes machines has a queue of tasks for each tracker
// (scheduler.Queue). A tracker runs the tasks of its queue first, local or not. Other trackers do
// not run queued tasks, even if they have free slots, unless the queue's tracker cannot run them.
// A queue ends with the next plan, with its tracker, and after Assigner.queueLifetime.

// Queue has the next tasks of a tracker in the plan. Tracker is nil if it is lost.
type Queue struct {
	Tracker *Tracker
	Runs    []Run
}

// Run is a number of tasks of a job in a queue.
type Run struct {
	Job   *Job
	Tasks int
}

// queueEntry is the rest of a Run.
type queueEntry struct {
	job   *Job
	tasks int
}

// requeue replaces the trackers' queues by the queues of a new plan.
func (a *Assigner) requeue(phase int) {
	p := &a.phases[phase]
	if !p.hasQueues && len(p.queues) == 0 {
		return
	}
	a.dropQueues(phase)
	for _, q := range p.queues {
		t := q.Tracker
		if t == nil || !t.takesWork {
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
		p.queuedUntil = a.cluster.Now() + a.queueLifetime
	}
}

// addQueued changes the number of a job's queued tasks.
func (a *Assigner) addQueued(j *Job, phase, tasks int) {
	j.queued[phase] += tasks
	a.MarkChanged(j)
}

// queuesWait reports whether tasks in the queues of trackers wait for slots.
func (a *Assigner) queuesWait(phase int) bool {
	p := &a.phases[phase]
	return p.hasQueues && slices.ContainsFunc(p.queueOf, func(queue []queueEntry) bool {
		return slices.ContainsFunc(queue, func(q queueEntry) bool { return a.jobs[q.job.index] == q.job && a.ToLaunch(phase, q.job) > 0 })
	})
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

// ExpireQueues drops the queues if their lifetime is over. It returns whether it did.
func (a *Assigner) ExpireQueues(phase int) bool {
	p := &a.phases[phase]
	if a.cluster.Now() < p.queuedUntil {
		return false
	}
	p.queues = nil
	a.dropQueues(phase)
	return true
}

// QueuedUntil returns when ExpireQueues drops the queues, or Never.
func (a *Assigner) QueuedUntil(phase int) time.Duration { return a.phases[phase].queuedUntil }

// Queued counts the tasks of a job in queues.
func (j *Job) Queued(phase int) int { return j.queued[phase] }

// launchQueued launches maps from the queues of trackers with unchecked free slots.
func (a *Assigner) launchQueued() {
	if !a.phases[Map].hasQueues {
		return
	}
	for i := range a.unchecked.All() {
		if a.phases[Map].free.Has(i) {
			a.launchNext(a.trackers[i])
		}
	}
	a.updateLines()
}

// launchNext launches the next maps of a tracker's queue.
func (a *Assigner) launchNext(t *Tracker) {
	free, queue := &a.phases[Map].free, a.phases[Map].queueOf[t.index]
	for k := 0; k < len(queue) && free.Has(int(t.index)) && !a.Exhausted(); {
		q := &queue[k]
		m := -1
		if q.tasks > 0 && a.mayTake(q.job, Map) && q.job.FreeFor(Map).Has(int(t.index)) {
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
	if free.Has(int(t.index)) && !a.Exhausted() {
		a.dropUnlaunchable(t)
	}
}

// dropUnlaunchable drops entries from the queue of a tracker with a free slot: entries without
// tasks, and tasks that it cannot run. Other trackers can then run maps that have failed there.
func (a *Assigner) dropUnlaunchable(t *Tracker) {
	queue := &a.phases[Map].queueOf[t.index]
	*queue = slices.DeleteFunc(*queue, func(q queueEntry) bool {
		unlaunchable := q.tasks > 0 && a.mayTake(q.job, Map)
		if unlaunchable {
			a.addQueued(q.job, Map, -q.tasks)
		}
		return unlaunchable || q.tasks == 0
	})
}

// pickNearest returns a job's pending map that is nearest to a tracker, or -1.
func (a *Assigner) pickNearest(j *Job, t *Tracker) int {
	if m := a.pickLocal(j, t, true); m >= 0 {
		return m
	}
	if m := a.pickInRack(j, pending, t, true); m >= 0 {
		return m
	}
	return a.pickAny(j, pending, t, true)
}

// reduceQueued launches the next ready partition of a tracker's queue. It returns whether
// there was one.
func (a *Assigner) reduceQueued(t *Tracker) bool {
	queue := a.phases[Reduce].queueOf[t.index]
	for k := range queue {
		q := &queue[k]
		if q.tasks > 0 && a.mayTake(q.job, Reduce) && q.job.FreeFor(Reduce).Has(int(t.index)) && a.cluster.LaunchReduce(q.job, t, false) {
			q.tasks--
			a.addQueued(q.job, Reduce, -1)
			return true
		}
	}
	return false
}
