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

// tenMinutes is the length of a first exclusion.
const tenMinutes = 10 * time.Minute

// failAttempt makes an attempt fail after some time.
func (f *fleet) failAttempt(a *attempt, took time.Duration) {
	f.running = slices.DeleteFunc(f.running, func(e runningMap) bool { return e.id == a.id })
	slices.SortFunc(f.running, func(x, y runningMap) int { return x.compare(&y) }) // a sorted list is a heap, too
	f.step(FromTracker{Stream: a.tracker.contact.stream, Message: &wire.Report{
		Attempt: a.id, State: wire.AttemptFailed, Result: &wire.Result{Error: "oops", Took: took},
	}})
}

// failThreeMaps makes three maps fail on a tracker and then succeed on others. All of them are
// launched on it after its last pardon.
func (f *fleet) failThreeMaps(t *tracker) {
	counts := func(a *attempt) bool {
		return t.health.Counts(time.Duration(a.began-f.core.wallAtZero) * time.Millisecond)
	}
	for range 3 {
		i := slices.IndexFunc(t.attempts, counts)
		for ; i < 0; i = slices.IndexFunc(t.attempts, counts) {
			if !f.endNext() {
				f.tb.Fatal("no map is launched on the tracker")
			}
		}
		a := t.attempts[i]
		m := &a.job.maps[a.id.Task.N]
		for f.failAttempt(a, 0); !m.output.atHand(); {
			if !f.endNext() {
				f.tb.Fatal("a failed map is not relaunched")
			}
		}
	}
}

// reportDroppedDisks makes a tracker report how many disks it has stopped using.
func (f *fleet) reportDroppedDisks(t *tracker, disks int) {
	f.step(FromTracker{Stream: t.contact.stream, Message: &wire.Capacity{MapSlots: fleetSlots, ReduceSlots: 2, DisksAbandoned: disks}})
	f.now += time.Millisecond
}

// reconnect opens a new stream for a tracker that has stopped using some disks.
func (f *fleet) reconnect(t *tracker, disks int) {
	f.step(FromTracker{Stream: 1000, Message: &wire.Hello{
		Version: wire.Version, Tracker: t.Name, Process: t.Process, Incarnation: t.Incarnation, Host: t.Host, Addr: t.Addr,
		MapSlots: fleetSlots, ReduceSlots: 2, DisksAbandoned: disks,
	}})
}

func smallFleet(t *testing.T) (*fleet, *leader, *tracker) {
	f := newFleet(t, fleetSize{trackers: 4, jobs: 1, maps: 1000, inputRacks: 1}, nil)
	for _, j := range f.core.leader.order {
		j.spec.TrackerLimits.MaxFailures = 1000 // only exclusions from all jobs are tested
	}
	return f, f.core.leader, f.core.leader.fleet.trackers[f.hosts[0]]
}

// TestPardon tests that an exclusion ends when the tracker stops using a disk, which may have
// caused it. A second disk soon after does not end the next exclusion.
func TestPardon(t *testing.T) {
	f, _, bad := smallFleet(t)
	f.failThreeMaps(bad)
	if bad.Excluded == "" {
		t.Fatal("the tracker is not excluded")
	}
	if f.reportDroppedDisks(bad, 1); bad.Excluded != "" || bad.health.Excluded() {
		t.Fatalf("without the bad disk it is still excluded: %s", bad.Excluded)
	}
	f.failThreeMaps(bad)
	if bad.Excluded == "" {
		t.Error("later failures do not exclude it")
	}
	if f.reportDroppedDisks(bad, 2); bad.Excluded == "" {
		t.Error("a second disk soon after ends the next exclusion")
	}
}

// TestPardonAfterReconnection tests that a reconnection with an already reported disk ends no
// exclusion.
func TestPardonAfterReconnection(t *testing.T) {
	f, _, bad := smallFleet(t)
	f.reportDroppedDisks(bad, 1)
	f.now += 20 * time.Minute
	f.failThreeMaps(bad)
	if bad.Excluded == "" {
		t.Fatal("the tracker is not excluded")
	}
	f.step(StreamClosed{bad.contact.stream})
	if f.reconnect(bad, 1); bad.contact.stream == 0 {
		t.Fatal("it has not reconnected")
	}
	if f.reportDroppedDisks(bad, 1); bad.Excluded == "" {
		t.Error("a disk that was dropped long ago ends its exclusion")
	}
	if f.reportDroppedDisks(bad, 2); bad.Excluded != "" {
		t.Error("another dropped disk does not end its exclusion")
	}
}

