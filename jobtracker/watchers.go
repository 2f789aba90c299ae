package jobtracker

import (
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/jobtracker/core/admission"
	"github.com/quernmr/quern/scheduler/heap"
	"github.com/quernmr/quern/wire"
)

const (
	// watchGap is the minimum time between two states of a job that watches get. The state in which
	// it ends may come earlier.
	watchGap = 100 * time.Millisecond

	// watchRefresh is the time after which a watched job without changes is looked at again: other
	// jobs change its predicted end, and its wait for slots.
	watchRefresh = 5 * time.Second

	// maxPublished is the maximum number of jobs that one pass of Run's loop looks at.
	maxPublished = 32
)

// statusSource has the state of jobs: a core.Core.
type statusSource interface {
	StatusAt(now time.Duration, id wire.JobID) (wire.JobStatus, bool)
	State(id wire.JobID) (wire.State, bool)
	IsLeader() bool
	CheckLeading() error
	Leadership() core.Leadership
}

// watchers tells clients of changes of the jobs that they watch. It makes one status of a job for
// all of its watches, and none of a job that has not changed. The goroutine of Run owns it. All
// watches are registered by add.
type watchers struct {
	core    statusSource
	jobs    map[wire.JobID]*watchedJob
	waiting []*watch // wait until this job tracker leads
	visits  heap.Heap[visit]
	made    int // statuses made so far
}

// watchedJob is a job with watches.
type watchedJob struct {
	id        wire.JobID
	watches   map[*watch]struct{}
	published atomic.Pointer[jobState]
	at        time.Duration // when the last status was made
	changed   bool          // a visit for a change is in watchers.visits
	ended     bool
}

// jobState is the status of a job at a time, or why there is none. It never changes, but for the time in slots: that
// grows without an event.
type jobState struct {
	status wire.JobStatus
	slots  atomic.Pointer[wire.SlotTime] // the latest; nil: that of status
	err    error
	epoch  uint64 // in which this job tracker led then; 0: it did not
	at     time.Duration
}

// visit is a time at which to look at a job.
type visit struct {
	at      time.Duration
	job     *watchedJob
	refresh bool // not for a change
}

// watch is a client that waits for changes of jobs.
type watch struct {
	ids   []wire.JobID
	wake  chan struct{} // has a value after a change
	state atomic.Pointer[watchState]
}

// watchState is what a watch waits for: its jobs, or an error if it has ended. Before that, it is nil.
type watchState struct {
	jobs []*watchedJob // in the order of the ids
	err  error
}

func newWatchers(c statusSource) *watchers {
	return &watchers{
		core: c, jobs: make(map[wire.JobID]*watchedJob),
		visits: heap.New(nil, func(a, b visit) bool { return a.at < b.at }),
	}
}

func newWatch(ids []wire.JobID) *watch { return &watch{ids: ids, wake: make(chan struct{}, 1)} }

// notify wakes the client's goroutine.
func (w *watch) notify() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// set tells the client's goroutine its jobs, or the error that ends the watch.
func (w *watch) set(jobs []*watchedJob, err error) {
	w.state.Store(&watchState{jobs, err})
	w.notify()
}

// add registers a watch, and makes the statuses of its first jobs; publishDue makes the others.
func (x *watchers) add(w *watch, now time.Duration) { x.addAll([]*watch{w}, now) }

// addAll registers watches, and makes at most maxPublished statuses. It returns how many it made.
func (x *watchers) addAll(all []*watch, now time.Duration) (made int) {
	for _, w := range all {
		made += x.register(w, now, maxPublished-made)
	}
	return made
}

// register registers a watch, and makes at most a number of statuses. Every job tracker knows the
// state of ended jobs. Other watches wait while this job tracker is elected but does not lead yet,
// and fail if another one leads.
func (x *watchers) register(w *watch, now time.Duration, most int) (made int) {
	if !x.core.IsLeader() && !x.allEnded(w.ids) {
		if err := x.core.CheckLeading(); err != nil {
			w.set(nil, err)
			return 0
		}
		x.waiting = append(x.waiting, w)
		return 0
	}
	jobs := make([]*watchedJob, len(w.ids))
	before := x.made
	for i, id := range w.ids {
		j := x.jobs[id]
		if j == nil {
			j = &watchedJob{id: id, watches: make(map[*watch]struct{}), at: -watchGap}
			x.jobs[id] = j
			x.visits.Push(visit{now + watchRefresh, j, true})
		}
		j.watches[w] = struct{}{}
		switch fresh := j.published.Load() != nil && !j.changed && now-j.at < watchGap; {
		case fresh:
		case x.made-before < most:
			x.publish(j, now)
		default:
			x.noteChange(j, now)
		}
		jobs[i] = j
	}
	w.set(jobs, nil)
	return x.made - before
}

