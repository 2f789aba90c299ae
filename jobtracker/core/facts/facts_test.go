package facts

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/quernmr/quern/internal/membound"
	"github.com/quernmr/quern/wire"
)

// testLog builds Facts by applying facts, encoded and decoded again.
type testLog struct {
	t     testing.TB
	facts *Facts
	index uint64
}

func (l *testLog) add(x Fact) bool {
	l.t.Helper()
	y, err := Decode(Encode(x))
	if err != nil || y.Name() != x.Name() {
		l.t.Fatalf("%s comes back as %v, %v", x.Name(), y, err)
	}
	l.index++
	return l.facts.Apply(l.index, 1, y)
}

// begin makes a cluster with one running job of three maps and two reduces.
func begin(t testing.TB) *testLog {
	l := &testLog{t: t, facts: New()}
	for _, x := range []Fact{
		&Bootstrapped{Start: 1_700_000_000_000}, &LeaderElected{Leader: "a"},
		&TrackerRegistered{Tracker: Tracker{Name: "t1", Process: 4, MapSlots: 1}},
		&Submitted{Submission: wire.Submission{Key: "k", Staging: "mem://s/k", Plan: wire.Plan{Jobs: []wire.JobPlan{{Reduces: 2}}}}},
		&SplitsWritten{Job: 1, Maps: 3}, &DigestsKnown{Job: 1, Hash: 8}, &Granted{Job: 1, Task: 1, Attempt: 1000},
	} {
		if !l.add(x) {
			t.Fatalf("%s does not fit", x.Name())
		}
	}
	return l
}

// TestFactsThatDoNotApply checks that facts that no longer fit change nothing.
func TestFactsThatDoNotApply(t *testing.T) {
	l := begin(t)
	for _, x := range []Fact{
		&Bootstrapped{Start: 5},
		&TrackerRegistered{Tracker: Tracker{Name: "t1", Process: 4}},
		&TrackerLost{Tracker: "t1", Incarnation: 9},
		&Submitted{Submission: wire.Submission{Key: "k", Staging: "mem://s/k", Plan: wire.Plan{Jobs: make([]wire.JobPlan, 2)}}},
		&Submitted{Submission: wire.Submission{Key: "no jobs", Staging: "mem://s/k"}},
		&SplitsWritten{Job: 1, Maps: 9},
		&DigestsKnown{Job: 1, Hash: 9}, // a reduce has a grant
		&Granted{Job: 1, Task: 1, Attempt: 1001},
		&Granted{Job: 1, Task: 2, Attempt: 1000}, // there are two reduces
		&Granted{Job: 2, Task: 0, Attempt: 1000},
		&Revoked{Job: 1, Task: 1, Attempt: 1001},
		&Committed{Job: 1, Task: 0, Attempt: 1000},
		&GivenUp{Job: 1, Kind: wire.Reduce, Task: 1}, // it has a grant
		&GivenUp{Job: 1, Kind: wire.Reduce, Task: 2},
		&GivenUp{Job: 1, Kind: wire.Reduce, Task: -1},
		&GivenUp{Job: 1, Kind: wire.Map, Task: 0}, // the reduce with the grant has read its output
		&GivenUp{Job: 1, Kind: wire.Setup, Task: 0},
		&GivenUp{Job: 2, Kind: wire.Map, Task: 0},
		&Skipped{Job: 1, Kind: wire.Reduce, Task: 1, From: 2, To: 3}, // it has a grant
		&Skipped{Job: 1, Kind: wire.Reduce, Task: 0, From: 3, To: 3},
		&Skipped{Job: 1, Kind: wire.Reduce, Task: 0, From: -1, To: 3},
		&Skipped{Job: 1, Kind: wire.Reduce, Task: 2, From: 2, To: 3},
		&Skipped{Job: 1, Kind: wire.Map, Task: 0, From: 2, To: 3}, // the reduce with the grant has read its output
		&Skipped{Job: 2, Kind: wire.Map, Task: 0, From: 2, To: 3},
		&Committing{Job: 1},
		&Ended{Job: 1, Outcome: wire.Succeeded},
		&Ended{Job: 1, Outcome: wire.Failed},
		&Swept{Key: "k"},
		&TrackerExcluded{Tracker: "t1", Incarnation: 9, Reason: "of an earlier one"},
		&TrackerReadmitted{Tracker: "t1", Incarnation: 1}, // it is not excluded
		&OperatorExcluded{Exclusion: OperatorExclusion{N: 2, Tracker: "t1"}},
		&OperatorExcluded{Exclusion: OperatorExclusion{N: 1}},
		&OperatorReadmitted{N: 2, Tracker: "t1"},
		&OperatorReadmitted{N: 1, Tracker: "t1", Expired: true}, // no operator excludes it
	} {
		before, _ := l.facts.Snapshot()
		fitted := l.add(x)
		l.facts.index-- // only the index may change
		if after, _ := l.facts.Snapshot(); fitted || !slices.Equal(before, after) {
			t.Errorf("%s fitted: %v", x.Name(), fitted)
		}
		l.index--
	}
}