// TestPardonAfterElection tests the same for a new leader, which has no earlier report.
func TestPardonAfterElection(t *testing.T) {
	f, _, bad := smallFleet(t)
	f.failThreeMaps(bad)
	f.step(Deposed{})
	f.step(Elected{Term: 1, Wall: 1})
	f.reconnect(bad, 3)
	bad = f.core.leader.fleet.trackers[bad.Name]
	if f.reportDroppedDisks(bad, 3); bad.Excluded == "" {
		t.Error("an old disk ends its exclusion after an election")
	}
	if f.reportDroppedDisks(bad, 4); bad.Excluded != "" {
		t.Error("another dropped disk does not end its exclusion")
	}
}

// TestPardonBeforeLogEntry tests that an exclusion that was proposed before a pardon and logged
// after it ends at once, and does not lengthen the next one.
func TestPardonBeforeLogEntry(t *testing.T) {
	f, l, bad := smallFleet(t)
	f.holdLog = true
	f.failThreeMaps(bad)
	if len(f.held) != 1 || bad.Excluded != "" {
		t.Fatalf("%d proposals, want 1; excluded before the log entry: %q", len(f.held), bad.Excluded)
	}
	f.reportDroppedDisks(bad, 1)
	f.holdLog = false
	f.carryOut(f.held[0])
	if bad.Excluded != "" || bad.health.Length() != tenMinutes || l.assign.FreeTrackers(mapPhase).Len()+len(bad.attempts) == 0 {
		t.Errorf("excluded: %q; the next exclusion would last %v, want 10 minutes", bad.Excluded, bad.health.Length())
	}
}

// restartTracker ends a tracker's process and starts another one with the same name.
func (f *fleet) restartTracker(t *tracker) *tracker {
	f.step(StreamClosed{t.contact.stream})
	f.step(FromTracker{Stream: 2000, Message: &wire.Hello{
		Version: wire.Version, Tracker: t.Name, Process: t.Process + 1, Host: t.Host, Addr: t.Addr,
		MapSlots: fleetSlots, ReduceSlots: 2,
	}})
	f.step(FromTracker{Stream: 2000, Message: &wire.Inventory{}})
	restarted := f.core.leader.fleet.trackers[t.Name]
	if restarted == t || !restarted.usable() {
		f.tb.Fatal("the tracker has not restarted")
	}
	return restarted
}

// TestSparedNeverLogged tests the pardon of a proposed exclusion that never reaches the log: it
// does not spare a later exclusion.
func TestSparedNeverLogged(t *testing.T) {
	for _, c := range []struct {
		name string
		lose func(f *fleet, bad *tracker) *tracker // returns the tracker that is excluded next
	}{
		{"refused", func(f *fleet, bad *tracker) *tracker {
			f.step(Refused{Key: f.held[0].Key, Err: errors.New("too large")})
			return bad
		}},
		{"another process has registered", func(f *fleet, bad *tracker) *tracker {
			bad = f.restartTracker(bad)
			f.carryOut(f.held[0])
			return bad
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, _, bad := smallFleet(t)
			f.holdLog = true
			f.failThreeMaps(bad)
			f.reportDroppedDisks(bad, 1)
			f.holdLog = false
			bad = c.lose(f, bad)
			if bad.Excluded != "" {
				t.Fatalf("the lost proposal excludes it: %s", bad.Excluded)
			}
			if f.failThreeMaps(bad); bad.Excluded == "" {
				t.Error("later failures do not exclude it")
			}
		})
	}
}

