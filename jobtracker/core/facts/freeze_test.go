package facts

import (
	"bytes"
	"fmt"
	"runtime"
	"testing"

	"pgregory.net/rapid"

	"github.com/quernmr/quern/scheduler/pool"
	"github.com/quernmr/quern/wire"
)

// anyFact draws a fact about a few jobs, tasks and trackers, so that many facts fit.
func anyFact(t *rapid.T, f *Facts) Fact {
	draw := func(what string, n int) int { return rapid.IntRange(0, n).Draw(t, what) }
	job, task, attempt, key := 1+draw("job", 3), draw("task", 2), draw("attempt", 1), fmt.Sprint("k", draw("key", 2))
	tracker := fmt.Sprint("t", draw("tracker", 2))
	incarnation := uint64(draw("incarnation", 3))
	if t := f.trackers[tracker]; t != nil {
		incarnation = t.Incarnation
	}
	outcome := rapid.SampledFrom([]wire.State{wire.Succeeded, wire.Failed, wire.Killed}).Draw(t, "outcome")
	kind := rapid.SampledFrom([]wire.Kind{wire.Map, wire.Reduce}).Draw(t, "kind")
	sub := f.submissions[key]
	if sub == nil {
		sub = &Submission{submissionState: new(submissionState)}
	}
	return rapid.SampledFrom([]Fact{
		&LeaderElected{Leader: tracker},
		&TrackerRegistered{Tracker: Tracker{Name: tracker, Process: uint64(task)}},
		&TrackerLost{Tracker: tracker, Incarnation: incarnation},
		&TrackerExcluded{Tracker: tracker, Incarnation: incarnation, Until: 7, Reason: "bad"},
		&TrackerReadmitted{Tracker: tracker, Incarnation: incarnation},
		&OperatorExcluded{Exclusion: OperatorExclusion{N: f.operatorChanges + 1, Tracker: tracker}},
		&OperatorReadmitted{N: f.operatorChanges + 1, Tracker: tracker},
		&Drain{N: f.drains + 1, Tracker: tracker, Undo: task == 0},
		&DrainIdle{N: f.drains, Tracker: tracker, Steps: 1 + attempt},
		&Drained{N: f.drains, Tracker: tracker, Incarnation: incarnation},
		&SchedulingChanged{N: f.scheduling.N + 1},
		&PoolsChanged{N: f.pools.N + 1, Table: pool.Table{Pools: []pool.Pool{{Name: "p"}}}},
		&Submitted{Submission: wire.Submission{Key: key, Staging: "s", Plan: wire.Plan{Jobs: make([]wire.JobPlan, 1+attempt)}}},
		&Submitted{Submission: wire.Submission{Key: key, Staging: "s", Plan: wire.Plan{Jobs: []wire.JobPlan{{Reduces: 2}}}}},
		&SettingsChanged{Key: key, N: sub.changes + 1, Suspended: sub.changes%2 == 0},
		&SplitsWritten{Job: job, Maps: 3}, &SplitsWritten{Job: job + 1, Maps: 3},
		&DigestsKnown{Job: job, Hash: uint64(task)}, &DigestsKnown{Job: job + 1, Hash: 9},
		&Granted{Job: job, Task: task, Attempt: attempt}, &Granted{Job: job, Task: 0, Attempt: attempt},
		&Revoked{Job: job, Task: task, Attempt: attempt},
		&Committed{Job: job, Task: task, Attempt: attempt}, &Committed{Job: job, Task: task, Attempt: 0},
		&GivenUp{Job: job, Kind: kind, Task: task, Cause: "c"},
		&Skipped{Job: job, Kind: kind, Task: task, From: int64(attempt), To: 3, Digest: uint64(attempt)},
		&Committing{Job: job},
		&Stopped{Job: job, Outcome: outcome, Reason: "r"},
		&Ended{Job: job, Outcome: outcome, Troubles: []string{"x"}}, &Ended{Job: job, Outcome: wire.Killed},
		&Swept{Key: key},
	}).Draw(t, "fact")
}

// TestViewsStay applies random facts. A View of any moment encodes later to the bytes that Facts
// had then.
func TestViewsStay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := New()
		f.maxEndedJobs = 2
		f.Apply(1, 1, &Bootstrapped{Start: 7})
		type frozen struct {
			view *View
			want []byte
		}
		var all []frozen
		for i := range rapid.IntRange(1, 150).Draw(t, "facts") {
			f.Apply(uint64(i+2), 1, anyFact(t, f))
			if rapid.IntRange(0, 3).Draw(t, "freeze") > 0 {
				continue
			}
			want, err := f.Snapshot()
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, frozen{f.Freeze(), want})
		}
		for i, x := range all {
			if got, err := x.view.Snapshot(); err != nil || !bytes.Equal(got, x.want) {
				t.Fatalf("view %d of %d has changed: %v", i, len(all), err)
			}
		}
	})
}

// manyJobs makes Facts with running jobs.
func manyJobs(jobs int) *Facts {
	f := New()
	f.Apply(1, 1, &Bootstrapped{Start: 7})
	for i := range jobs {
		f.Apply(2, 1, &Submitted{Submission: wire.Submission{
			Key: fmt.Sprint(i), Staging: "s", Plan: wire.Plan{Jobs: []wire.JobPlan{{Name: "n", Reduces: 100}}},
		}})
		f.Apply(3, 1, &SplitsWritten{Job: i + 1, Maps: 1000})
		f.Apply(4, 1, &DigestsKnown{Job: i + 1})
		f.Apply(5, 1, &Granted{Job: i + 1, Task: 99, Attempt: 1})
		f.Apply(6, 1, &Committed{Job: i + 1, Task: 99, Attempt: 1})
	}
	return f
}

// allocated returns the bytes that work allocates.
func allocated(work func()) int {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	work()
	runtime.ReadMemStats(&after)
	return int(after.TotalAlloc - before.TotalAlloc)
}

// TestFreezeIsSmall bounds the bytes that the owner of Facts allocates for a View, and for the
// next change of a job.
func TestFreezeIsSmall(t *testing.T) {
	const jobs = 10_000
	f := manyJobs(jobs)
	if n := allocated(func() { f.Freeze() }); n > 64*jobs {
		t.Errorf("a View of %d jobs takes %d bytes", jobs, n)
	}
	if n := allocated(func() { f.Apply(7, 1, &Granted{Job: 5, Task: 1, Attempt: 1}) }); n > 4<<10 {
		t.Errorf("a change after a Freeze takes %d bytes", n)
	}
}

// BenchmarkFreeze measures what a snapshot of 10,000 jobs costs the owner of Facts, and the
// goroutine that encodes it.
func BenchmarkFreeze(b *testing.B) {
	f := manyJobs(10_000)
	b.Run("freeze", func(b *testing.B) {
		for b.Loop() {
			f.Freeze()
		}
	})
	b.Run("encode", func(b *testing.B) {
		v := f.Freeze()
		for b.Loop() {
			if _, err := v.Snapshot(); err != nil {
				b.Fatal(err)
			}
		}
	})
}
