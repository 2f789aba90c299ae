package health

import (
	"slices"
	"testing"
	"time"

	"github.com/quernmr/quern/wire"
)

func TestStandsOut(t *testing.T) {
	for _, c := range []struct {
		fit, well, failed int
		want              bool
	}{
		{fit: 1, well: 0, want: false},
		{fit: 1, well: 1, want: true}, // as many as there are trackers to do well
		{fit: 2, well: 1, want: false},
		{fit: 2, well: 2, want: true},
		{fit: 9, well: 2, want: false},
		{fit: 9, well: 3, want: true}, // and three at most
		{fit: 9, well: 9, failed: 1, want: false},
		{fit: 9, well: 10, failed: 1, want: true},
		{fit: 9, well: 19, failed: 2, want: false},
		{fit: 9, well: 20, failed: 2, want: true},
	} {
		x := &Comparison{streak: new(streak), usable: c.fit, Succeeded: c.well, Failed: c.failed}
		if why, does := x.StandsOut(); does != c.want || (why != "") != c.want {
			t.Errorf("beside %d trackers, %d attempts that did well and %d that failed: %v %q", c.fit, c.well, c.failed, does, why)
		}
	}
}

// TestOpen: of the trackers that are compared with one, out are given no work.
func TestMayExclude(t *testing.T) {
	for _, c := range []struct {
		all, out, fit, suspects int
		want                    bool
	}{
		{all: 0, want: false},
		{all: 1, fit: 1, want: true}, // one of two may go
		{all: 1, fit: 0, want: false},
		{all: 2, out: 1, fit: 1, want: false},
		{all: 3, out: 1, fit: 2, want: true}, // two of four may
		{all: 3, out: 1, fit: 1, want: true},
		{all: 3, out: 1, fit: 0, want: false},
		{all: 4, out: 2, fit: 2, want: false},
		{all: 3, fit: 3, suspects: 1, want: false},
		{all: 6, fit: 6, suspects: 1, want: false},
		{all: 7, fit: 7, suspects: 1, want: true}, // two suspects of eight
		{all: 7, fit: 6, suspects: 1, want: false},
		{all: 7, fit: 7, suspects: 2, want: false},
		{all: 11, fit: 11, suspects: 2, want: true},
	} {
		for phase := range 2 {
			x := &Comparison{phase: phase}
			others := Others{all: c.all, idle: c.out, usable: c.fit}
			others.suspects[phase], others.suspects[1-phase] = c.suspects, 99
			if got := x.MayExclude(others); got != c.want {
				t.Errorf("%d others, %d left out, %d fit, %d suspect: open is %v", c.all, c.out, c.fit, c.suspects, got)
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
	for range 100 { // more often than a time has bits
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
			t.Errorf("%v of an exclusion are left until %v milliseconds from now, want %v", got, until-now, want)
		}
	}
}

// TestStreakOfEndedJobs: a tracker that may not be excluded keeps no ended jobs in mind.
func TestStreakOfEndedJobs(t *testing.T) {
	r := New(false)
	var c *Comparison
	for n := range 4 {
		c = r.Failed(0, Failure{Task: wire.TaskID{Job: wire.JobID{N: n}, Kind: wire.Map}}, 1, time.Minute)
	}
	if c == nil {
		t.Fatal("four failures make no case")
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
		t.Errorf("its streak is of jobs %v, want 1 and 3", jobs)
	}
}