// remove forgets a watch.
func (x *watchers) remove(w *watch) {
	x.waiting = slices.DeleteFunc(x.waiting, func(other *watch) bool { return other == w })
	for _, id := range w.ids {
		if j := x.jobs[id]; j != nil {
			delete(j.watches, w)
			if len(j.watches) == 0 {
				delete(x.jobs, id)
			}
		}
	}
}

// leadershipChanged ends all watches, or makes them wait if this job tracker is elected again.
func (x *watchers) leadershipChanged(now time.Duration) {
	all, seen := x.waiting, make(map[*watch]bool)
	x.waiting = nil
	for _, j := range x.jobs {
		for w := range j.watches {
			if !seen[w] {
				seen[w] = true
				all = append(all, w)
			}
		}
	}
	clear(x.jobs)
	x.visits.Items = x.visits.Items[:0]
	x.addAll(all, now)
}

// noteChanges takes the jobs that a Step has changed. It publishes the last status of a job at once,
// since the core may forget the job soon.
func (x *watchers) noteChanges(ids []wire.JobID, now time.Duration) {
	if len(x.jobs) == 0 {
		return
	}
	for _, id := range ids {
		j := x.jobs[id]
		if j == nil || j.ended {
			continue
		}
		if state, ok := x.core.State(id); ok && state.Ended() {
			x.publish(j, now)
		} else {
			x.noteChange(j, now)
		}
	}
}

func (x *watchers) noteChange(j *watchedJob, now time.Duration) {
	if !j.changed {
		j.changed = true
		x.visits.Push(visit{max(now, j.at+watchGap), j, false})
	}
}

// publishDue looks at jobs that are due, at most maxPublished. It also registers waiting
// watches if they need not wait any more.
func (x *watchers) publishDue(now time.Duration) {
	n := 0
	if len(x.waiting) > 0 && (x.core.IsLeader() || x.core.CheckLeading() != nil) {
		all := x.waiting
		x.waiting = nil
		n = x.addAll(all, now)
	}
	for n < maxPublished && len(x.visits.Items) > 0 && x.visits.Items[0].at <= now {
		v := x.visits.Items[0]
		x.visits.Pop()
		j := v.job
		switch {
		case x.jobs[j.id] != j || j.ended:
			continue
		case !v.refresh && !j.changed:
			continue // published since
		case v.refresh && now-j.at < watchRefresh:
			x.visits.Push(visit{j.at + watchRefresh, j, true})
			continue
		case v.refresh:
			x.visits.Push(visit{now + watchRefresh, j, true})
		}
		x.publish(j, now)
		n++
	}
}

// next returns the time of the next visit; ok is false if there is none.
func (x *watchers) next() (at time.Duration, ok bool) {
	if len(x.visits.Items) == 0 {
		return 0, false
	}
	return x.visits.Items[0].at, true
}

// publish makes the status of a job, and wakes its watches if it differs from the last one.
func (x *watchers) publish(j *watchedJob, now time.Duration) {
	x.made++
	j.at, j.changed = now, false
	s := &jobState{at: now}
	var ok bool
	if s.status, ok = x.core.StatusAt(now, j.id); !ok {
		if l := x.core.Leadership(); l.Leads {
			s.epoch = l.Epoch
		}
		s.err = fmt.Errorf("%v: %w", j.id, admission.ErrUnknownJob)
	}
	j.ended = !ok || s.status.State.Ended()
	if last := j.published.Load(); last != nil && last.err == nil && s.err == nil && sameStatus(&last.status, &s.status) {
		last.slots.Store(s.status.SlotTime)
		return
	}
	j.published.Store(s)
	for w := range j.watches {
		w.notify()
	}
}

func (x *watchers) allEnded(ids []wire.JobID) bool {
	for _, id := range ids {
		if state, ok := x.core.State(id); !ok || !state.Ended() {
			return false
		}
	}
	return true
}

var _ statusSource = (*core.Core)(nil)
