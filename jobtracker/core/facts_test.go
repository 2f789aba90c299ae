package core

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/quernmr/quern/wire"
)

// logOf builds Facts by applying facts, encoded and decoded again.
type logOf struct {
	t     testing.TB
	facts *Facts
	index uint64
}

func (l *logOf) add(x fact) bool {
	l.t.Helper()
	y, err := decodeFact(encodeFact(x))
	if err != nil || y.key() != x.key() {
		l.t.Fatalf("%s comes back as %v, %v", x.key(), y, err)
	}
	l.index++
	return l.facts.apply(l.index, 1, y)
}

// begin is a cluster with one running job of three maps and two reduces.
func begin(t testing.TB) *logOf {
	l := &logOf{t: t, facts: newFacts(keptJobs)}
	for _, x := range []fact{
		&bootstrapped{Start: 1_700_000_000_000}, &tookOffice{Leader: "a"},
		&trackerRegistered{Tracker: trackerFacts{Name: "t1", Process: 4, MapSlots: 1}},
		&submitted{Submission: wire.Submission{Key: "k", Staging: "mem://s/k", Plan: wire.Plan{Jobs: []wire.JobPlan{{Reduces: 2}}}}},
		&splitsWritten{Job: 1, Maps: 3}, &digestsKnown{Job: 1, Hash: 8}, &granted{Job: 1, Task: 1, Attempt: 1000},
	} {
		if !l.add(x) {
			t.Fatalf("%s does not fit", x.key())
		}
	}
	return l
}

// Facts that do not fit any more change nothing.
func TestFactsThatDoNotFit(t *testing.T) {
	l := begin(t)
	for _, x := range []fact{
		&bootstrapped{Start: 5},
		&trackerRegistered{Tracker: trackerFacts{Name: "t1", Process: 4}},
		&trackerLost{Tracker: "t1", Incarnation: 9},
		&submitted{Submission: wire.Submission{Key: "k", Staging: "mem://s/k", Plan: wire.Plan{Jobs: make([]wire.JobPlan, 2)}}},
		&submitted{Submission: wire.Submission{Key: "no jobs", Staging: "mem://s/k"}},
		&splitsWritten{Job: 1, Maps: 9},
		&digestsKnown{Job: 1, Hash: 9}, // a grant is out
		&granted{Job: 1, Task: 1, Attempt: 1001},
		&granted{Job: 1, Task: 2, Attempt: 1000}, // there are two reduces
		&granted{Job: 2, Task: 0, Attempt: 1000},
		&revoked{Job: 1, Task: 1, Attempt: 1001},
		&committed{Job: 1, Task: 0, Attempt: 1000},
		&committing{Job: 1},
		&ended{Job: 1, Outcome: wire.Succeeded},
		&ended{Job: 1, Outcome: wire.Failed},
		&swept{Key: "k"},
		&excluded{Tracker: "t1", Incarnation: 9, Reason: "of an earlier one"},
		&readmitted{Tracker: "t1", Incarnation: 1}, // it is not excluded
	} {
		before, _ := l.facts.encode()
		fitted := l.add(x)
		l.facts.index-- // the index alone moves on
		if after, _ := l.facts.encode(); fitted || !slices.Equal(before, after) {
			t.Errorf("%s fitted: %v", x.key(), fitted)
		}
		l.index--
	}
}

// What a task that commits costs in the log.
func TestLogBytes(t *testing.T) {
	n := len(encodeFact(&granted{Job: 9999, Task: 99_999, Attempt: 99_999})) +
		len(encodeFact(&committed{Job: 9999, Task: 99_999, Attempt: 99_999}))
	if n > 60 {
		t.Errorf("a committed task costs %d bytes of log", n)
	}
}

