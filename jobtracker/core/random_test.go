package core

import (
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quernmr/quern/jobtracker/core/admission"
	"github.com/quernmr/quern/wire"
)

var (
	seeds     = flag.Int("seeds", 300, "number of seeds for TestRandom")
	firstSeed = flag.Uint64("seed", 1, "first seed for TestRandom")
)

// TestRandom plays random clusters with all faults of world, then without faults. Every job must
// end, without leftovers. To repeat a failing seed:
// -run 'TestRandom/seed=N$' -seed N -seeds 1
func TestRandom(t *testing.T) {
	outcomes, seconds := make(map[wire.State]int), 0
	for i := range *seeds {
		seed := *firstSeed + uint64(i)
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			w := newWorld(t, seed)
			w.drainTrackers(seed)
			w.excludeTrackers(seed)
			w.play()
			seconds += w.seconds
			for _, s := range w.submissions {
				for _, id := range s.ids {
					outcomes[w.core.facts.State(w.core.facts.Find(id))]++
				}
			}
		})
	}
	t.Logf("succeeded %d, failed %d, killed %d; %d speculative attempts", outcomes[wire.Succeeded], outcomes[wire.Failed], outcomes[wire.Killed], seconds)
	if *seeds >= 100 && seconds == 0 {
		t.Error("no attempt is speculative")
	}
	if *seeds >= 100 && (outcomes[wire.Succeeded] == 0 || outcomes[wire.Failed] == 0 || outcomes[wire.Killed] == 0) {
		t.Error("one of the outcomes never occurs")
	}
}

const (
	faultTime = 30 * time.Second
	endLimit  = 120 * time.Second // virtual time from the last fault to the end of all jobs
)

func (w *world) play() {
	w.elect()
	for i := range 1 + w.rnd.IntN(4) {
		s := &simSubmission{sub: w.submission(i)}
		w.submissions = append(w.submissions, s)
		for range 1 + w.rnd.IntN(2) {
			w.after(w.randomTime(faultTime/2), func() { w.submit(s) })
		}
		if w.chance(0.2) {
			w.after(w.randomTime(faultTime), func() { w.kill(s) })
		}
		if w.schedulingRand.IntN(2) == 0 {
			at, hold := time.Duration(w.schedulingRand.Int64N(int64(faultTime))), time.Duration(w.schedulingRand.Int64N(int64(faultTime/3)))
			w.after(at, func() { w.suspend(s, hold) })
		}
	}
	w.injectFaults()
	w.run(func() bool { return w.now > faultTime }, faultTime)
	w.now = faultTime
	w.calm = true
	w.note("calm")
	if !w.run(w.allEnded, faultTime+endLimit) {
		w.failUnfinished()
	}
	w.run(func() bool { return false }, w.now+20*time.Second)
	w.checkEnd()
}

func (w *world) submission(i int) *wire.Submission {
	sub := &wire.Submission{Key: fmt.Sprintf("key%d", i), Staging: fmt.Sprintf("mem://s/key%d", i)}
	for k := range 1 + w.rnd.IntN(5)/4 {
		j := wire.JobPlan{Name: fmt.Sprintf("job%d.%d", i, k), Reduces: w.rnd.IntN(4), Properties: map[string]string{
			"sim.maps":            fmt.Sprint(w.rnd.IntN(7)),
			"quern.shuffle.split": fmt.Sprint(w.schedulingRand.IntN(4) > 0),
			"mapreduce.job.reduce.slowstart.completedmaps": fmt.Sprint(float64(w.schedulingRand.IntN(3)) / 2),
			"sim.nondeterministic":                         fmt.Sprint(w.rnd.IntN(10) / 9),
			"mapreduce.map.speculative":                    fmt.Sprint(i%3 > 0),
			"mapreduce.map.maxattempts":                    fmt.Sprint(2 + w.rnd.IntN(4)),
			"mapreduce.reduce.maxattempts":                 fmt.Sprint(2 + w.rnd.IntN(4)),
			"mapreduce.map.failures.maxpercent":            fmt.Sprint(50 * w.badTaskRand.IntN(3)),
			"mapreduce.reduce.failures.maxpercent":         fmt.Sprint(50 * w.badTaskRand.IntN(3)),
		}}
		if k > 0 {
			j.Inputs = []wire.InputPlan{{From: k}}
		}
		sub.Plan.Jobs = append(sub.Plan.Jobs, j)
	}
	return sub
}

// suspend suspends the jobs of a submission, and resumes each some time after the answer.
func (w *world) suspend(s *simSubmission, hold time.Duration) {
	for _, id := range s.ids {
		w.changeSettings(id, true, func() {
			w.after(hold, func() { w.changeSettings(id, false, func() {}) })
		})
	}
}

// changeSettings suspends or resumes a job, and draws its priority and pool.
func (w *world) changeSettings(id wire.JobID, suspended bool, answered func()) {
	priority := wire.VeryLow + wire.Priority(w.schedulingRand.IntN(5))
	c := wire.Change{Suspended: &suspended, Priority: &priority}
	if _, table := w.core.facts.Pools(); len(table.Pools) > 0 {
		c.Pool = &table.Pools[w.schedulingRand.IntN(len(table.Pools))].Name
	}
	w.request(func(token Token) Event { return Change{Token: token, Job: id, Change: c} }, func(r Reply) {
		w.note("change of %s to suspended=%v: %v", showJob(id), suspended, r.Err)
		if errors.Is(r.Err, admission.ErrBadSettings) {
			w.fail("change of %v: %v", id, r.Err)
		}
		answered()
	})
}

