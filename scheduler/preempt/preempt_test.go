package preempt_test

import (
	"testing"
	"time"

	"github.com/quernmr/quern/scheduler/pool"
	"github.com/quernmr/quern/scheduler/preempt"
)

// nearsEnd is NearsEnd in seconds of the whole time.
func nearsEnd(a preempt.Attempt) bool {
	whole, age := a.Task.Seconds(), a.Age.Seconds()
	switch {
	case whole == 0:
		return false
	case age <= whole:
		return whole-age <= 1 || whole-age <= whole/10
	}
	return age-whole <= 1 || age-whole <= whole/10
}

// TestLook follows a pool through the times of its timeouts.
func TestLook(t *testing.T) {
	rules := &pool.Preemption{MinTimeout: 10 * time.Second, FairTimeout: 30 * time.Second, Threshold: 0.5}
	at := func(running int) []preempt.Standing {
		return []preempt.Standing{
			{Pool: pool.Pool{Name: "a", Preemption: rules}, Running: running, Demand: 20, Min: 4, Fair: 10, Share: 12},
			{Pool: pool.Pool{Name: "b"}, Running: 0, Demand: 20, Min: 4, Fair: 10, Share: 12},
		}
	}
	var w preempt.Watch
	for _, x := range []struct {
		seconds, running int
		uneven           bool
		want             int
		restart          bool
	}{
		{seconds: 0, running: 5, want: 0},
		{seconds: 1, running: 3, want: 0},
		{seconds: 10, running: 3, want: 0},
		{seconds: 11, running: 3, want: 4},                // its minimum since second 1
		{seconds: 29, running: 4, want: 0},                // the minimum, but less than half of its fair share
		{seconds: 30, running: 4, want: 0},                //
		{seconds: 32, running: 4, want: 10},               // half since second 1
		{seconds: 33, running: 4, uneven: true},           // under another scheduler
		{seconds: 34, running: 4, want: 0},                // it begins again
		{seconds: 64, running: 4, want: 10},               //
		{seconds: 65, running: 2, want: 10},               //
		{seconds: 75, running: 2, restart: true},          // both
		{seconds: 84, running: 2, want: 0},                //
		{seconds: 85, running: 2, want: 4},                //
		{seconds: 86, running: 5, want: 0},                // exactly half
		{seconds: 200, running: 4, want: 0},               //
		{seconds: 229, running: 4, want: 0},               //
		{seconds: 230, running: 4, want: 10},              //
		{seconds: 231, running: 0, want: 10},              //
		{seconds: 240, running: 0, want: 10},              //
		{seconds: 241, running: 20, want: 0},              //
		{seconds: 242, running: 0, want: 0},               //
		{seconds: 252, running: 0, want: 4},               //
		{seconds: 272, running: 0, want: 10},              //
		{seconds: 273, running: 0, uneven: true, want: 4}, //
	} {
		if x.restart {
			w.Restart("a")
		}
		got := w.Look(at(x.running), !x.uneven, time.Duration(x.seconds)*time.Second)
		if got[0] != x.want || got[1] != 0 {
			t.Fatalf("second %d: %v, not %d", x.seconds, got, x.want)
		}
	}
}
