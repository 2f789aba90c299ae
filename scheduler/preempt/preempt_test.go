package preempt_test

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quernmr/quern/scheduler/pool"
	"github.com/quernmr/quern/scheduler/preempt"
	"github.com/quernmr/quern/wire"
)

func drawPools(t *rapid.T) []preempt.Pool {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) preempt.Pool {
		p := preempt.Pool{Running: rapid.IntRange(0, 12).Draw(t, "running"), Keep: rapid.IntRange(0, 8).Draw(t, "keep")}
		if rapid.Bool().Draw(t, "starves") {
			p.Target = rapid.IntRange(0, 8).Draw(t, "target")
		}
		p.Spared = rapid.IntRange(0, 5).Draw(t, "spared") == 0
		return p
	}), 1, 5).Draw(t, "pools")
}

func drawAttempts(t *rapid.T, pools []preempt.Pool) []preempt.Attempt {
	var all []preempt.Attempt
	for i, p := range pools {
		for n := range rapid.IntRange(0, p.Running).Draw(t, "attempts") {
			all = append(all, preempt.Attempt{
				ID:   wire.AttemptID{Task: wire.TaskID{Job: wire.JobID{N: i + 1}, Kind: wire.Map, N: n}},
				Pool: i, Age: time.Duration(rapid.IntRange(0, 20).Draw(t, "age")) * time.Second,
				Task: time.Duration(rapid.IntRange(0, 20).Draw(t, "task")) * time.Second,
			})
		}
	}
	return rapid.Permutation(all).Draw(t, "order")
}

// TestChooseLikeSimple compares Choose with a simple implementation, and with the rules P1 to P4.
func TestChooseLikeSimple(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pools := drawPools(t)
		attempts := drawAttempts(t, pools)
		free := rapid.IntRange(0, 4).Draw(t, "free")
		got := preempt.Choose(pools, attempts, free)
		if want := simple(pools, attempts, free); !slices.Equal(got, want) {
			t.Fatalf("%v, not %v", got, want)
		}
		missing, left := 0, make([]int, len(pools))
		for i, p := range pools {
			left[i] = p.Running
			missing += max(0, p.Target-p.Running)
		}
		if len(got) > max(0, missing-free) {
			t.Fatalf("%d attempts for %d slots beside %d free ones", len(got), missing, free)
		}
		for _, i := range got {
			p := attempts[i].Pool
			left[p]--
			switch {
			case left[p] < pools[p].Keep:
				t.Fatalf("pool %d falls to %d slots: %+v", p, left[p], pools[p])
			case pools[p].Spared || pools[p].Target > 0:
				t.Fatalf("pool %d loses an attempt: %+v", p, pools[p])
			case nearsEnd(attempts[i]):
				t.Fatalf("%+v nears its end", attempts[i])
			}
			for k, other := range attempts {
				if other.Pool == p && other.Age < attempts[i].Age && !nearsEnd(other) && !slices.Contains(got, k) {
					t.Fatalf("%+v is killed, and %+v is not", attempts[i], other)
				}
			}
		}
	})
}

// simple takes one attempt after the other: the youngest that may go.
func simple(pools []preempt.Pool, attempts []preempt.Attempt, free int) []int {
	var chosen []int
	left := slices.Clone(pools)
	missing := func() int {
		n := -free - len(chosen)
		for _, p := range pools {
			if p.Target > p.Running {
				n += p.Target - p.Running
			}
		}
		return n
	}
	for missing() > 0 {
		best := -1
		for i, a := range attempts {
			p := left[a.Pool]
			if p.Running <= p.Keep || p.Spared || p.Target > 0 || nearsEnd(a) || slices.Contains(chosen, i) {
				continue
			}
			if best < 0 || a.Age < attempts[best].Age || a.Age == attempts[best].Age && a.ID.Compare(attempts[best].ID) < 0 {
				best = i
			}
		}
		if best < 0 {
			break
		}
		left[attempts[best].Pool].Running--
		chosen = append(chosen, best)
	}
	return chosen
}

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
