package faults

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quernmr/quern/wire"
	"pgregory.net/rapid"
)

var (
	job     = wire.JobID{Start: 7, N: 1}
	mapTask = Task{wire.Map, 3}
)

// failure makes the failure of an attempt on a tracker.
func failure(t Task, attempt int, tracker string) *Failure {
	return NewFailure(tracker, wire.AttemptID{Task: t.ID(job), N: attempt}, &wire.Result{Error: "boom"})
}

// TestNoFaults checks that the zero value has no faults, and that reading does not change it.
func TestNoFaults(t *testing.T) {
	var x Faults
	_, waits := x.NextReminder()
	_, usedUp := x.AttemptsUsedUp(mapTask, mapTask.ID(job), 1)
	if x.HasFailure(mapTask, 1) || x.Avoids(mapTask, "t1") || x.AvoidsAny(mapTask) || x.OutputRejected(mapTask, 1) || x.Failures(mapTask) != 0 ||
		x.FailuresOfKind(wire.Map) != 0 || x.RetryAt(mapTask) != 0 || x.AvoidUntil(mapTask) != 0 || x.TakeBlames(mapTask) != nil || x.Troubles() != nil ||
		waits || usedUp || x.NextIsRetry() || x.tasks != nil {
		t.Errorf("%+v", x)
	}
	for task := range x.EndWaits(time.Hour) {
		t.Errorf("the wait of %v ends", task)
	}
}

// TestFail checks that failures count for their task, their kind and their tracker.
func TestFail(t *testing.T) {
	var x Faults
	reduce := Task{wire.Reduce, 3}
	x.Fail(mapTask, failure(mapTask, 1000, "t1"), time.Second)
	x.Fail(mapTask, failure(mapTask, 1001, "t2"), 2*time.Second)
	x.Fail(reduce, failure(reduce, 1000, "t1"), 3*time.Second)
	for i := range MaxRejected + 1 {
		if got := x.Excuse(reduce, 1001+i); got != (i < MaxRejected) {
			t.Errorf("after %d excused attempts another one is excused: %v", i, got)
		}
	}
	if x.Failures(mapTask) != 2 || x.Failures(reduce) != 1 || x.FailuresOfKind(wire.Map) != 2 || x.FailuresOfKind(wire.Reduce) != 1 {
		t.Errorf("%d and %d failures, %d of maps, %d of reduces", x.Failures(mapTask), x.Failures(reduce), x.FailuresOfKind(wire.Map), x.FailuresOfKind(wire.Reduce))
	}
	for attempt, want := range map[int]bool{1000: true, 1001: true, 1000 + MaxRejected: true, 1001 + MaxRejected: false} {
		if got := x.HasFailure(reduce, attempt); got != want {
			t.Errorf("the failure of the reduce's attempt %d is recorded: %v", attempt, got)
		}
	}
	if x.HasFailure(mapTask, 1002) {
		t.Error("a failure of the reduce counts for the map")
	}
	if !x.FailedElsewhere(mapTask, "t1") || x.FailedElsewhere(reduce, "t1") || !x.FailedElsewhere(reduce, "t2") {
		t.Error("failures on other trackers are not known, or those on the same one count")
	}
	if got, want := x.TakeBlames(mapTask), []Blame{{"t1", time.Second}, {"t2", 2 * time.Second}}; !slices.Equal(got, want) {
		t.Errorf("the map's failures count against %v, want %v", got, want)
	}
	if x.FailedElsewhere(mapTask, "t1") || x.FailedElsewhere(Task{wire.Map, 9}, "t1") {
		t.Error("it has succeeded since it failed elsewhere, or did not fail")
	}
	if got := x.TakeBlames(mapTask); got != nil {
		t.Errorf("they count twice: %v", got)
	}
}

