package core

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/quernmr/quern/jobtracker/core/facts"
	"github.com/quernmr/quern/jobtracker/core/health"
	"github.com/quernmr/quern/jobtracker/core/past"
	"github.com/quernmr/quern/wire"
)

// tenMinutes is how long an exclusion lasts that does not follow another one.
const tenMinutes = 10 * time.Minute

// failed has an attempt of a fleet fail that was launched so long ago.
func (f *fleet) failed(a *attempt, took time.Duration) {
	f.running = slices.DeleteFunc(f.running, func(e ending) bool { return e.id == a.id })
	slices.SortFunc(f.running, func(x, y ending) int { return x.compare(&y) }) // a heap, too
	f.step(FromTracker{Stream: a.tracker.contact.stream, Message: &wire.Report{
		Attempt: a.id, State: wire.AttemptFailed, Result: &wire.Result{Error: "oops", Took: took},
	}})
}

// blame has three maps fail on a tracker that then succeed elsewhere. All are launched there
// after its last pardon.
func (f *fleet) blame(t *tracker) {
	late := func(a *attempt) bool { return t.health.Counts(time.Duration(a.began-f.core.wall) * time.Millisecond) }
	for range 3 {
		i := slices.IndexFunc(t.attempts, late)
		for ; i < 0; i = slices.IndexFunc(t.attempts, late) {
			if !f.end() {
				f.tb.Fatal("nothing is launched there any more")
			}
		}
		a := t.attempts[i]
		m := &a.job.maps[a.id.Task.N]
		for f.failed(a, 0); !m.output.atHand(); {
			if !f.end() {
				f.tb.Fatal("a map that has failed does not run again")
			}
		}
	}
}

// left has a tracker say how often it has left a disk alone.
func (f *fleet) left(t *tracker, times int) {
	f.step(FromTracker{Stream: t.contact.stream, Message: &wire.Capacity{MapSlots: fleetSlots, ReduceSlots: 2, DisksLeft: times}})
	f.now += time.Millisecond
}

// comes has a tracker's process connect that has left a disk alone so often.
func (f *fleet) comes(t *tracker, left int) {
	f.step(FromTracker{Stream: 1000, Message: &wire.Hello{
		Version: wire.Version, Tracker: t.Name, Process: t.Process, Incarnation: t.Incarnation, Host: t.Host, Addr: t.Addr,
		MapSlots: fleetSlots, ReduceSlots: 2, DisksLeft: left,
	}})
}

func smallFleet(t *testing.T) (*fleet, *Live, *tracker) {
	f := newFleet(t, fleetSize{trackers: 4, jobs: 1, maps: 1000, part: 1}, nil)
	return f, f.core.live, f.core.live.fleet.trackers[f.hosts[0]]
}

// TestPardon: an exclusion ends when the tracker leaves a disk alone, whose fault it may
// have been; not again soon, as disks may fail again and again.
func TestPardon(t *testing.T) {
	f, _, bad := smallFleet(t)
	f.blame(bad)
	if bad.Excluded == "" {
		t.Fatal("the tracker is not excluded")
	}
	if f.left(bad, 1); bad.Excluded != "" || bad.health.Excluded() {
		t.Fatalf("without the bad disk it is excluded: %s", bad.Excluded)
	}
	f.blame(bad)
	if bad.Excluded == "" {
		t.Error("it is not excluded for what fails later")
	}
	if f.left(bad, 2); bad.Excluded == "" {
		t.Error("its exclusion ends for each disk")
	}
}

