package jobtracker

import (
	"errors"
	"testing"
	"time"

	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/jobtracker/core/admission"
	"github.com/quernmr/quern/wire"
)

// fakeStatuses has jobs, and counts the statuses that are made of them.
type fakeStatuses struct {
	jobs    map[wire.JobID]wire.JobStatus
	made    int
	asked   int // calls of CheckLeading
	follows bool
	elected bool // it does not lead yet
}

func newFakeStatuses(jobs int) *fakeStatuses {
	f := &fakeStatuses{jobs: make(map[wire.JobID]wire.JobStatus)}
	for n := range jobs {
		f.jobs[jobN(n)] = wire.JobStatus{ID: jobN(n), State: wire.Running}
	}
	return f
}

func jobN(n int) wire.JobID { return wire.JobID{Start: 1, N: n} }

func (f *fakeStatuses) StatusAt(_ time.Duration, id wire.JobID) (wire.JobStatus, bool) {
	f.made++
	s, ok := f.jobs[id]
	return s, ok
}

func (f *fakeStatuses) State(id wire.JobID) (wire.State, bool) {
	s, ok := f.jobs[id]
	return s.State, ok
}

func (f *fakeStatuses) IsLeader() bool { return !f.follows && !f.elected }

func (f *fakeStatuses) Leadership() core.Leadership {
	return core.Leadership{Leads: f.IsLeader(), Epoch: 1}
}

func (f *fakeStatuses) CheckLeading() error {
	f.asked++
	if f.follows {
		return core.ErrNotLeader
	}
	return nil
}

// set changes a job.
func (f *fakeStatuses) set(n, maps int, state wire.State) {
	s := f.jobs[jobN(n)]
	s.State, s.Maps.Done = state, maps
	f.jobs[jobN(n)] = s
}

// woken reports whether a watch was told of a change since the last call.
func (w *watch) woken() bool {
	select {
	case <-w.wake:
		return true
	default:
		return false
	}
}

// TestManyWatchers: 10,000 clients wait for 100 jobs. Events of other jobs make no status. An event of
// a job makes one, and is told to its clients only.
func TestManyWatchers(t *testing.T) {
	const clients, watched, others = 10_000, 100, 1000
	f := newFakeStatuses(watched + others)
	x := newWatchers(f)
	watches := make([]*watch, clients)
	for i := range watches {
		watches[i] = newWatch([]wire.JobID{jobN(i % watched)})
		x.add(watches[i], 0)
		if !watches[i].woken() {
			t.Fatalf("client %d is not told the state of its job", i)
		}
	}
	if f.made != watched {
		t.Errorf("%d statuses for %d jobs", f.made, watched)
	}
	f.made = 0
	now := time.Second
	for n := range others {
		f.set(watched+n, 1, wire.Running)
		x.noteChanges([]wire.JobID{jobN(watched + n)}, now)
		x.publishDue(now)
	}
	if f.made != 0 {
		t.Errorf("%d events of other jobs make %d statuses", others, f.made)
	}
	f.set(7, 1, wire.Running)
	x.noteChanges([]wire.JobID{jobN(7), jobN(8), jobN(7)}, now)
	x.publishDue(now)
	if f.made != 2 {
		t.Errorf("events of two jobs make %d statuses", f.made)
	}
	for i, w := range watches {
		if got, want := w.woken(), i%watched == 7; got != want {
			t.Fatalf("client %d of job %d is told of a change of job 7: %v", i, i%watched, got)
		}
	}
	for _, w := range watches {
		x.remove(w)
	}
	if len(x.jobs) > 0 {
		t.Errorf("%d jobs are watched without clients", len(x.jobs))
	}
}

// TestPublishing: changes of a job are published once in watchGap, its end at once. A job without
// changes is looked at again after watchRefresh.
func TestPublishing(t *testing.T) {
	f := newFakeStatuses(2)
	x := newWatchers(f)
	w := newWatch([]wire.JobID{jobN(0), jobN(1)})
	x.add(w, 0)
	at := time.Duration(0)
	expect := func(what string, after time.Duration, statuses int, told bool) {
		t.Helper()
		f.made, at = 0, at+after
		x.publishDue(at)
		if got := w.woken(); f.made != statuses || got != told {
			t.Errorf("%s: %d statuses, told: %v; want %d, %v", what, f.made, got, statuses, told)
		}
	}
	change := func(n, maps int, state wire.State) {
		f.set(n, maps, state)
		x.noteChanges([]wire.JobID{jobN(n)}, at)
	}
	expect("first states", 0, 0, true)
	change(0, 1, wire.Running)
	expect("change at once", watchGap-1, 0, false)
	change(0, 2, wire.Running)
	expect("change after the gap", 1, 1, true)
	x.noteChanges([]wire.JobID{jobN(0)}, at)
	expect("nothing changed", watchGap, 1, false)
	f.set(1, 5, wire.Running)
	expect("refresh is not due", watchRefresh/2, 0, false)
	expect("refresh", watchRefresh/2, 2, true)
	if states, changed, err := w.states(nil); err != nil || !changed || states[1].status.Maps.Done != 5 {
		t.Errorf("states %v, %v", states, err)
	}
	f.made = 0
	change(0, 3, wire.Succeeded)
	if f.made != 1 || !w.woken() {
		t.Error("the end of a job is not published at once")
	}
	expect("ended jobs are not looked at", 2*watchRefresh, 1, false)
	change(1, 3, wire.Killed)
	if states, _, _ := w.states(nil); !allEnded(states) {
		t.Errorf("states after the end: %v", states)
	}
}