func (w *world) kill(s *simSubmission) {
	if len(s.ids) == 0 {
		return
	}
	id := s.ids[w.rnd.IntN(len(s.ids))]
	w.request(func(token Token) Event { return Kill{Token: token, Job: id, Reason: "a client"} }, func(r Reply) {
		w.note("kill %s: %v", showJob(id), r.Err)
		if f := w.core.facts.Find(id); r.Err == nil && !f.Stopping() && (!f.Ended() || f.End().Outcome == wire.Succeeded) {
			w.fail("the kill of %v succeeded, and the job is %v", id, w.core.facts.State(f))
		}
	})
}

// injectFaults injects faults until the world is calm.
func (w *world) injectFaults() {
	w.after(w.randomTime(3*time.Second), func() {
		if w.calm {
			return
		}
		t := w.trackers[w.rnd.IntN(len(w.trackers))]
		switch n := w.rnd.IntN(10); {
		case n < 1:
			t.crash()
		case n < 2:
			t.restart()
		case n < 5:
			t.disconnect()
		case n < 6:
			w.elect()
		case n < 8:
			for _, a := range t.sorted() {
				if w.chance(0.3) {
					delete(t.outputs, a.report.Attempt)
				}
			}
		case n < 9:
			t.failDisks()
		case w.schedulingRand.IntN(2) == 0:
			w.step(PoolsRead{Table: w.worldPools()})
		default:
			seed := w.schedulingRand.Uint64()
			old := w.schedulingRand
			w.drawScheduling(seed)
			s := w.scheduling
			w.schedulingRand = old
			w.request(func(token Token) Event { return Schedule{Token: token, Scheduling: s} }, func(Reply) {})
		}
		w.injectFaults()
	})
}

func (w *world) allEnded() bool {
	for _, s := range w.submissions {
		if s.ids == nil {
			return false
		}
		for _, id := range s.ids {
			if !w.core.facts.State(w.core.facts.Find(id)).Ended() {
				return false
			}
		}
	}
	return true
}

func (w *world) failUnfinished() {
	for _, s := range w.submissions {
		for _, id := range s.ids {
			st, _ := w.core.Status(id)
			if !st.State.Ended() {
				if j := w.core.leader.job(id); j != nil {
					w.note("%+v", j.assign)
				}
				w.note("%v is %v, maps %+v reduces %+v, waits %s", id, st.State, st.Maps, st.Reduces, st.WaitReason)
			}
		}
	}
	w.fail("some jobs have not ended %v after the last fault", endLimit)
}

// checkEnd checks that a finished world has no leftovers.
func (w *world) checkEnd() {
	for _, t := range w.trackers {
		if len(t.attempts) > 0 || len(t.homes) > 0 {
			w.fail("%s still has %d attempts and %d homes", t.name, len(t.attempts), len(t.homes))
		}
	}
	for _, s := range w.submissions {
		if !w.core.facts.Submission(s.sub.Key).Swept() {
			w.fail("the staging directory of %s is not removed", s.sub.Key)
		}
		for _, id := range s.ids {
			w.checkOutput(id)
			w.checkHistory(id)
		}
	}
	if len(w.answers) > 0 {
		w.fail("%d requests have no answer", len(w.answers))
	}
	want, err := w.core.Snapshot()
	if err != nil {
		w.fail("snapshot: %v", err)
	}
	follower := New(Config{})
	for _, e := range w.log {
		follower.Step(0, e)
	}
	if got, err := follower.Snapshot(); err != nil || !slices.Equal(got, want) {
		w.fail("facts differ after replay (%v)", err)
	}
}

// checkHistory checks that an ended job has a history, or a trouble that says why not.
func (w *world) checkHistory(id wire.JobID) {
	f := w.core.facts.Find(id)
	outcome, ok := w.outcomes[id]
	switch {
	case ok && outcome != f.End().Outcome:
		w.fail("%v is %v, and %v in its history", id, f.End().Outcome, outcome)
	case !ok && !strings.Contains(strings.Join(f.End().Troubles, "\n"), "history"):
		w.fail("%v has neither a history nor a trouble about it", id)
	}
}

// checkOutput checks that the reduces of a succeeded job have read the same output of every map, and
// nothing of the maps that were given up. Reduces that were given up have not committed.
func (w *world) checkOutput(id wire.JobID) {
	f, job := w.core.facts.Find(id), w.jobs[id]
	if f.End().Outcome != wire.Succeeded || job.reduces == 0 {
		return
	}
	want := uint64(0)
	for m := range job.maps {
		if f.GivenUp(wire.Map, m) {
			want += wire.GivenUpDigest
		} else {
			want += uint64(id.N*1000 + m + 1)
		}
	}
	var first *committedOutput
	for p := range job.reduces {
		out := w.committed[wire.TaskID{Job: id, Kind: wire.Reduce, N: p}]
		if f.GivenUp(wire.Reduce, p) {
			if out != nil {
				w.fail("partition %d of %v was given up, and has committed", p, id)
			}
			continue
		}
		if first == nil {
			first = out
		}
		if out.content != first.content || !job.nondeterministic && out.content != want {
			w.fail("reduces of %v have read different records: %d and %d, want %d", id, out.content, first.content, want)
		}
	}
}

func sortedNumbers[V any](m map[int]V) []int {
	var ns []int
	for n := range m {
		ns = append(ns, n)
	}
	slices.Sort(ns)
	return ns
}