// TestAvoid checks that only the task that failed on a tracker avoids it.
func TestAvoid(t *testing.T) {
	var x Faults
	other := Task{wire.Map, 4}
	if !x.Avoid(mapTask, "t1") || x.Avoid(mapTask, "t1") || !x.Avoid(mapTask, "t2") {
		t.Error("Avoid does not report what is new")
	}
	if !x.Avoids(mapTask, "t1") || x.Avoids(mapTask, "t3") || x.Avoids(other, "t1") || !slices.Equal(slices.Collect(x.Avoided(mapTask)), []string{"t1", "t2"}) {
		t.Errorf("it avoids %v", slices.Collect(x.Avoided(mapTask)))
	}
}

// TestAvoidMemory counts what 10,000 maps keep that avoid 1,000 trackers each: one bit for each tracker.
func TestAvoidMemory(t *testing.T) {
	const tasks, trackers = 10_000, 1_000
	var names []string
	for i := range trackers {
		names = append(names, fmt.Sprintf("tracker-%04d", i))
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var x Faults
	for n := range int32(tasks) {
		for _, name := range names {
			x.Avoid(Task{wire.Map, n}, name)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if held := int64(after.HeapAlloc) - int64(before.HeapAlloc); held > 10<<20 {
		t.Errorf("%d tasks that avoid %d trackers each keep %d bytes", tasks, trackers, held)
	}
	if !x.Avoids(Task{wire.Map, tasks - 1}, names[trackers-1]) {
		t.Error("the last task does not avoid the last tracker")
	}
}

// TestAvoidOnly checks that a task avoids other trackers than before, and waits for a slot elsewhere.
func TestAvoidOnly(t *testing.T) {
	var x Faults
	x.Avoid(mapTask, "t1")
	x.AvoidOnly(mapTask, []string{"t2", "t3"})
	if x.Avoids(mapTask, "t1") || !x.Avoids(mapTask, "t2") || !x.Avoids(mapTask, "t3") {
		t.Errorf("it avoids %v", slices.Collect(x.Avoided(mapTask)))
	}
	if !x.AvoidLonger(mapTask, time.Hour) || x.AvoidUntil(mapTask) != time.Hour+avoidPerFailure || x.RetryAt(mapTask) != 0 {
		t.Errorf("it waits until %v, and for a retry until %v", x.AvoidUntil(mapTask), x.RetryAt(mapTask))
	}
	if at, ok := x.NextReminder(); !ok || at != time.Hour+avoidPerFailure {
		t.Errorf("reminder %v, %v", at, ok)
	}
}

// TestReject checks that unreadable map outputs are counted, and recorded by attempt.
func TestReject(t *testing.T) {
	var x Faults
	for i, attempt := range []int{1000, 1003} {
		if got := x.RejectOutput(mapTask, attempt); got != i+1 {
			t.Errorf("%d outputs could not be read, want %d", got, i+1)
		}
	}
	if !x.OutputRejected(mapTask, 1003) || x.OutputRejected(mapTask, 1001) {
		t.Error("the output of the wrong attempt is rejected")
	}
}

// TestDelayRetry checks how long a task waits after a number of failures.
func TestDelayRetry(t *testing.T) {
	const now = time.Hour
	for _, c := range []struct {
		failures        int
		hasAlternative  bool
		retry, avoiding time.Duration // from now; 0: it does not wait
	}{
		{1, false, 0, 0},
		{1, true, 0, 30 * time.Second},
		{2, true, time.Second, time.Minute},
		{2, false, time.Second, 0},
		{10, true, 9 * time.Second, 5 * time.Minute},
		{500, true, 10 * time.Second, 5 * time.Minute},
	} {
		var x Faults
		for i := range c.failures {
			x.Fail(mapTask, failure(mapTask, i, "t1"), 0)
		}
		isNext := x.DelayRetry(mapTask, now, c.hasAlternative)
		waits := func(at time.Duration) time.Duration { return max(at-now, 0) }
		if got := [2]time.Duration{waits(x.RetryAt(mapTask)), waits(x.AvoidUntil(mapTask))}; got != [2]time.Duration{c.retry, c.avoiding} {
			t.Errorf("after %d failures it waits %v, want %v and %v", c.failures, got, c.retry, c.avoiding)
		}
		first := cmp.Or(c.retry, c.avoiding)
		if at, ok := x.NextReminder(); ok != (first > 0) || isNext != ok || ok && at != now+first || x.NextIsRetry() != (c.retry > 0) {
			t.Errorf("after %d failures the next reminder is after %v (%v), want %v; new: %v; a retry: %v", c.failures, at-now, ok, first, isNext, x.NextIsRetry())
		}
		x.StopAvoiding(mapTask)
		if x.AvoidUntil(mapTask) != 0 || waits(x.RetryAt(mapTask)) != c.retry {
			t.Errorf("after %d failures it waits %v for another tracker after StopAvoiding", c.failures, x.AvoidUntil(mapTask)-now)
		}
		x.ClearReminders()
		if _, ok := x.NextReminder(); ok {
			t.Error("a reminder is left after ClearReminders")
		}
	}
}

// takeDue removes from a list what EndWaits should yield, in order.
func takeDue(list *[]Reminder, now time.Duration) []Task {
	slices.SortFunc(*list, func(a, b Reminder) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Task.Kind, b.Task.Kind), cmp.Compare(a.Task.N, b.Task.N))
	})
	var due []Task
	for len(*list) > 0 && (*list)[0].At <= now {
		due, *list = append(due, (*list)[0].Task), (*list)[1:]
	}
	return due
}

