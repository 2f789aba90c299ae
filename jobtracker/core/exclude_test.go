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

// tenMinutes is the length of an exclusion that does not follow another one.
const tenMinutes = 10 * time.Minute

// failed makes an attempt fail that was launched some time ago.
func (f *fleet) failed(a *attempt, took time.Duration) {
	f.running = slices.DeleteFunc(f.running, func(e ending) bool { return e.id == a.id })
	slices.SortFunc(f.running, func(x, y ending) int { return x.compare(&y) }) // a heap, too
	f.step(FromTracker{Stream: a.tracker.contact.stream, Message: &wire.Report{
		Attempt: a.id, State: wire.AttemptFailed, Result: &wire.Result{Error: "oops", Took: took},
	}})
}

// blame makes three maps fail on a tracker and then succeed elsewhere. All are launched there
// after its last pardon.
func (f *fleet) blame(t *tracker) {
	late := func(a *attempt) bool { return t.health.Counts(time.Duration(a.began-f.core.wall) * time.Millisecond) }
	for range 3 {
		i := slices.IndexFunc(t.attempts, late)
		for ; i < 0; i = slices.IndexFunc(t.attempts, late) {
			if !f.endNext() {
				f.tb.Fatal("nothing is launched on the tracker")
			}
		}
		a := t.attempts[i]
		m := &a.job.maps[a.id.Task.N]
		for f.failed(a, 0); !m.output.atHand(); {
			if !f.endNext() {
				f.tb.Fatal("a failed map is not relaunched")
			}
		}
	}
}

// diskDropped makes a tracker report how many disks it has dropped.
func (f *fleet) diskDropped(t *tracker, times int) {
	f.step(FromTracker{Stream: t.contact.stream, Message: &wire.Capacity{MapSlots: fleetSlots, ReduceSlots: 2, DisksAbandoned: times}})
	f.now += time.Millisecond
}

// reconnect connects a tracker's process that has dropped some disks.
func (f *fleet) reconnect(t *tracker, left int) {
	f.step(FromTracker{Stream: 1000, Message: &wire.Hello{
		Version: wire.Version, Tracker: t.Name, Process: t.Process, Incarnation: t.Incarnation, Host: t.Host, Addr: t.Addr,
		MapSlots: fleetSlots, ReduceSlots: 2, DisksAbandoned: left,
	}})
}

func smallFleet(t *testing.T) (*fleet, *Live, *tracker) {
	f := newFleet(t, fleetSize{trackers: 4, jobs: 1, maps: 1000, part: 1}, nil)
	return f, f.core.live, f.core.live.fleet.trackers[f.hosts[0]]
}

// TestPardon: an exclusion ends when the tracker drops a disk, which may have caused it. It
// does not end soon again, as more disks may fail.
func TestPardon(t *testing.T) {
	f, _, bad := smallFleet(t)
	f.blame(bad)
	if bad.Excluded == "" {
		t.Fatal("the tracker is not excluded")
	}
	if f.diskDropped(bad, 1); bad.Excluded != "" || bad.health.Excluded() {
		t.Fatalf("excluded without the bad disk: %s", bad.Excluded)
	}
	f.blame(bad)
	if bad.Excluded == "" {
		t.Error("later failures do not exclude it")
	}
	if f.diskDropped(bad, 2); bad.Excluded == "" {
		t.Error("each disk ends its exclusion")
	}
}

// TestPardonAfterReconnection: disks dropped earlier end no exclusion when the tracker
// reconnects, nor does a disk that works again.
func TestPardonAfterReconnection(t *testing.T) {
	f, _, bad := smallFleet(t)
	f.diskDropped(bad, 1)
	f.now += 20 * time.Minute
	f.blame(bad)
	if bad.Excluded == "" {
		t.Fatal("the tracker is not excluded")
	}
	f.step(StreamClosed{bad.contact.stream})
	if f.reconnect(bad, 1); bad.contact.stream == 0 {
		t.Fatal("it has not reconnected")
	}
	if f.diskDropped(bad, 1); bad.Excluded == "" {
		t.Error("a disk dropped long before ends its exclusion")
	}
	if f.diskDropped(bad, 2); bad.Excluded != "" {
		t.Error("another dropped disk does not end its exclusion")
	}
}

// TestPardonAfterElection: the same for a new leader, which does not know the disk.
func TestPardonAfterElection(t *testing.T) {
	f, _, bad := smallFleet(t)
	f.blame(bad)
	f.step(Deposed{})
	f.step(Elected{Term: 1, Wall: 1})
	f.reconnect(bad, 3)
	bad = f.core.live.fleet.trackers[bad.Name]
	if f.diskDropped(bad, 3); bad.Excluded == "" {
		t.Error("an election ends its exclusion")
	}
	if f.diskDropped(bad, 4); bad.Excluded != "" {
		t.Error("another dropped disk does not end its exclusion")
	}
}

