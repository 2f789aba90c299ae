package core

import (
	"testing"
	"time"

	"github.com/quernmr/quern/wire"
)

// checkSecond checks that a further attempt of a task may be launched beside the others.
func (w *world) checkSecond(id wire.AttemptID) {
	l := w.core.leader
	j := l.job(id.Task.Job)
	a := j.attempt(id)
	if a.task.attempts == a {
		return
	}
	w.seconds++
	if n := a.task.running(); n > maxAttempts {
		w.fail("%v is attempt %d of its task at a time", id, n)
	}
	suspended := j.facts.Submission().Suspended()
	for other := range a.task.all() {
		if other != a && (!j.spec.ForKind(id.Task.Kind).Speculative || suspended || other.tracker == a.tracker || !a.second) {
			w.fail("%v is launched beside %v, which runs on %s; suspended: %v", id, other.id, other.tracker.Name, suspended)
		}
	}
}

// TestStraggler runs twelve waves of maps on ten trackers, also with one that is slower by ten.
// The slow one costs at most three tenths of the time.
func TestStraggler(t *testing.T) {
	var took [2]time.Duration
	for i, slowness := range []float64{0, 10} {
		p := newPaced(t, 1, wire.Scheduling{}, 10, 1, 1)
		p.trackers[0].slowness["job"] = slowness
		p.submit(&pacedJob{name: "job", maps: 120, reduces: 1, taskTime: taskTimes(2*time.Second, 0), spread: 0.05})
		p.run(1)
		took[i] = p.records[0].Job.Elapsed
		second := 0
		for _, a := range p.records[0].Attempts {
			if a.Speculative {
				second++
			}
		}
		if healthy := slowness == 0; second > 1 && healthy || second == 0 && !healthy {
			t.Errorf("slower by %v: %d speculative attempts", slowness, second)
		}
	}
	if 10*took[1] > 13*took[0] {
		t.Errorf("the job takes %v, and %v with a slow tracker", took[0], took[1])
	}
	t.Log(took)
}

// TestLooks checks that one Step looks for slow tasks of few jobs, and later Steps at the others.
func TestLooks(t *testing.T) {
	f := newFleet(t, fleetSize{trackers: 200, jobs: 20, maps: 40, inputRacks: 1}, nil)
	for range 200 {
		f.endNext()
	}
	f.now += time.Second
	f.step(Tick{})
	left := len(f.core.leader.todo.stragglers)
	if left < 10 || left == 20 {
		t.Errorf("after one Step %d of 20 jobs still wait for a look", left)
	}
	for began := f.now; len(f.core.leader.todo.stragglers) > 0; f.step(Tick{}) {
		at, ok := f.core.Wake()
		if !ok || at > began+time.Second {
			t.Fatalf("%d jobs wait for a look, and the core wakes up at %v", len(f.core.leader.todo.stragglers), at)
		}
		f.now = at
	}
}