// TestEndWaits compares EndWaits with a sorted list, and checks that every waiting task has a
// reminder.
func TestEndWaits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var x Faults
		var list []Reminder
		now := time.Duration(0)
		for i := range rapid.IntRange(1, 40).Draw(t, "steps") {
			now += time.Duration(rapid.IntRange(0, 20).Draw(t, "seconds")) * time.Second
			task := Task{rapid.SampledFrom([]wire.Kind{wire.Map, wire.Reduce}).Draw(t, "kind"), rapid.Int32Range(0, 3).Draw(t, "task")}
			before, waited := x.NextReminder()
			x.Fail(task, failure(task, i, "t1"), now)
			isNext := x.DelayRetry(task, now, rapid.Bool().Draw(t, "has alternative"))
			for _, at := range []time.Duration{x.RetryAt(task), x.AvoidUntil(task)} {
				if at > 0 {
					list = append(list, Reminder{at, task})
				}
			}
			if at, waits := x.NextReminder(); waits && (!waited || at < before) && !isNext {
				t.Fatalf("the next reminder moved to %v from %v, and DelayRetry did not report it", at, before)
			}
			if !rapid.Bool().Draw(t, "end waits") {
				continue
			}
			got, want := slices.Collect(x.EndWaits(now)), takeDue(&list, now)
			if !slices.Equal(got, want) {
				t.Fatalf("at %v EndWaits yields %v, want %v", now, got, want)
			}
			for _, task := range got {
				if at := x.RetryAt(task); at != 0 && at <= now {
					t.Fatalf("at %v %v still waits for its retry at %v", now, task, at)
				}
				if at := x.AvoidUntil(task); at != 0 && at <= now {
					t.Fatalf("at %v %v still waits for another tracker until %v", now, task, at)
				}
			}
		}
	})
}

// TestEndWaitsStops checks that a loop that ends early leaves the rest for the next call.
func TestEndWaitsStops(t *testing.T) {
	var x Faults
	for n := range int32(3) {
		task := Task{wire.Map, n}
		x.Fail(task, failure(task, 1, "t1"), 0)
		x.DelayRetry(task, 0, true)
	}
	for range x.EndWaits(time.Hour) {
		break
	}
	if got, want := slices.Collect(x.EndWaits(time.Hour)), []Task{{wire.Map, 1}, {wire.Map, 2}}; !slices.Equal(got, want) {
		t.Errorf("the next call yields %v, want %v", got, want)
	}
}

