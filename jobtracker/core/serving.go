package core

import (
	"github.com/quernmr/quern/jobtracker/core/taskset"
	"github.com/quernmr/quern/wire"
)

// serviceLoad is a tracker's attempts without slots.
type serviceLoad struct {
	running   int  // running service attempts
	preferred bool // it takes work and has slots, so service attempts prefer it
}

// serviceQueues holds the service tasks that wait for a tracker with room.
type serviceQueues struct {
	queues    [2][]queuedTask // see endsWork
	room      taskset.Set     // indexes of trackers that may run another service attempt
	preferred int             // preferred trackers, with or without room
}

// Service tasks have no slots, but each attempt is a process. So a tracker runs at most as many
// of them as it has slots, or minServiceAttempts. Others wait in order of arrival; tasks that
// end work go before setups, which bring more work.

// minServiceAttempts is how many service attempts any tracker may run at once: a tracker that
// lost its slots with its disks can still end jobs.
const minServiceAttempts = 4

// The indexes of serviceQueues.queues.
const (
	endQueue   = iota // fences, commits, cleanups
	setupQueue        // setups
)

// maxServiceChecks is how many tasks of a queue are checked in a Step while all trackers with
// room are avoided. It bounds a Step.
const maxServiceChecks = 16

// queuedTask is a service task in its queue.
type queuedTask struct {
	job     *job
	tk      *task
	subject wire.AttemptID // of a fence
}

func queueOf(k wire.Kind) int {
	if k == wire.Setup {
		return setupQueue
	}
	return endQueue
}

// maxServiceAttempts is how many service attempts a tracker may run at once.
func (t *tracker) maxServiceAttempts() int {
	return max(minServiceAttempts, t.slots[mapPhase]+t.slots[reducePhase])
}

// refreshServing updates whether a tracker has room for service attempts.
func (l *leader) refreshServiceRoom(t *tracker) {
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

// countService adds to a tracker's running service attempts.
func (l *leader) countService(t *tracker, by int) {
	t.services.running += by
	l.refreshServiceRoom(t)
}

// serveQueued launches queued service tasks while trackers have room.
func (l *leader) launchQueuedServices() {
	for q := range l.services.queues {
		queue := l.services.queues[q]
		for i := 0; i < len(queue) && i < maxServiceChecks && l.services.room.Len() > 0; {
			x := queue[i]
			if l.stillNeeded(x) && !l.launchService(x) {
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

// stillNeeded says whether a queued task still has to run.
func (l *leader) stillNeeded(x queuedTask) bool {
	j := x.job
	if l.jobs[j.facts.N()] != j || !l.mayRunService(j, x.tk) {
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
func (l *leader) launchService(x queuedTask) bool {
	t := l.serviceTracker(x.job, x.tk)
	if t == nil {
		return false
	}
	if x.tk.kind == wire.Setup {
		x.job.service.setupLaunched = l.now
	}
	l.launch(x.job, x.tk, t, x.subject)
	return true
}

// serviceTracker picks a tracker with room, round robin. It takes one that the task avoids, or
// that is not preferred, only if no better tracker exists. Draining trackers have no room.
func (l *leader) serviceTracker(j *job, tk *task) *tracker {
	var fallback *tracker
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
		if fallback == nil {
			fallback = t
		}
		i++
	}
	others := l.services.preferred // they have no room
	for _, name := range j.faults.Avoided(tk.key()) {
		if t := l.fleet.trackers[name]; t != nil && t.services.preferred {
			others--
		}
	}
	if others > 0 {
		return nil
	}
	return fallback
}

// queuedService is the kind of a job's service task that is queued, if there is one.
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
