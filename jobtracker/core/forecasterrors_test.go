package core

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quernmr/quern/wire"
)

// TestKeptPredictions: the prediction that is compared was made in the first half of the job's life, at an
// age of at least half of the last age there at which there was one.
func TestKeptPredictions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var k keptPredictions
		var ages []time.Duration
		age := time.Duration(0)
		for _, step := range rapid.SliceOfN(rapid.IntRange(1, 50), 0, 30).Draw(t, "steps") {
			age += time.Duration(step) * time.Second
			ages = append(ages, age)
			k.add(age, 2*age) // so the error tells which one was kept
		}
		life := age + time.Duration(rapid.IntRange(1, 100).Draw(t, "rest"))*time.Second
		early := time.Duration(0) // the last age in the first half
		for _, a := range ages {
			if 2*a <= life {
				early = a
			}
		}
		part, ok := k.errorOf(life)
		if ok != (early > 0) {
			t.Fatalf("ages %v, life %v: there is an error: %v", ages, life, ok)
		}
		if !ok {
			return
		}
		used := life - time.Duration(part*float64(life)) // twice the age
		if used > life+time.Millisecond || 2*used < 2*early-time.Millisecond {
			t.Fatalf("ages %v, life %v: the prediction at %v is compared, the last early one is at %v", ages, life, used/2, early)
		}
	})
}

// TestForecastErrors: jobs with predictable tasks have small errors.
func TestForecastErrors(t *testing.T) {
	p := newPaced(t, 3, wire.Scheduling{Scheduler: "fifo"}, 4, 2, 2)
	p.submit(&pacedJob{name: "a", maps: 100, reduces: 4, taskTime: [2]time.Duration{time.Second, time.Second}, bytes: 100})
	var ask func()
	ask = func() { // a client that watches the jobs
		p.core.Statuses(p.now, Query{})
		p.after(time.Second, ask)
	}
	ask()
	p.run(1)
	p.runUntil(func() bool { return len(p.core.leader.jobs) == 0 })
	d := p.core.Counts().ForecastErrors.Distribution()
	if d.Total() != 1 || d.Counts[0]+d.Counts[1]+d.Counts[2]+d.Counts[3] != 1 {
		t.Errorf("errors %v, want one of at most 25 %%", d.Counts)
	}
}