// TestFailureText checks that a text names the attempt and its tracker, and has the end of the log
// even if the cause is long.
func TestFailureText(t *testing.T) {
	id := wire.AttemptID{Task: wire.TaskID{Job: wire.JobID{Start: 1, N: 2}, Kind: wire.Map, N: 3}, N: 1000}
	logged := strings.Repeat("a line of its log\n", 200) + "the last line\n"
	for _, cause := range []string{"", "no space", strings.Repeat("very long ", 1<<17)} {
		text := NewFailure("t7", id, &wire.Result{Error: cause, Log: logged}).String()
		if !strings.HasPrefix(text, "attempt_1_0002_m_000003_1000 on tracker t7: ") || !strings.HasSuffix(text, "\nthe last line") {
			t.Errorf("cause of %d bytes: %.100q … %q", len(cause), text, text[max(len(text)-40, 0):])
		}
		if len(text) > MaxReason-500 {
			t.Errorf("cause of %d bytes: a text of %d leaves no room for the job's and the task's names", len(cause), len(text))
		}
	}
}

// TestAttemptsUsedUp checks the limit, and the texts for one and for several failures.
func TestAttemptsUsedUp(t *testing.T) {
	for _, c := range []struct {
		failed, maxAttempts int
		want                string // empty: the task is retried
	}{
		{1, 1, "task_7_0001_m_000003 failed: attempt_7_0001_m_000003_1000 on tracker t1: boom"},
		{1, 2, ""},
		{2, 2, "task_7_0001_m_000003 failed 2 times, first attempt_7_0001_m_000003_1000 on tracker t1: boom"},
	} {
		var x Faults
		for i := range c.failed {
			x.Fail(mapTask, failure(mapTask, 1000+i, fmt.Sprint("t", i+1)), 0)
		}
		if got, usedUp := x.AttemptsUsedUp(mapTask, mapTask.ID(job), c.maxAttempts); got != c.want || usedUp != (c.want != "") {
			t.Errorf("%d of %d attempts failed: %q (%v), want %q", c.failed, c.maxAttempts, got, usedUp, c.want)
		}
	}
}

// TestTroubles checks the bounds of losses and other troubles, their order, and their lengths.
func TestTroubles(t *testing.T) {
	var x Faults
	long := strings.Repeat("x", 10*wire.MaxTrouble)
	x.AddLossTrouble(long)
	want := []string{wire.Truncate(long, wire.MaxTrouble)}
	for i := range wire.MaxTroubles + 5 {
		x.AddTrouble(fmt.Sprint("trouble ", i))
		if i < wire.MaxTroubles {
			want = append(want, fmt.Sprint("trouble ", i))
		}
	}
	for i := range wire.MaxTroubles + 5 {
		x.AddLossTrouble(fmt.Sprint("loss ", i))
		if i < wire.MaxTroubles-1 {
			want = append(want, fmt.Sprint("loss ", i))
		}
	}
	if got := x.Troubles(); !slices.Equal(got, want) {
		t.Errorf("troubles %.500q, want %.500q", got, want)
	}
}

// TestAbsolve: a failure that a user asked for counts against the task, and not against the tracker.
func TestAbsolve(t *testing.T) {
	var x Faults
	task := Task{Kind: wire.Map, N: 3}
	for n, tracker := range []string{"t1", "t2"} {
		x.Fail(task, NewFailure(tracker, wire.AttemptID{Task: task.ID(wire.JobID{Start: 1, N: 1}), N: n}, &wire.Result{Error: "boom"}), 5)
	}
	x.Absolve(task)
	if blames := x.TakeBlames(task); x.Failures(task) != 2 || len(blames) != 1 || blames[0].Tracker != "t1" {
		t.Errorf("%d failures, blames %v", x.Failures(task), blames)
	}
	x.Absolve(task) // there is none
}