// TestGivenUp: a task is given up once, gets no grant afterwards, and its job commits without it. The
// first causes are kept, also in snapshots.
func TestGivenUp(t *testing.T) {
	l := begin(t)
	fits := func(want bool, x Fact) {
		t.Helper()
		if got := l.add(x); got != want {
			t.Errorf("%s fits: %v, want %v", x.Name(), got, want)
		}
	}
	fits(true, &Revoked{Job: 1, Task: 1, Attempt: 1000})
	fits(true, &GivenUp{Job: 1, Kind: wire.Map, Task: 2, Cause: "boom"})
	fits(false, &GivenUp{Job: 1, Kind: wire.Map, Task: 2, Cause: "again"})
	fits(false, &GivenUp{Job: 1, Kind: wire.Map, Task: 3})
	fits(true, &GivenUp{Job: 1, Kind: wire.Reduce, Task: 1, Cause: strings.Repeat("x", 2*wire.MaxTrouble)})
	fits(false, &Granted{Job: 1, Task: 1, Attempt: 1001})
	fits(false, &Committing{Job: 1})
	fits(true, &Granted{Job: 1, Task: 0, Attempt: 1000})
	fits(true, &Committed{Job: 1, Task: 0, Attempt: 1000})
	fits(false, &GivenUp{Job: 1, Kind: wire.Reduce, Task: 0})
	data, err := l.facts.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if l.facts, err = Restore(data); err != nil {
		t.Fatal(err)
	}
	j := l.facts.Job(1)
	if !j.GivenUp(wire.Map, 2) || j.GivenUp(wire.Map, 1) || !j.Settled(0) || !j.Settled(1) || j.SettledTasks() != 2 {
		t.Errorf("given up: maps %s, reduces %s; %d settled", j.GivenUpTasks(wire.Map).Ranges(99), j.GivenUpTasks(wire.Reduce).Ranges(99), j.SettledTasks())
	}
	if c := j.GivenUpCauses(); len(c) != 2 || c[0] != (GivenUpCause{wire.Map, 2, "boom"}) || len(c[1].Cause) > wire.MaxTrouble+len("…") {
		t.Errorf("causes %v", c)
	}
	fits(true, &Committing{Job: 1})
}

