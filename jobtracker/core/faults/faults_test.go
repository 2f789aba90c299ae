package faults

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quernmr/quern/wire"
	"pgregory.net/rapid"
)

var (
	job    = wire.JobID{Start: 7, N: 1}
	mapped = Task{wire.Map, 3}
)

// failure is an attempt at a task that failed on a tracker.
func failure(t Task, attempt int, tracker string) *Failure {
	return NewFailure(tracker, wire.AttemptID{Task: t.ID(job), N: attempt}, &wire.Result{Error: "boom"})
}

// TestNoFaults: the zero value has none, and asking it changes nothing.
func TestNoFaults(t *testing.T) {
	var x Faults
	_, waits := x.Next()
	_, spent := x.AttemptsUsedUp(mapped, mapped.ID(job), 1)
	if x.Knows(mapped, 1) || x.Avoids(mapped, "t1") || x.Avoided(mapped) != nil || x.Rejected(mapped, 1) || x.Failures(mapped) != 0 ||
		x.Failed(wire.Map) != 0 || x.RetryAt(mapped) != 0 || x.Elsewhere(mapped) != 0 || x.TakeBlames(mapped) != nil || x.Troubles() != nil ||
		waits || spent || x.NextRetries() || x.tasks != nil {
		t.Errorf("%+v", x)
	}
	for task := range x.Due(time.Hour) {
		t.Errorf("%v is due", task)
	}
}

// TestFail: failures count once they are told, for their task, their kind and their tracker.
func TestFail(t *testing.T) {
	var x Faults
	reduce := Task{wire.Reduce, 3}
	x.Fail(mapped, failure(mapped, 1000, "t1"), time.Second)
	x.Fail(mapped, failure(mapped, 1001, "t2"), 2*time.Second)
	x.Fail(reduce, failure(reduce, 1000, "t1"), 3*time.Second)
	for i := range MaxRejected + 1 {
		if got := x.Excuse(reduce, 1001+i); got != (i < MaxRejected) {
			t.Errorf("%d attempts were excused before, and another is: %v", i, got)
		}
	}
	if x.Failures(mapped) != 2 || x.Failures(reduce) != 1 || x.Failed(wire.Map) != 2 || x.Failed(wire.Reduce) != 1 {
		t.Errorf("%d and %d failures, %d of maps, %d of reduces", x.Failures(mapped), x.Failures(reduce), x.Failed(wire.Map), x.Failed(wire.Reduce))
	}
	for attempt, want := range map[int]bool{1000: true, 1001: true, 1000 + MaxRejected: true, 1001 + MaxRejected: false} {
		if got := x.Knows(reduce, attempt); got != want {
			t.Errorf("attempt %d of the reduce is known: %v", attempt, got)
		}
	}
	if x.Knows(mapped, 1002) {
		t.Error("an attempt of the map is known that a reduce had")
	}
	if got, want := x.TakeBlames(mapped), []Blame{{"t1", time.Second}, {"t2", 2 * time.Second}}; !slices.Equal(got, want) {
		t.Errorf("the map's failures count against %v, want %v", got, want)
	}
	if got := x.TakeBlames(mapped); got != nil {
		t.Errorf("they count twice: %v", got)
	}
}

// TestAvoid: a tracker is avoided by the task that failed there alone.
func TestAvoid(t *testing.T) {
	var x Faults
	other := Task{wire.Map, 4}
	if !x.Avoid(mapped, "t1") || x.Avoid(mapped, "t1") || !x.Avoid(mapped, "t2") {
		t.Error("what is new is not told")
	}
	if !x.Avoids(mapped, "t1") || x.Avoids(mapped, "t3") || x.Avoids(other, "t1") || !slices.Equal(x.Avoided(mapped), []string{"t1", "t2"}) {
		t.Errorf("it avoids %v", x.Avoided(mapped))
	}
}

// TestReject: outputs of a map that could not be read are counted, and known by attempt.
func TestReject(t *testing.T) {
	var x Faults
	for i, attempt := range []int{1000, 1003} {
		if got := x.Reject(mapped, attempt); got != i+1 {
			t.Errorf("%d outputs could not be read, want %d", got, i+1)
		}
	}
	if !x.Rejected(mapped, 1003) || x.Rejected(mapped, 1001) {
		t.Error("outputs could not be read of other attempts")
	}
}

// TestHoldBack: how long a task waits after so many failures.
func TestHoldBack(t *testing.T) {
	const now = time.Hour
	for _, c := range []struct {
		failures        int
		elsewhere       bool
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
			x.Fail(mapped, failure(mapped, i, "t1"), 0)
		}
		isNext := x.DelayRetry(mapped, now, c.elsewhere)
		waits := func(at time.Duration) time.Duration { return max(at-now, 0) }
		if got := [2]time.Duration{waits(x.RetryAt(mapped)), waits(x.Elsewhere(mapped))}; got != [2]time.Duration{c.retry, c.avoiding} {
			t.Errorf("after %d failures it waits %v, want %v and %v", c.failures, got, c.retry, c.avoiding)
		}
		first := cmp.Or(c.retry, c.avoiding)
		if at, ok := x.Next(); ok != (first > 0) || isNext != ok || ok && at != now+first || x.NextRetries() != (c.retry > 0) {
			t.Errorf("after %d failures it is looked at after %v (%v), want %v; new: %v; to retry: %v", c.failures, at-now, ok, first, isNext, x.NextRetries())
		}
		x.StopAvoiding(mapped)
		if x.Elsewhere(mapped) != 0 || waits(x.RetryAt(mapped)) != c.retry {
			t.Errorf("after %d failures it waits %v for another tracker, which it need not", c.failures, x.Elsewhere(mapped)-now)
		}
		x.Forget()
		if _, ok := x.Next(); ok {
			t.Error("what is forgotten is looked at")
		}
	}
}

