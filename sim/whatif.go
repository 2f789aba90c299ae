package sim

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/scheduler/menu"
	"github.com/quernmr/quern/scheduler/whatif"
	"github.com/quernmr/quern/wire"
)

// Switched is a mix in which the scheduler changes once, while many jobs wait: it compares what was predicted
// then with what happens. All jobs are submitted before.
type Switched struct {
	Seed       uint64
	Jobs       int
	Schedulers []string // nil: all
}

// switchEvery is the mean time between two submissions: much shorter than the jobs take.
const switchEvery = 6 * time.Second

// UnderScheduler is what was predicted for a scheduler when the mix would change to it, and what has happened. Both are
// about the jobs that had not ended then.
type UnderScheduler struct {
	Scheduler       string
	Predicted, True whatif.Summary
}

// Run plays the mix once for each scheduler.
func (m Switched) Run() (all []UnderScheduler, err error) {
	names := m.Schedulers
	if names == nil {
		names = menu.Names()
	}
	for _, name := range names {
		r := &Result{Options: Options{Seed: m.Seed}}
		x := m.play(r, name)
		if r.Violation != "" {
			return nil, fmt.Errorf("mix of seed %d that changes to %s: %s", m.Seed, name, r.Violation)
		}
		all = append(all, x)
	}
	return all, nil
}

// Agreement says how often predictions compare schedulers as the runs do.
type Agreement struct {
	Pairs  int // of schedulers, with values that differ by more than differs in the runs
	Agreed int // of them, predicted in the same order
	Best   int // mixes in which the scheduler with the best prediction is the best one, or differs by at most differs from it
	Mixes  int
	errors []float64 // of predicted values, as a part of the true ones
}

// differs is a difference of values that matters, as a part of the larger one.
const differs = 0.05

// Error is the mean error of the predicted values, as a part of the true ones.
func (a *Agreement) Error() float64 {
	sum := 0.0
	for _, e := range a.errors {
		sum += e / float64(len(a.errors))
	}
	return sum
}

// Add adds a mix, with a value of its summaries that is better if it is smaller.
func (a *Agreement) Add(all []UnderScheduler, value func(*whatif.Summary) float64) {
	a.Mixes++
	predicted, best := 0, 0
	for i := range all {
		x, truth := value(&all[i].Predicted), value(&all[i].True)
		if truth > 0 {
			a.errors = append(a.errors, math.Abs(x-truth)/truth)
		}
		if x < value(&all[predicted].Predicted) {
			predicted = i
		}
		if truth < value(&all[best].True) {
			best = i
		}
		for k := range i {
			other := value(&all[k].True)
			if math.Abs(truth-other) <= differs*max(truth, other) {
				continue
			}
			a.Pairs++
			if before := value(&all[k].Predicted); (x < before) == (truth < other) && x != before {
				a.Agreed++
			}
		}
	}
	if value(&all[predicted].True) <= value(&all[best].True)/(1-differs) {
		a.Best++
	}
}

func (m Switched) play(r *Result, to string) (x UnderScheduler) {
	x.Scheduler = to
	w := mixWorld(r, "fair")
	defer w.finish(r)
	rnd, at := rand.New(rand.NewPCG(m.Seed, 25)), fleetStart
	var names []shapedJob
	for n := range m.Jobs / 2 {
		names = append(names, drawName(m.Seed, rnd, n))
	}
	for i := range m.Jobs {
		w.addMixJob(names[rnd.IntN(len(names))].again(rnd), i, at)
		s := &w.clients[i].sub.Settings
		s.Weight, s.Deadline = 1+float64(rnd.IntN(4)), time.Duration(30+rnd.IntN(300))*time.Second
		at += time.Duration(rnd.ExpFloat64() * float64(switchEvery))
	}
	w.run(func() bool { return false }, at+5*time.Second) // all setups have ended
	open := w.openJobs()
	w.changeTo(to)
	policy, err := menu.Policy(to)
	w.must(err)
	p, err := whatif.Predict(context.Background(), open.State, menu.NeedsOf(to), whatif.Plans(policy))
	w.must(err)
	x.Predicted = open.State.Summarize(p.Ends)
	for end := w.now + time.Hour; w.now < end && !w.allEnded(); {
		w.run(func() bool { return false }, w.now+time.Second)
	}
	w.checkFleet()
	ends := make([]float64, len(open.State.Jobs))
	for i, j := range open.State.Jobs {
		s, _ := w.status(j.ID)
		ends[i] = (j.Arrived + s.Elapsed - open.State.Now).Seconds()
	}
	x.True = open.State.Summarize(ends)
	return x
}

// openJobs asks the leader for the jobs that have not ended.
func (w *world) openJobs() *core.OpenJobs {
	var open *core.OpenJobs
	n := w.raft.leader
	n.do(func() {
		n.request(func(t core.Token) core.Event { return core.TakeOpenJobs{Token: t} }, func(r core.Reply) {
			w.must(r.Err)
			open = r.OpenJobs.Get()
		})
	})
	w.run(func() bool { return open != nil }, w.now+time.Minute)
	return open
}

// changeTo changes the scheduler.
func (w *world) changeTo(name string) {
	answered := false
	(&client{w: w}).request(func(t core.Token) core.Event {
		return core.Schedule{Token: t, Scheduling: wire.Scheduling{Scheduler: name}}
	}, func(r core.Reply) {
		w.must(r.Err)
		answered = true
	})
	w.run(func() bool { return answered }, w.now+time.Minute)
}