// TestPublishedAtOnce: one pass of Run's loop makes a limited number of statuses.
func TestPublishedAtOnce(t *testing.T) {
	const jobs = 10 * maxPublished
	f := newFakeStatuses(jobs)
	x := newWatchers(f)
	w := newWatch(nil)
	for n := range jobs {
		w.ids = append(w.ids, jobN(n))
	}
	x.add(w, 0)
	for passes := 1; ; passes++ {
		if f.made != passes*maxPublished {
			t.Fatalf("%d statuses after %d passes", f.made, passes)
		}
		states, _, err := w.states(nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := states != nil, passes == jobs/maxPublished; got != want {
			t.Fatalf("states after %d passes: %v", passes, got)
		} else if got {
			break
		}
		x.publishDue(0)
	}
}

// TestWatchesOfLeaders: watches end when another job tracker leads, and wait while this one is elected
// but does not lead yet. All job trackers know how jobs have ended.
func TestWatchesOfLeaders(t *testing.T) {
	f := newFakeStatuses(3)
	f.set(2, 0, wire.Failed)
	x := newWatchers(f)
	result := func(w *watch) error {
		_, _, err := w.states(nil)
		return err
	}
	first, unknown, ended := newWatch([]wire.JobID{jobN(0), jobN(1)}), newWatch([]wire.JobID{jobN(9)}), newWatch([]wire.JobID{jobN(2)})
	x.add(first, 0)
	x.add(unknown, 0)
	if err := result(unknown); !errors.Is(err, admission.ErrUnknownJob) {
		t.Errorf("watch of an unknown job: %v", err)
	}
	f.elected = true
	x.leadershipChanged(0)
	waits := newWatch([]wire.JobID{jobN(0)})
	x.add(waits, 0)
	x.publishDue(0)
	if len(x.waiting) != 3 || result(waits) != nil {
		t.Errorf("%d watches wait for a leader, want 3", len(x.waiting))
	}
	f.elected = false
	x.publishDue(0)
	if states, _, err := waits.states(nil); err != nil || states == nil || len(x.waiting) > 0 {
		t.Errorf("no states after the election: %v", err)
	}
	f.follows = true
	x.leadershipChanged(0)
	for _, w := range []*watch{first, waits} {
		if err := result(w); !errors.Is(err, core.ErrNotLeader) {
			t.Errorf("watch at a follower: %v", err)
		}
	}
	x.add(ended, 0)
	if states, _, err := ended.states(nil); err != nil || !allEnded(states) {
		t.Errorf("an ended job at a follower: %v", err)
	}
}

// TestManyWatchesAfterElection: clients that watch many jobs each are registered once after an election,
// and each pass of the loop makes few statuses.
func TestManyWatchesAfterElection(t *testing.T) {
	const clients, jobs = 20, 500
	f := newFakeStatuses(clients * jobs)
	x := newWatchers(f)
	var watches []*watch
	for i := range clients {
		var ids []wire.JobID
		for n := range jobs {
			ids = append(ids, jobN(i*jobs+n))
		}
		watches = append(watches, newWatch(ids))
		x.add(watches[i], 0)
	}
	f.elected, f.asked = true, 0
	x.leadershipChanged(time.Second)
	if len(x.waiting) != clients || f.asked != clients {
		t.Errorf("%d watches wait for the leader after %d were added, want %d", len(x.waiting), f.asked, clients)
	}
	f.elected = false
	passes := 0
	for now := time.Second; ; passes++ {
		before := f.made
		x.publishDue(now)
		if n := f.made - before; n > maxPublished {
			t.Fatalf("a pass makes %d statuses, want at most %d", n, maxPublished)
		} else if n == 0 {
			break
		}
	}
	if most := clients*jobs/maxPublished + 1; passes > most {
		t.Errorf("%d passes, want at most %d", passes, most)
	}
	for i, w := range watches {
		if states, _, err := w.states(nil); err != nil || len(states) != jobs {
			t.Errorf("watch %d has %d states: %v", i, len(states), err)
		}
	}
}

// TestSlotTimeGrows: a client that comes later gets the time in slots of then, although nothing else has changed, and
// the others are not told.
func TestSlotTimeGrows(t *testing.T) {
	f := newFakeStatuses(1)
	x := newWatchers(f)
	ask := func(w *watch, now time.Duration, slots int64) {
		t.Helper()
		j := f.jobs[jobN(0)]
		j.SlotTime = &wire.SlotTime{Total: slots}
		f.jobs[jobN(0)] = j
		x.add(w, now)
		states, _, err := w.states(nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := statusesAt(states, now)[0].SlotTime; got == nil || got.Total != slots {
			t.Errorf("after %v the time in slots is %+v, want %d", now, got, slots)
		}
	}
	first := newWatch([]wire.JobID{jobN(0)})
	ask(first, 0, 505)
	first.woken()
	ask(newWatch([]wire.JobID{jobN(0)}), 7*time.Second, 7505)
	if first.woken() {
		t.Error("a client is told of a change that is none")
	}
}