// TestPardonAfterReconnection: what a tracker has left alone before ends no exclusion, when
// it comes back as little as when a disk is good again.
func TestPardonAfterReconnection(t *testing.T) {
	f, _, bad := smallFleet(t)
	f.left(bad, 1)
	f.now += 20 * time.Minute
	f.blame(bad)
	if bad.Excluded == "" {
		t.Fatal("the tracker is not excluded")
	}
	f.step(StreamClosed{bad.contact.stream})
	if f.comes(bad, 1); bad.contact.stream == 0 {
		t.Fatal("it is not back")
	}
	if f.left(bad, 1); bad.Excluded == "" {
		t.Error("its exclusion ends for a disk that it has left alone long before")
	}
	if f.left(bad, 2); bad.Excluded != "" {
		t.Error("its exclusion does not end for another disk")
	}
}

// TestPardonAfterElection: the same for a leader that has not heard of that disk before.
func TestPardonAfterElection(t *testing.T) {
	f, _, bad := smallFleet(t)
	f.blame(bad)
	f.step(Deposed{})
	f.step(Elected{Term: 1, Wall: 1})
	f.comes(bad, 3)
	bad = f.core.live.fleet.trackers[bad.Name]
	if f.left(bad, 3); bad.Excluded == "" {
		t.Error("an election ends its exclusion")
	}
	if f.left(bad, 4); bad.Excluded != "" {
		t.Error("its exclusion does not end for another disk")
	}
}

// TestPardonOverHeldLog: an exclusion that is proposed when the disk is left alone, and
// comes into the log later, ends at once and counts for nothing.
func TestPardonOverHeldLog(t *testing.T) {
	f, l, bad := smallFleet(t)
	f.hold = true
	f.blame(bad)
	if len(f.held) != 1 || bad.Excluded != "" {
		t.Fatalf("%d facts are proposed, and it is excluded: %q", len(f.held), bad.Excluded)
	}
	f.left(bad, 1)
	f.hold = false
	f.carryOut(f.held[0])
	if bad.Excluded != "" || bad.health.Length() != tenMinutes || l.assign.FreeTrackers(mapPhase).Len()+len(bad.attempts) == 0 {
		t.Errorf("it is excluded: %q, and the next exclusion lasts %v", bad.Excluded, bad.health.Length())
	}
}

// begins has a tracker's process end, and another one of that name begin.
func (f *fleet) begins(t *tracker) *tracker {
	f.step(StreamClosed{t.contact.stream})
	f.step(FromTracker{Stream: 2000, Message: &wire.Hello{
		Version: wire.Version, Tracker: t.Name, Process: t.Process + 1, Host: t.Host, Addr: t.Addr,
		MapSlots: fleetSlots, ReduceSlots: 2,
	}})
	f.step(FromTracker{Stream: 2000, Message: &wire.Inventory{}})
	began := f.core.live.fleet.trackers[t.Name]
	if began == t || !began.usable() {
		f.tb.Fatal("the tracker has not begun again")
	}
	return began
}

// TestSparedNeverComes: an exclusion that a pardon spares, and that the log never has, spares
// no later one.
func TestSparedNeverComes(t *testing.T) {
	for _, c := range []struct {
		name  string
		never func(f *fleet, bad *tracker) *tracker // the tracker that is excluded next
	}{
		{"refused", func(f *fleet, bad *tracker) *tracker {
			f.step(Refused{Key: f.held[0].Key, Err: errors.New("too large")})
			return bad
		}},
		{"another process has begun", func(f *fleet, bad *tracker) *tracker {
			bad = f.begins(bad)
			f.carryOut(f.held[0])
			return bad
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, _, bad := smallFleet(t)
			f.hold = true
			f.blame(bad)
			f.left(bad, 1)
			f.hold = false
			bad = c.never(f, bad)
			if bad.Excluded != "" {
				t.Fatalf("it is excluded: %s", bad.Excluded)
			}
			if f.blame(bad); bad.Excluded == "" {
				t.Error("it is not excluded for what fails later")
			}
		})
	}
}