// Of ended jobs the last are kept, by whole submissions and not before their
// staging directory is gone.
func TestForget(t *testing.T) {
	l := &logOf{t: t, facts: newFacts(3)}
	l.add(&bootstrapped{Start: 1})
	end := func(n int) {
		l.add(&stopped{Job: n, Outcome: wire.Killed})
		l.add(&ended{Job: n, Outcome: wire.Killed})
	}
	jobs := func() []int { return slices.Sorted(maps.Keys(l.facts.jobs)) }
	for i := range 4 {
		l.add(&submitted{Submission: wire.Submission{Key: fmt.Sprint(i), Staging: "mem://s", Plan: wire.Plan{Jobs: make([]wire.JobPlan, 2)}}})
	}
	for n := 1; n <= 7; n++ {
		end(n)
	}
	if want := []int{1, 2, 3, 4, 5, 6, 7, 8}; !slices.Equal(jobs(), want) {
		t.Errorf("with nothing swept: %v", jobs())
	}
	l.add(&swept{Key: "1"})
	l.add(&swept{Key: "0"})
	if want := []int{5, 6, 7, 8}; !slices.Equal(jobs(), want) || l.facts.submissions["0"] != nil {
		t.Errorf("with two swept: %v", jobs())
	}
	l.add(&swept{Key: "2"})
	if want := []int{5, 6, 7, 8}; !slices.Equal(jobs(), want) {
		t.Errorf("with three ended: %v", jobs())
	}
}

func FuzzEntry(f *testing.F) {
	l := begin(f)
	for _, x := range []fact{
		&bootstrapped{}, &tookOffice{}, &trackerRegistered{}, &trackerLost{}, &submitted{}, &splitsWritten{}, &digestsKnown{},
		&granted{Job: 1}, &revoked{Job: 1, Task: 1, Attempt: 1000}, &committed{Job: 1, Task: 1, Attempt: 1000},
		&stopped{Job: 1, Outcome: wire.Failed}, &committing{Job: 1}, &ended{Job: 1}, &swept{Key: "k"},
		&excluded{Tracker: "t1", Incarnation: 1, Reason: "bad"}, &readmitted{Tracker: "t1", Incarnation: 1},
		&drain{N: 1, Tracker: "t1"}, &rested{N: 1, Tracker: "t1", Steps: 2}, &drained{N: 1, Tracker: "t1", Incarnation: 1},
		&submitted{Secret: []byte("s"), Submission: wire.Submission{Key: "s", Owner: "ann", Staging: "mem://s/s", Plan: wire.Plan{Jobs: make([]wire.JobPlan, 1)}}},
	} {
		f.Add(encodeFact(x))
	}
	base, err := l.facts.encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		x, err := decodeFact(data)
		if err != nil {
			return
		}
		facts, err := decodeFacts(base, keptJobs)
		if err != nil {
			t.Fatal(err)
		}
		facts.apply(facts.index+1, 1, x)
		first, err := facts.encode()
		if err != nil {
			t.Fatal(err)
		}
		again, err := decodeFacts(first, keptJobs)
		if err != nil {
			t.Fatal(err)
		}
		if second, _ := again.encode(); !slices.Equal(first, second) {
			t.Errorf("facts differ after restore: %q", x.key())
		}
	})
}

func FuzzSnapshot(f *testing.F) {
	data, err := begin(f).facts.encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		if facts, err := decodeFacts(data, keptJobs); err == nil {
			if _, err := facts.encode(); err != nil {
				t.Error(err)
			}
		}
	})
}

// An entry of a build that also wrote the digests to a file still counts.
func TestDigestsOfOlderLogs(t *testing.T) {
	data := append([]byte{factVersion, 7}, "\x82\xa1j\x01\xa1h\x09"...)
	x, err := decodeFact(data)
	if err != nil || x.key() != "digests-known 1 9" {
		t.Fatalf("it is %v, %v", x, err)
	}
	l := begin(t)
	l.add(&revoked{Job: 1, Task: 1, Attempt: 1000})
	l.index++
	if j := l.facts.jobs[1]; !l.facts.apply(l.index, 1, x) || j.digestsHash != 9 {
		t.Errorf("the job's digests are %x", j.digestsHash)
	}
	if got := encodeFact(x); !slices.Equal(got, data) {
		t.Errorf("it is written as %q", got)
	}
}
