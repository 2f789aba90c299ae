package health

import (
	"slices"
	"testing"
	"time"

	"github.com/quernmr/quern/wire"
)

func TestStandsOut(t *testing.T) {
	for _, c := range []struct {
		usable, succeeded, failed int
		want                      bool
	}{
		{usable: 1, succeeded: 0, want: false},
		{usable: 1, succeeded: 1, want: true}, // as many as there are other trackers
		{usable: 2, succeeded: 1, want: false},
		{usable: 2, succeeded: 2, want: true},
		{usable: 9, succeeded: 2, want: false},
		{usable: 9, succeeded: 3, want: true}, // three suffice
		{usable: 9, succeeded: 9, failed: 1, want: false},
		{usable: 9, succeeded: 10, failed: 1, want: true},
		{usable: 9, succeeded: 19, failed: 2, want: false},
		{usable: 9, succeeded: 20, failed: 2, want: true},
	} {
		x := &Comparison{streak: new(streak), usable: c.usable, Succeeded: c.succeeded, Failed: c.failed}
		if reason, exclude := x.StandsOut(); exclude != c.want || (reason != "") != c.want {
			t.Errorf("with %d other trackers, %d succeeded attempts and %d failed ones: %v %q", c.usable, c.succeeded, c.failed, exclude, reason)
		}
	}
}

// TestMayExclude checks how many trackers must remain, and how many may be suspect.
func TestMayExclude(t *testing.T) {
	for _, c := range []struct {
		all, idle, usable, suspects int
		want                        bool
	}{
		{all: 0, want: false},
		{all: 1, usable: 1, want: true}, // one of two may be excluded
		{all: 1, usable: 0, want: false},
		{all: 2, idle: 1, usable: 1, want: false},
		{all: 3, idle: 1, usable: 2, want: true}, // two of four may
		{all: 3, idle: 1, usable: 1, want: true},
		{all: 3, idle: 1, usable: 0, want: false},
		{all: 4, idle: 2, usable: 2, want: false},
		{all: 3, usable: 3, suspects: 1, want: false},
		{all: 6, usable: 6, suspects: 1, want: false},
		{all: 7, usable: 7, suspects: 1, want: true}, // two suspects of eight
		{all: 7, usable: 6, suspects: 1, want: false},
		{all: 7, usable: 7, suspects: 2, want: false},
		{all: 11, usable: 11, suspects: 2, want: true},
	} {
		for phase := range 2 {
			x := &Comparison{phase: phase}
			others := Others{all: c.all, idle: c.idle, usable: c.usable}
			others.suspects[phase], others.suspects[1-phase] = c.suspects, 99
			if got := x.MayExclude(others); got != c.want {
				t.Errorf("%d others, %d without work, %d usable, %d suspect: MayExclude is %v", c.all, c.idle, c.usable, c.suspects, got)
			}
		}
	}
}

func TestMuchWorse(t *testing.T) {
	for _, c := range []struct {
		blame    int
		excluded bool
		others   Others
		want     bool
	}{
		{blame: 3, others: Others{all: 1, usable: 1}, want: true},
		{blame: 3, others: Others{all: 1, usable: 1}, excluded: true, want: false},
		{blame: 3, others: Others{all: 1, usable: 0}, want: false},
		{blame: 3, others: Others{all: 2, idle: 1, usable: 1}, want: false},
		{blame: 3, others: Others{all: 4, usable: 4, blame: 5}, want: true}, // 1.25 each
		{blame: 3, others: Others{all: 4, usable: 4, blame: 6}, want: false},
		{blame: 4, others: Others{all: 4, usable: 4, blame: 6}, want: true},
	} {
		r := New(c.excluded)
		for range c.blame {
			r.Blame(0, time.Minute)
		}
		if why, worse := r.MuchWorse(c.others, wire.TaskID{}, time.Minute); worse != c.want || (why != "") != c.want {
			t.Errorf("%d failures count, excluded: %v, others %+v: %v %q", c.blame, c.excluded, c.others, worse, why)
		}
	}
}

func TestLength(t *testing.T) {
	r := New(false)
	for i, minutes := range []time.Duration{10, 20, 40, 80, 80, 80, 80, 80, 80, 80, 80} {
		if r.Length() != minutes*time.Minute {
			t.Errorf("after %d exclusions the next one lasts %v, want %v minutes", i, r.Length(), int(minutes))
		}
		r.ExclusionChanged(true, time.Hour)
		r.ExclusionChanged(false, 2*time.Hour)
	}
	for range 100 { // more doublings than a time.Duration has bits
		r.ExclusionChanged(true, 3*time.Hour)
	}
	if r.Length() != 80*time.Minute {
		t.Errorf("after 111 exclusions the next one lasts %v", r.Length())
	}
}

func TestRemaining(t *testing.T) {
	const now = 1_700_000_000_000
	for until, want := range map[int64]time.Duration{
		now + 5: 5 * time.Millisecond, now: 0, now - 5: -5 * time.Millisecond,
		now + 80*60_000: 80 * time.Minute, now + 81*60_000: 80 * time.Minute, // a clock has jumped back
	} {
		if got := Remaining(until, now); got != want {
			t.Errorf("%v of an exclusion remain until %v milliseconds from now, want %v", got, until-now, want)
		}
	}
}

// TestStreakOfEndedJobs: Comparison.Jobs removes ended jobs from the streak, even of a tracker
// that may not be excluded.
func TestStreakOfEndedJobs(t *testing.T) {
	r := New(false)
	var c *Comparison
	for n := range 4 {
		c = r.Failed(0, Failure{Task: wire.TaskID{Job: wire.JobID{N: n}, Kind: wire.Map}}, 1, time.Minute)
	}
	if c == nil {
		t.Fatal("four failures make no Comparison")
	}
	c.Jobs(func(n int) bool { return n%2 == 1 })
	if c.MayExclude(Others{}) {
		t.Error("the only tracker may be excluded")
	}
	var jobs []int
	for n := range c.Jobs(func(int) bool { return true }) {
		jobs = append(jobs, n)
	}
	if slices.Sort(jobs); !slices.Equal(jobs, []int{1, 3}) {
		t.Errorf("its streak has jobs %v, want 1 and 3", jobs)
	}
}
