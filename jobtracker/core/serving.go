package core

import (
	"github.com/quernmr/quern/jobtracker/core/taskset"
	"github.com/quernmr/quern/wire"
)

// servicing is the attempts without slots on a tracker.
type serviceLoad struct {
	running   int  // service attempts that run there
	preferred bool // it is given work, and service attempts before others
}

// serviceQueues is the service tasks that wait for a tracker with room for them.
type serviceQueues struct {
	queues    [2][]queuedTask // service tasks that wait
	room      taskset.Set     // indexes of trackers that may run another service attempt
	preferred int             // trackers that are given work, with or without such room
}

// Service tasks have no slots, but each of their attempts is a process. A tracker runs at
// most as many of them at once as it has slots, so that they never more than double what
// it was set up for, and always leastServices. Those that wait do so in the order in which
// they came; what ends work goes before setups, which begin more.

// leastServices is how many service attempts any tracker may run at once: one that has
// lost its slots with its disks can end jobs yet.
const minServiceAttempts = 4

// The queues of service tasks, as indexes of serviceQueues.queues.
const (
	endsWork   = iota // fences, commits, cleanups
	beginsWork        // setups
)

// serviceLooks is how many tasks of a queue are looked at that all trackers with room
// have failed, before the others wait too.
const maxServiceChecks = 16

// turn is a service task in its queue.
type queuedTask struct {
	job     *job
	tk      *task
	subject wire.AttemptID // of a fence
}

func queueOf(k wire.Kind) int {
	if k == wire.Setup {
		return beginsWork
	}
	return endsWork
}

// mostServices is how many service attempts a tracker may run at once.
func (t *tracker) maxServiceAttempts() int {
	return max(minServiceAttempts, t.slots[mapPhase]+t.slots[reducePhase])
}

// refreshServing follows whether a tracker has room for service attempts.
func (l *Live) refreshServing(t *tracker) {
	l.services.room.Set(t.assign.Index(), t.usable() && t.drain.n == 0 && t.services.running < t.maxServiceAttempts())
	if serves := t.takesWork() && t.slots != [2]int{}; serves != t.services.preferred {
		t.services.preferred = serves
		if serves {
			l.services.preferred++
		} else {
			l.services.preferred--
		}
	}
}

// countService notes a service attempt that begins, or has ended.
func (l *Live) countService(t *tracker, by int) {
	t.services.running += by
	l.refreshServing(t)
}

// serveQueued launches what waits, as far as there is room.
func (l *Live) serveQueued() {
	for q := range l.services.queues {
		queue := l.services.queues[q]
		for i := 0; i < len(queue) && i < maxServiceChecks && l.services.room.Len() > 0; {
			x := queue[i]
			if l.stillNeeded(x) && !l.serveNow(x) {
				i++
				continue
			}
			x.tk.queued = false
			copy(queue[1:i+1], queue[:i])
			queue[0] = queuedTask{}
			queue = queue[1:]
		}
		l.services.queues[q] = queue
	}
}

// isDue says whether a task in a queue is to be run yet.
func (l *Live) stillNeeded(x queuedTask) bool {
	j := x.job
	if l.jobs[j.facts.N()] != j || !l.mayServe(j, x.tk) {
		return false
	}
	state := l.facts.State(j.facts)
	switch x.tk.kind {
	case wire.Setup:
		return state == wire.Preparing
	case wire.Commit:
		return state == wire.Committing
	case wire.Cleanup:
		return state == wire.Stopping && j.attempts.Len() == 0
	}
	f := j.service.fences[x.subject.Task.N]
	return f != nil && &f.task == x.tk && j.runnable()
}

// serveNow launches a service task if a tracker has room for it.
func (l *Live) serveNow(x queuedTask) bool {
	t := l.serviceTracker(x.job, x.tk)
	if t == nil {
		return false
	}
	if x.tk.kind == wire.Setup {
		x.job.service.setupSince = l.now
	}
	l.launch(x.job, x.tk, t, x.subject)
	return true
}

// serviceTracker picks a tracker round robin, one where tk has failed, or that is
// given no other work, only if there is no other. One that drains never is.
func (l *Live) serviceTracker(j *job, tk *task) *tracker {
	var second *tracker
	i := l.roundRobin
	for range l.services.room.Len() {
		if i = l.services.room.Next(i); i < 0 {
			i = l.services.room.Next(0)
		}
		t := l.fleet.byIndex[i]
		if t.services.preferred && !j.avoids(tk, t) {
			l.roundRobin = i + 1
			return t
		}
		if second == nil {
			second = t
		}
		i++
	}
	others := l.services.preferred // without room
	for _, name := range j.faults.Avoided(tk.key()) {
		if t := l.fleet.trackers[name]; t != nil && t.services.preferred {
			others--
		}
	}
	if others > 0 {
		return nil
	}
	return second
}

// queuedService is the kind of a service task of a job that waits for its turn.
func (j *job) queuedService() (k wire.Kind, ok bool) {
	for _, tk := range []*task{&j.service.setup, &j.service.commit, &j.service.cleanup} {
		if tk.queued {
			return tk.kind, true
		}
	}
	for _, n := range sortedFences(j.service.fences) {
		if j.service.fences[n].queued {
			return wire.Fence, true
		}
	}
	return 0, false
}
