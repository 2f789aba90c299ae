package core

import (
	"cmp"
	"time"

	"github.com/quernmr/quern/jobtracker/core/taskset"
	"github.com/quernmr/quern/wire"
)

// Service tasks are setups, commits, cleanups and fences. They need no slots, but each attempt is
// a process. So a tracker has room for as many of them as it has slots, and at least
// minServiceAttempts. More wait in queues, setups behind the tasks that end work. Second attempts
// wait in a queue only for the limit of setups.

// serviceLoad is the service attempts of a tracker.
type serviceLoad struct {
	running   int           // running service attempts
	setups    int           // of these, setup attempts
	outran    time.Duration // when another tracker ended a task sooner than its attempt here; 0: never
	succeeded time.Duration // when an attempt succeeded last; 0: never
	preferred bool          // service attempts prefer the tracker: it takes work and has slots
}

// serviceQueues holds the service tasks that wait for a tracker with room.
type serviceQueues struct {
	queues    [3][]queuedTask // see queueOf
	room      taskset.Set     // indexes of trackers with room for tasks that are no setups
	setupRoom taskset.Set     // indexes of trackers with room for setups, also for second attempts
	preferred int             // preferred trackers, with or without room
}

// Each tracker has room for minServiceAttempts: one that has lost its slots with its disks can
// still run commits and cleanups.
const minServiceAttempts = 4

// The indexes of serviceQueues.queues.
const (
	endQueue       = iota // fences, commits, cleanups
	slowSetupQueue        // setups that run, for second attempts
	setupQueue            // setups
)

// A Step checks at most maxServiceChecks tasks of a queue that avoid all trackers with room.
const maxServiceChecks = 16

// queuedTask is a service task in its queue.
type queuedTask struct {
	job     *job
	tk      *task
	subject wire.AttemptID // see fence; zero for other tasks
}

func queueOf(k wire.Kind) int {
	if k == wire.Setup {
		return setupQueue
	}
	return endQueue
}

// roomFor returns the trackers with room for the tasks of a queue.
func (s *serviceQueues) roomFor(q int) *taskset.Set {
	if q == endQueue {
		return &s.room
	}
	return &s.setupRoom
}

// maxServiceAttempts is the maximum number of service attempts that run on a tracker.
func (t *tracker) maxServiceAttempts() int {
	return max(minServiceAttempts, t.slots[mapPhase]+t.slots[reducePhase])
}

// refreshServiceRoom updates whether a tracker has room, and whether it is preferred.
func (l *leader) refreshServiceRoom(t *tracker) {
	room := t.usable() && !t.withdrawn() && t.services.running < t.maxServiceAttempts()
	l.services.room.Set(t.assign.Index(), room)
	most := l.c.cfg.Limits.TrackerSetups
	setups := room && (most == 0 || t.services.setups < most)
	l.services.setupRoom.Set(t.assign.Index(), setups)
	if preferred := t.takesWork() && t.slots != [2]int{}; preferred != t.services.preferred {
		t.services.preferred = preferred
		if preferred {
			l.services.preferred++
		} else {
			l.services.preferred--
		}
	}
}

func (l *leader) countService(t *tracker, k wire.Kind, by int) {
	t.services.running += by
	if k == wire.Setup {
		t.services.setups += by
		l.limited.setups += by
	}
	l.refreshServiceRoom(t)
}

// waiting counts the queued tasks.
func (s *serviceQueues) waiting() (n int) {
	for q := range s.queues {
		n += len(s.queues[q])
	}
	return n
}

func (l *leader) queueService(x queuedTask, q int) {
	x.tk.queued = true
	l.services.queues[q] = append(l.services.queues[q], x)
}

// launchQueuedServices launches queued service tasks while trackers have room.
func (l *leader) launchQueuedServices() {
	for q := range l.services.queues {
		queue := l.services.queues[q]
		for i := 0; i < len(queue) && i < maxServiceChecks && l.services.roomFor(q).Len() > 0; {
			x := queue[i]
			if l.stillNeeded(x, q) && !l.launchService(x) {
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

// stillNeeded reports whether a task in a queue still has to run.
func (l *leader) stillNeeded(x queuedTask, q int) bool {
	j := x.job
	if l.jobs[j.facts.N()] != j || !l.mayRunService(j, x.tk) && !(q == slowSetupQueue && l.mayRunBeside(j, x.tk)) {
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

// launchService launches a service task if a tracker has room for it.
func (l *leader) launchService(x queuedTask) bool {
	if x.tk.kind == wire.Setup && !l.mayRunSetup() {
		return false
	}
	t := l.serviceTracker(x.job, x.tk)
	if t == nil || x.tk.runs() && x.job.avoids(x.tk, t) {
		return false
	}
	if x.tk.kind == wire.Setup && !x.tk.runs() {
		x.job.service.setupLaunched = l.now
	}
	l.alarm(x.job, l.now+l.serviceLimit(x.tk.kind)<<x.tk.running())
	l.launch(x.job, x.tk, t, x.subject)
	return true
}

// slowFor is how long service tasks prefer other trackers than one that was outrun.
const slowFor = time.Minute

// serviceTracker returns a tracker with room, round robin, or nil. While a preferred tracker that
// the task does not avoid exists, with or without room, it returns no other one. Trackers that were
// outrun lately come last. If the task runs on a slow tracker already, the one where an attempt
// succeeded last comes first.
func (l *leader) serviceTracker(j *job, tk *task) *tracker {
	var fallback, slow, latest *tracker
	i, room := l.roundRobin, l.services.roomFor(queueOf(tk.kind))
	if w := int(j.assign.Warm) - 1; w >= 0 && room.Has(w) && tk.kind == wire.Commit && !tk.runs() {
		if t := l.fleet.byIndex[w]; t.services.preferred && !j.avoids(tk, t) && !l.outranLately(t) {
			l.roundRobin = w + 1
			return t
		}
	}
	for range room.Len() {
		if i = room.Next(i); i < 0 {
			i = room.Next(0)
		}
		t := l.fleet.byIndex[i]
		i++
		switch {
		case tk.runsOn(t):
		case t.services.preferred && !j.avoids(tk, t):
			switch {
			case l.outranLately(t):
				slow = cmp.Or(slow, t)
			case !tk.runs():
				l.roundRobin = i
				return t
			case latest == nil || t.services.succeeded > latest.services.succeeded:
				latest = t
			}
		case fallback == nil:
			fallback = t
		}
	}
	if latest != nil || slow != nil {
		return cmp.Or(latest, slow)
	}
	better := l.services.preferred // preferred trackers that the task does not avoid; they have no room
	for name := range j.faults.Avoided(tk.key()) {
		if t := l.fleet.trackers[name]; t != nil && t.services.preferred {
			better--
		}
	}
	if better > 0 {
		return nil
	}
	return fallback
}

// queuedService returns the kind of a queued service task of the job, if there is one.
func (j *job) queuedService() (k wire.Kind, ok bool) {
	for _, tk := range []*task{&j.service.setup, &j.service.commit, &j.service.cleanup} {
		if tk.queued && !tk.runs() {
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