// TestSparedBesideEarlierProcess tests that a pardon still spares a proposed exclusion after the
// log excludes the tracker's previous process.
func TestSparedBesideEarlierProcess(t *testing.T) {
	f, _, bad := smallFleet(t)
	f.holdLog = true
	f.failThreeMaps(bad)
	f.holdLog = false
	bad = f.restartTracker(bad)
	f.holdLog = true
	f.failThreeMaps(bad)
	f.reportDroppedDisks(bad, 1)
	f.holdLog = false
	if len(f.held) != 2 {
		t.Fatalf("%d proposals, want 2", len(f.held))
	}
	f.carryOut(f.held[0])
	if f.carryOut(f.held[1]); bad.Excluded != "" || bad.health.Length() != tenMinutes {
		t.Errorf("excluded: %q; the next exclusion would last %v, want 10 minutes", bad.Excluded, bad.health.Length())
	}
}

// TestSparedBesideReadmission tests that a pardon still spares a proposed exclusion after a
// repeated readmission, which changes nothing.
func TestSparedBesideReadmission(t *testing.T) {
	f, _, bad := smallFleet(t)
	f.holdLog = true
	f.failThreeMaps(bad)
	f.reportDroppedDisks(bad, 1)
	f.holdLog = false
	f.carryOut(Propose{Data: facts.Encode(&facts.TrackerReadmitted{Tracker: bad.Name, Incarnation: bad.Incarnation})})
	if f.carryOut(f.held[0]); bad.Excluded != "" || bad.health.Length() != tenMinutes {
		t.Errorf("excluded: %q; the next exclusion would last %v, want 10 minutes", bad.Excluded, bad.health.Length())
	}
}

// TestNextExclusionLength tests that the next exclusion is short again only after the success of
// an attempt that was launched after the last one.
func TestNextExclusionLength(t *testing.T) {
	f, _, bad := smallFleet(t)
	f.failThreeMaps(bad)
	f.now += time.Second
	a := bad.attempts[0]
	f.step(FromTracker{Stream: bad.contact.stream, Message: &wire.Report{Attempt: a.id, State: wire.AttemptSucceeded, Result: &wire.Result{
		Took: f.now, Output: &wire.MapOutput{Map: a.id.Task.N, Attempt: a.id.N, Digest: 1},
	}}})
	if bad.health.Length() != 2*tenMinutes {
		t.Errorf("after the success of an attempt launched before, the next exclusion would last %v, want 20 minutes", bad.health.Length())
	}
	f.now += tenMinutes
	f.step(Tick{})
	for f.endNext() && bad.health.Length() != tenMinutes {
	}
	if bad.Excluded != "" || bad.health.Length() != tenMinutes {
		t.Errorf("after a success the next exclusion would last %v, want 10 minutes; excluded: %s", bad.health.Length(), bad.Excluded)
	}
}

// caseSince returns a case against a tracker with failures that began at a time in Unix
// milliseconds.
func caseSince(began int64) *health.Comparison {
	r := health.New(false)
	for n := 0; ; n++ {
		task := wire.TaskID{Job: wire.JobID{N: 1}, Kind: wire.Map, N: n}
		if c := r.Failed(mapPhase, health.Failure{Task: task, Began: began, Took: time.Hour}, 1, 0); c != nil {
			return c
		}
	}
}

// TestEvidenceBeyondKept tests that attempts count as evidence although their job already keeps
// as many ended attempts as it may.
func TestEvidenceBeyondKept(t *testing.T) {
	_, l, other := smallFleet(t)
	j := &job{facts: new(facts.Job), ended: past.New()}
	const since, more = 1000, 5
	keep := func(began int64) {
		j.addEnded(&task{kind: wire.Map}, &past.Attempt{Tracker: other.number, Began: began, Took: 1, State: wire.AttemptSucceeded}, "")
	}
	for range past.MaxStored {
		keep(0)
	}
	for i := range past.MaxOverflow + more {
		keep(since + int64(i))
	}
	for since, want := range map[int64]int{since: past.MaxOverflow, since + past.MaxOverflow: more, since + past.MaxOverflow + more: 0} {
		c := caseSince(since)
		if l.addEvidence(c, j, mapPhase); c.Succeeded != want || c.Failed != 0 {
			t.Errorf("since %d: %d attempts succeeded and %d failed, want %d and 0", since, c.Succeeded, c.Failed, want)
		}
	}
}