// dueBy is what Due yields by a time, and takes, from a plain list.
func dueBy(list *[]Reminder, now time.Duration) []Task {
	slices.SortFunc(*list, func(a, b Reminder) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Task.Kind, b.Task.Kind), cmp.Compare(a.Task.N, b.Task.N))
	})
	var due []Task
	for len(*list) > 0 && (*list)[0].At <= now {
		due, *list = append(due, (*list)[0].Task), (*list)[1:]
	}
	return due
}

// TestDue checks reminders against a sorted list, and each wait's end: no task that waits is
// without a reminder.
func TestDue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var x Faults
		var list []Reminder
		now := time.Duration(0)
		for i := range rapid.IntRange(1, 40).Draw(t, "steps") {
			now += time.Duration(rapid.IntRange(0, 20).Draw(t, "seconds")) * time.Second
			task := Task{rapid.SampledFrom([]wire.Kind{wire.Map, wire.Reduce}).Draw(t, "kind"), rapid.Int32Range(0, 3).Draw(t, "task")}
			before, waited := x.Next()
			x.Fail(task, failure(task, i, "t1"), now)
			isNext := x.DelayRetry(task, now, rapid.Bool().Draw(t, "elsewhere"))
			for _, at := range []time.Duration{x.RetryAt(task), x.Elsewhere(task)} {
				if at > 0 {
					list = append(list, Reminder{at, task})
				}
			}
			if at, waits := x.Next(); waits && (!waited || at < before) && !isNext {
				t.Fatalf("the next task is due at %v instead of %v, and nothing says so", at, before)
			}
			if !rapid.Bool().Draw(t, "look") {
				continue
			}
			got, want := slices.Collect(x.Due(now)), dueBy(&list, now)
			if !slices.Equal(got, want) {
				t.Fatalf("at %v %v are due, want %v", now, got, want)
			}
			for _, task := range got {
				if at := x.RetryAt(task); at != 0 && at <= now {
					t.Fatalf("at %v %v is to be launched again at %v", now, task, at)
				}
				if at := x.Elsewhere(task); at != 0 && at <= now {
					t.Fatalf("at %v %v waits for another tracker until %v", now, task, at)
				}
			}
		}
	})
}

// TestDueStops: a caller that stops leaves the rest for the next time.
func TestDueStops(t *testing.T) {
	var x Faults
	for n := range int32(3) {
		task := Task{wire.Map, n}
		x.Fail(task, failure(task, 1, "t1"), 0)
		x.DelayRetry(task, 0, true)
	}
	for range x.Due(time.Hour) {
		break
	}
	if got, want := slices.Collect(x.Due(time.Hour)), []Task{{wire.Map, 1}, {wire.Map, 2}}; !slices.Equal(got, want) {
		t.Errorf("%v are due, want %v", got, want)
	}
}

// TestFailureText: a reason names the attempt and its tracker, and has room for
// the end of its log however long the cause is.
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

// TestSpent: one attempt that failed is not told of as of several, and as many must fail as may.
func TestSpent(t *testing.T) {
	for _, c := range []struct {
		failed, may int
		want        string // empty: it may fail again
	}{
		{1, 1, "task_7_0001_m_000003 failed: attempt_7_0001_m_000003_1000 on tracker t1: boom"},
		{1, 2, ""},
		{2, 2, "task_7_0001_m_000003 failed 2 times, first attempt_7_0001_m_000003_1000 on tracker t1: boom"},
	} {
		var x Faults
		for i := range c.failed {
			x.Fail(mapped, failure(mapped, 1000+i, fmt.Sprint("t", i+1)), 0)
		}
		if got, spent := x.AttemptsUsedUp(mapped, mapped.ID(job), c.may); got != c.want || spent != (c.want != "") {
			t.Errorf("%d of %d have failed: %q (%v), want %q", c.failed, c.may, got, spent, c.want)
		}
	}
}

// TestTroubles: as many losses as other troubles are kept, in the order in which they came,
// and none of any length.
func TestTroubles(t *testing.T) {
	var x Faults
	long := strings.Repeat("x", 10*wire.MaxTrouble)
	x.LossTrouble(long)
	want := []string{wire.Truncate(long, wire.MaxTrouble)}
	for i := range wire.MaxTroubles + 5 {
		x.Trouble(fmt.Sprint("trouble ", i))
		if i < wire.MaxTroubles {
			want = append(want, fmt.Sprint("trouble ", i))
		}
	}
	for i := range wire.MaxTroubles + 5 {
		x.LossTrouble(fmt.Sprint("loss ", i))
		if i < wire.MaxTroubles-1 {
			want = append(want, fmt.Sprint("loss ", i))
		}
	}
	if got := x.Troubles(); !slices.Equal(got, want) {
		t.Errorf("troubles %.500q, want %.500q", got, want)
	}
}