// TestSparedBesideEarlierProcess: what the log says of the process before does not end the
// sparing of an exclusion that is proposed.
func TestSparedBesideEarlierProcess(t *testing.T) {
	f, _, bad := smallFleet(t)
	f.hold = true
	f.blame(bad)
	f.hold = false
	bad = f.begins(bad)
	f.hold = true
	f.blame(bad)
	f.left(bad, 1)
	f.hold = false
	if len(f.held) != 2 {
		t.Fatalf("%d facts are proposed", len(f.held))
	}
	f.carryOut(f.held[0])
	if f.carryOut(f.held[1]); bad.Excluded != "" || bad.health.Length() != tenMinutes {
		t.Errorf("it is excluded: %q, and the next exclusion lasts %v", bad.Excluded, bad.health.Length())
	}
}

// TestSparedBesideReadmission: a readmission that comes a second time, and changes nothing,
// does not end the sparing of an exclusion that is proposed.
func TestSparedBesideReadmission(t *testing.T) {
	f, _, bad := smallFleet(t)
	f.hold = true
	f.blame(bad)
	f.left(bad, 1)
	f.hold = false
	f.carryOut(Propose{Data: facts.Encode(&facts.Readmitted{Tracker: bad.Name, Incarnation: bad.Incarnation})})
	if f.carryOut(f.held[0]); bad.Excluded != "" || bad.health.Length() != tenMinutes {
		t.Errorf("it is excluded: %q, and the next exclusion lasts %v", bad.Excluded, bad.health.Length())
	}
}

// TestBanned: only a success of an attempt that was launched after the exclusion has the
// next one be a short one.
func TestBanned(t *testing.T) {
	f, _, bad := smallFleet(t)
	f.blame(bad)
	f.now += time.Second
	a := bad.attempts[0]
	f.step(FromTracker{Stream: bad.contact.stream, Message: &wire.Report{Attempt: a.id, State: wire.AttemptSucceeded, Result: &wire.Result{
		Took: f.now, Output: &wire.MapOutput{Map: a.id.Task.N, Attempt: a.id.N, Digest: 1},
	}}})
	if bad.health.Length() != 2*tenMinutes {
		t.Errorf("after the success of an attempt from before, the next exclusion lasts %v, want 20 minutes", bad.health.Length())
	}
	f.now += tenMinutes
	f.step(Tick{})
	for f.end() && bad.health.Length() != tenMinutes {
	}
	if bad.Excluded != "" || bad.health.Length() != tenMinutes {
		t.Errorf("it has succeeded since, and the next exclusion lasts %v; excluded: %s", bad.health.Length(), bad.Excluded)
	}
}

// caseSince is against a tracker whose streak began at a time in Unix milliseconds.
func caseSince(began int64) *health.Case {
	r := health.New(false)
	for n := 0; ; n++ {
		task := wire.TaskID{Job: wire.JobID{N: 1}, Kind: wire.Map, N: n}
		if c := r.Failed(mapPhase, health.Failure{Task: task, Began: began, Took: time.Hour}, 1, 0); c != nil {
			return c
		}
	}
}

// TestElsewhereLate: what ends of a job after all that is kept of it counts when trackers
// are compared.
func TestElsewhereLate(t *testing.T) {
	_, l, other := smallFleet(t)
	j := &job{facts: new(facts.Job), ended: past.New()}
	const since, more = 1000, 5
	keep := func(began int64) {
		j.keep(&task{kind: wire.Map}, &past.Attempt{Tracker: other.number, Began: began, Took: 1, State: wire.AttemptSucceeded}, "")
	}
	for range past.Most {
		keep(0)
	}
	for i := range past.MostLate + more {
		keep(since + int64(i))
	}
	for since, want := range map[int64]int{since: past.MostLate, since + past.MostLate: more, since + past.MostLate + more: 0} {
		c := caseSince(since)
		if l.elsewhere(c, j, mapPhase); c.Succeeded != want || c.Failed != 0 {
			t.Errorf("since %d, %d attempts have done well and %d failed, want %d and 0", since, c.Succeeded, c.Failed, want)
		}
	}
}