// TestSkipped: what a task skips only grows, is the same after a snapshot, and is forgotten if the
// input of a reduce changes. It is bounded.
func TestSkipped(t *testing.T) {
	l := begin(t)
	l.add(&Revoked{Job: 1, Task: 1, Attempt: 1000})
	check := func(k wire.Kind, task int, digest uint64, want string) {
		t.Helper()
		n, ranges := l.facts.Job(1).Skips(k, task, digest)
		if got := fmt.Sprint(n, ranges); got != want {
			t.Errorf("%v %d skips %s, want %s", k, task, got, want)
		}
	}
	skip := func(want bool, k wire.Kind, task int, from, to int64, digest uint64) {
		t.Helper()
		if x := (&Skipped{Job: 1, Kind: k, Task: task, From: from, To: to, Digest: digest}); l.add(x) != want {
			t.Errorf("%s fits: %v", x.Name(), !want)
		}
	}
	check(wire.Map, 2, 0, "0 []")
	skip(true, wire.Map, 2, 7, 8, 0)
	skip(false, wire.Map, 2, 7, 8, 0)
	skip(true, wire.Map, 2, 9, 10, 0)
	_, launched := l.facts.Job(1).Skips(wire.Map, 2, 0) // as in a Launch that is not sent yet
	skip(true, wire.Map, 2, 8, 11, 0)                   // covers the last
	if got := fmt.Sprint(launched); got != "[{7 8} {9 10}]" {
		t.Errorf("the ranges of a launched attempt have become %s", got)
	}
	skip(true, wire.Reduce, 1, 4, 5, 70)
	data, err := l.facts.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if l.facts, err = Restore(data); err != nil {
		t.Fatal(err)
	}
	check(wire.Map, 2, 0, "3 [{7 8} {8 11}]")
	check(wire.Reduce, 1, 70, "1 [{4 5}]")
	check(wire.Reduce, 1, 71, "1 []")
	skip(true, wire.Reduce, 1, 6, 7, 71)
	check(wire.Reduce, 1, 71, "2 [{6 7}]")
	check(wire.Reduce, 1, 70, "2 []")
	for n := range int64(maxSkips - 2) {
		skip(true, wire.Reduce, 1, 2*n+10, 2*n+11, 71)
	}
	skip(false, wire.Reduce, 1, 5000, 5001, 71)
	l.add(&Stopped{Job: 1, Outcome: wire.Killed})
	l.add(&Ended{Job: 1, Outcome: wire.Killed})
	check(wire.Map, 2, 0, "0 []")
}

// TestOperatorExclusions checks that an operator's exclusion outlives a tracker's incarnation, and
// that only a readmission by an operator also ends the leader's exclusion.
func TestOperatorExclusions(t *testing.T) {
	l := begin(t)
	add := func(x Fact) {
		t.Helper()
		if !l.add(x) {
			t.Fatalf("%s does not fit", x.Name())
		}
	}
	excluded := func(operator, leader bool) {
		t.Helper()
		data, err := l.facts.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		restored, err := Restore(data)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range []*Facts{l.facts, restored} {
			_, byOperator := f.OperatorExclusion("t1")
			if tracker, _ := f.Tracker("t1"); byOperator != operator || (tracker.Excluded != "") != leader {
				t.Errorf("excluded by an operator: %v, by the leader: %q", byOperator, tracker.Excluded)
			}
		}
	}
	add(&TrackerExcluded{Tracker: "t1", Incarnation: 1, Reason: "failures"})
	add(&OperatorExcluded{Exclusion: OperatorExclusion{N: 1, Tracker: "t1", Until: 5}})
	excluded(true, true)
	add(&OperatorReadmitted{N: 2, Tracker: "t1", Expired: true})
	excluded(false, true)
	add(&OperatorReadmitted{N: 3, Tracker: "t1"})
	excluded(false, false)
	add(&OperatorExcluded{Exclusion: OperatorExclusion{N: 4, Tracker: "t1"}})
	add(&TrackerLost{Tracker: "t1", Incarnation: 1})
	excluded(true, false)
	add(&TrackerRegistered{Tracker: Tracker{Name: "t1", Process: 5}})
	excluded(true, false)
}

// TestLogBytes bounds the log bytes per committed task.
func TestLogBytes(t *testing.T) {
	n := len(Encode(&Granted{Job: 9999, Task: 99_999, Attempt: 99_999})) +
		len(Encode(&Committed{Job: 9999, Task: 99_999, Attempt: 99_999}))
	if n > 60 {
		t.Errorf("a committed task costs %d bytes of log", n)
	}
}