// TestPardonOverHeldLog: an exclusion that is proposed before a disk is dropped, and logged
// after it, ends at once and does not count.
func TestPardonOverHeldLog(t *testing.T) {
	f, l, bad := smallFleet(t)
	f.hold = true
	f.blame(bad)
	if len(f.held) != 1 || bad.Excluded != "" {
		t.Fatalf("%d facts are proposed, and it is excluded: %q", len(f.held), bad.Excluded)
	}
	f.diskDropped(bad, 1)
	f.hold = false
	f.carryOut(f.held[0])
	if bad.Excluded != "" || bad.health.Length() != tenMinutes || l.assign.FreeTrackers(mapPhase).Len()+len(bad.attempts) == 0 {
		t.Errorf("it is excluded: %q, and the next exclusion lasts %v", bad.Excluded, bad.health.Length())
	}
}

// restartTracker ends a tracker's process and starts another one of that name.
func (f *fleet) restartTracker(t *tracker) *tracker {
	f.step(StreamClosed{t.contact.stream})
	f.step(FromTracker{Stream: 2000, Message: &wire.Hello{
		Version: wire.Version, Tracker: t.Name, Process: t.Process + 1, Host: t.Host, Addr: t.Addr,
		MapSlots: fleetSlots, ReduceSlots: 2,
	}})
	f.step(FromTracker{Stream: 2000, Message: &wire.Inventory{}})
	began := f.core.live.fleet.trackers[t.Name]
	if began == t || !began.usable() {
		f.tb.Fatal("the tracker has not restarted")
	}
	return began
}

// TestSparedNeverLogged: if a pardon spares an exclusion that never reaches the log, later
// exclusions are not spared.
func TestSparedNeverLogged(t *testing.T) {
	for _, c := range []struct {
		name  string
		never func(f *fleet, bad *tracker) *tracker // the tracker that is excluded next
	}{
		{"refused", func(f *fleet, bad *tracker) *tracker {
			f.step(Refused{Key: f.held[0].Key, Err: errors.New("too large")})
			return bad
		}},
		{"another process has begun", func(f *fleet, bad *tracker) *tracker {
			bad = f.restartTracker(bad)
			f.carryOut(f.held[0])
			return bad
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, _, bad := smallFleet(t)
			f.hold = true
			f.blame(bad)
			f.diskDropped(bad, 1)
			f.hold = false
			bad = c.never(f, bad)
			if bad.Excluded != "" {
				t.Fatalf("it is excluded: %s", bad.Excluded)
			}
			if f.blame(bad); bad.Excluded == "" {
				t.Error("later failures do not exclude it")
			}
		})
	}
}

// TestSparedBesideEarlierProcess: log entries about the tracker's previous process do not end
// the sparing of a proposed exclusion.
func TestSparedBesideEarlierProcess(t *testing.T) {
	f, _, bad := smallFleet(t)
	f.hold = true
	f.blame(bad)
	f.hold = false
	bad = f.restartTracker(bad)
	f.hold = true
	f.blame(bad)
	f.diskDropped(bad, 1)
	f.hold = false
	if len(f.held) != 2 {
		t.Fatalf("%d facts are proposed", len(f.held))
	}
	f.carryOut(f.held[0])
	if f.carryOut(f.held[1]); bad.Excluded != "" || bad.health.Length() != tenMinutes {
		t.Errorf("it is excluded: %q, and the next exclusion lasts %v", bad.Excluded, bad.health.Length())
	}
}

// TestSparedBesideReadmission: a repeated readmission, which changes nothing, does not end the
// sparing of a proposed exclusion.
func TestSparedBesideReadmission(t *testing.T) {
	f, _, bad := smallFleet(t)
	f.hold = true
	f.blame(bad)
	f.diskDropped(bad, 1)
	f.hold = false
	f.carryOut(Propose{Data: facts.Encode(&facts.TrackerReadmitted{Tracker: bad.Name, Incarnation: bad.Incarnation})})
	if f.carryOut(f.held[0]); bad.Excluded != "" || bad.health.Length() != tenMinutes {
		t.Errorf("it is excluded: %q, and the next exclusion lasts %v", bad.Excluded, bad.health.Length())
	}
}

// TestNextExclusionLength: only the success of an attempt launched after the exclusion makes
// the next exclusion short.
func TestNextExclusionLength(t *testing.T) {
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
	for f.endNext() && bad.health.Length() != tenMinutes {
	}
	if bad.Excluded != "" || bad.health.Length() != tenMinutes {
		t.Errorf("it has succeeded since, and the next exclusion lasts %v; excluded: %s", bad.health.Length(), bad.Excluded)
	}
}

// caseSince is a case against a tracker with a streak since a time in Unix milliseconds.
func caseSince(began int64) *health.Case {
	r := health.New(false)
	for n := 0; ; n++ {
		task := wire.TaskID{Job: wire.JobID{N: 1}, Kind: wire.Map, N: n}
		if c := r.Failed(mapPhase, health.Failure{Task: task, Began: began, Took: time.Hour}, 1, 0); c != nil {
			return c
		}
	}
}

// TestEvidenceAfterKept: attempts of a job that end after its kept attempts are full still
// count when trackers are compared.
func TestEvidenceAfterKept(t *testing.T) {
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
		if l.addEvidence(c, j, mapPhase); c.Succeeded != want || c.Failed != 0 {
			t.Errorf("since %d, %d attempts have done well and %d failed, want %d and 0", since, c.Succeeded, c.Failed, want)
		}
	}
}