// TestDropEndedJobs checks that Facts drop the oldest ended jobs, by whole submissions and only after
// their staging directory is gone.
func TestDropEndedJobs(t *testing.T) {
	l := &testLog{t: t, facts: New()}
	l.facts.maxEndedJobs = 3
	l.add(&Bootstrapped{Start: 1})
	end := func(n int) {
		l.add(&Stopped{Job: n, Outcome: wire.Killed})
		l.add(&Ended{Job: n, Outcome: wire.Killed})
	}
	jobs := func() []int { return slices.Sorted(maps.Keys(l.facts.jobs)) }
	for i := range 4 {
		l.add(&Submitted{Submission: wire.Submission{Key: fmt.Sprint(i), Staging: "mem://s", Plan: wire.Plan{Jobs: make([]wire.JobPlan, 2)}}})
	}
	for n := 1; n <= 7; n++ {
		end(n)
	}
	if want := []int{1, 2, 3, 4, 5, 6, 7, 8}; !slices.Equal(jobs(), want) {
		t.Errorf("with nothing swept: %v", jobs())
	}
	l.add(&Swept{Key: "1"})
	l.add(&Swept{Key: "0"})
	if want := []int{5, 6, 7, 8}; !slices.Equal(jobs(), want) || l.facts.submissions["0"] != nil {
		t.Errorf("with two swept: %v", jobs())
	}
	l.add(&Swept{Key: "2"})
	if want := []int{5, 6, 7, 8}; !slices.Equal(jobs(), want) {
		t.Errorf("with three ended: %v", jobs())
	}
}

func FuzzEntry(f *testing.F) {
	l := begin(f)
	for _, x := range []Fact{
		&Bootstrapped{}, &LeaderElected{}, &TrackerRegistered{}, &TrackerLost{}, &Submitted{}, &SplitsWritten{}, &DigestsKnown{},
		&Granted{Job: 1}, &Revoked{Job: 1, Task: 1, Attempt: 1000}, &Committed{Job: 1, Task: 1, Attempt: 1000},
		&Stopped{Job: 1, Outcome: wire.Failed}, &Committing{Job: 1}, &Ended{Job: 1}, &Swept{Key: "k"},
		&TrackerExcluded{Tracker: "t1", Incarnation: 1, Reason: "bad"}, &TrackerReadmitted{Tracker: "t1", Incarnation: 1},
		&Drain{N: 1, Tracker: "t1"}, &DrainIdle{N: 1, Tracker: "t1", Steps: 2}, &Drained{N: 1, Tracker: "t1", Incarnation: 1},
		&Submitted{View: "v", Modify: "m", Submission: wire.Submission{Key: "a", Staging: "mem://s/a", Plan: wire.Plan{Jobs: make([]wire.JobPlan, 1)}}},
		&Submitted{Secret: []byte("s"), Submission: wire.Submission{Key: "s", Owner: "ann", Staging: "mem://s/s", Plan: wire.Plan{Jobs: make([]wire.JobPlan, 1)}}},
	} {
		f.Add(Encode(x))
	}
	base, err := l.facts.Snapshot()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var x Fact
		var err error
		membound.Bound{Free: 8 << 20, PerByte: 128}.Check(t, len(data), func() { x, err = Decode(data) })
		if err != nil {
			return
		}
		facts, err := Restore(base)
		if err != nil {
			t.Fatal(err)
		}
		facts.Apply(facts.index+1, 1, x)
		first, err := facts.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		again, err := Restore(first)
		if err != nil {
			t.Fatal(err)
		}
		if second, _ := again.Snapshot(); !slices.Equal(first, second) {
			t.Errorf("facts differ after restore: %q", x.Name())
		}
	})
}

func FuzzSnapshot(f *testing.F) {
	data, err := begin(f).facts.Snapshot()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		var facts *Facts
		var err error
		membound.Bound{Free: 8 << 20, PerByte: 256}.Check(t, len(data), func() { facts, err = Restore(data) })
		if err == nil {
			if _, err := facts.Snapshot(); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestDigestsOfOlderLogs checks that entries of a build that also wrote the digests to a file
// still apply.
func TestDigestsOfOlderLogs(t *testing.T) {
	data := append([]byte{entryVersion, 7}, "\x82\xa1j\x01\xa1h\x09"...)
	x, err := Decode(data)
	if err != nil || x.Name() != "digests-known 1 9" {
		t.Fatalf("decoded: %v, %v", x, err)
	}
	l := begin(t)
	l.add(&Revoked{Job: 1, Task: 1, Attempt: 1000})
	l.index++
	if j := l.facts.jobs[1]; !l.facts.Apply(l.index, 1, x) || j.digestsHash != 9 {
		t.Errorf("the job's digests are %x", j.digestsHash)
	}
	if got := Encode(x); !slices.Equal(got, data) {
		t.Errorf("encoded again: %q", got)
	}
}
