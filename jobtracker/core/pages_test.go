package core

import (
	"errors"
	"runtime"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/quernmr/quern/jobtracker/core/admission"
	"github.com/quernmr/quern/jobtracker/core/past"
	"github.com/quernmr/quern/wire"
)

// ready returns a cluster that leads, and has read all inventories.
func (c *bigCluster) ready() *bigCluster {
	c.elect()
	for i := range c.core.leader.fleet.byIndex {
		c.step(FromTracker{Stream: c.stream(i), Message: &wire.Inventory{}})
	}
	c.settle()
	return c
}

// allocated returns the bytes that work allocates.
func allocated(work func()) int {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	work()
	runtime.ReadMemStats(&after)
	return int(after.TotalAlloc - before.TotalAlloc)
}

// TestPagesOfJobs reads all jobs page by page. A page has few jobs, and allocates little.
func TestPagesOfJobs(t *testing.T) {
	const trackers, jobs = 10, 10_000
	c := newBigCluster(trackers, jobs).ready().core
	c.Explanations(0, wire.JobID{}) // make a forecast
	var list []wire.JobStatus
	var next wire.JobID
	for seen := 0; ; seen += len(list) {
		var err error
		if n := allocated(func() { list, next, err = c.Statuses(0, Query{Oldest: true, After: next}) }); n > 256<<10 || err != nil || len(list) > pageJobs {
			t.Fatalf("a page of %d jobs allocates %d bytes: %v", len(list), n, err)
		}
		for i := range list {
			if list[i].ID.N != seen+i+1 {
				t.Fatalf("%v is on place %d of the list", list[i].ID, seen+i+1)
			}
			if list[i].Counters != nil {
				t.Fatalf("the list has the counters of %v", list[i].ID)
			}
		}
		if next == (wire.JobID{}) {
			if seen += len(list); seen != jobs {
				t.Errorf("the pages have %d jobs, want %d", seen, jobs)
			}
			break
		}
	}
	explained := 0
	for next := (wire.JobID{N: -1}); next != (wire.JobID{}); {
		var page []wire.Explanation
		var err error
		page, next, err = c.Explanations(0, wire.JobID{Start: next.Start, N: max(next.N, 0)})
		if explained += len(page); err != nil || len(page) > pageJobs {
			t.Fatalf("a page of %d explanations: %v", len(page), err)
		}
	}
	if explained != jobs {
		t.Errorf("the pages explain %d jobs, want %d", explained, jobs)
	}
}

// TestFilteredPages: pages have each selected job once, in either order, and each page reads a limited number of
// jobs.
func TestFilteredPages(t *testing.T) {
	const few = 2*pageJobs + 7
	c := newBigCluster(1, few).core
	for _, oldest := range []bool{false, true} {
		for _, name := range []string{"", "n*", "other"} {
			var ids, want []int
			for n := 1; n <= few && name != "other"; n++ {
				want = append(want, n)
			}
			if !oldest {
				slices.Reverse(want)
			}
			for q := (Query{Oldest: oldest, Filter: admission.Filter{Name: name}}); ; {
				list, next, err := c.Statuses(0, q)
				if err != nil || len(list) > pageJobs {
					t.Fatalf("a page of %d jobs, %v", len(list), err)
				}
				for i := range list {
					ids = append(ids, list[i].ID.N)
				}
				if q.After = next; next.IsZero() {
					break
				}
			}
			if !slices.Equal(ids, want) {
				t.Errorf("named %q, oldest first is %v: %v", name, oldest, ids)
			}
		}
	}
	c = newBigCluster(1, pageVisits+7).core
	q := Query{Filter: admission.Filter{Owner: "nobody"}}
	list, next, err := c.Statuses(0, q)
	if err != nil || len(list) > 0 || next.N != 8 {
		t.Errorf("the first page has %d jobs, the next one begins after %v, %v", len(list), next, err)
	}
	q.After = next
	if list, next, err = c.Statuses(0, q); err != nil || len(list) > 0 || !next.IsZero() {
		t.Errorf("the second page has %d jobs, the next one begins after %v, %v", len(list), next, err)
	}
}

// TestCursors refuses cursors that no page can have named.
func TestCursors(t *testing.T) {
	c := newBigCluster(2, 3).ready().core
	id := func(start int64, n int) wire.JobID { return wire.JobID{Start: start, N: n} }
	for _, after := range []wire.JobID{id(2, 1), id(1, 4), id(1, 0), id(1, -1)} {
		_, _, err := c.Statuses(0, Query{After: after})
		_, _, explained := c.Explanations(0, after)
		if !errors.Is(err, ErrCursor) || !errors.Is(explained, ErrCursor) {
			t.Errorf("jobs after %v: %v, %v", after, err, explained)
		}
	}
	if list, next, err := c.Statuses(0, Query{Oldest: true, After: id(1, 3)}); len(list) > 0 || next != (wire.JobID{}) || err != nil {
		t.Errorf("jobs after the last one: %v, %v, %v", list, next, err)
	}
	at := func(job wire.JobID, kind wire.Kind, n int) wire.AttemptID {
		return wire.AttemptID{Task: wire.TaskID{Job: job, Kind: kind, N: n}, N: 1}
	}
	for _, after := range []wire.AttemptID{at(id(1, 2), wire.Map, 0), at(id(1, 1), wire.Map, 8), at(id(1, 1), wire.Setup, 1), {N: 5}} {
		if _, _, err := c.Attempts(id(1, 1), after); !errors.Is(err, ErrCursor) {
			t.Errorf("attempts after %v: %v", after, err)
		}
	}
}

// addAttempts adds random ended and running attempts to a job's tasks.
func addAttempts(t *rapid.T, l *leader, j *job) {
	for range rapid.IntRange(0, 900).Draw(t, "attempts") {
		tk := j.task(wire.TaskID{Job: j.id, Kind: wire.Map, N: rapid.IntRange(0, len(j.maps)-1).Draw(t, "task")})
		n := wire.EpochAttempts + int(tk.launched)
		tk.launched++
		if rapid.IntRange(0, 9).Draw(t, "running") == 0 {
			l.addAttempt(j, tk, l.fleet.byIndex[0], wire.AttemptID{Task: j.idOf(tk), N: n})
			continue
		}
		j.addEnded(tk, &past.Attempt{Number: n, State: wire.AttemptSucceeded}, "")
	}
}

// TestPagesOfAttempts compares the pages of a job's attempts with the list of a View.
func TestPagesOfAttempts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newBigCluster(2, 1).ready().core
		j := c.leader.order[0]
		addAttempts(t, c.leader, j)
		view := c.leader.freezeAttempts(j)
		want := view.Statuses()
		var got []wire.AttemptStatus
		for next := (wire.AttemptID{}); ; {
			page, ok, err := c.Attempts(j.id, next)
			if !ok || err != nil || len(page.Attempts) > pageAttempts {
				t.Fatalf("a page of %d attempts after %v: %v", len(page.Attempts), next, err)
			}
			got = append(got, page.Attempts...)
			if next = page.Next; next == (wire.AttemptID{}) {
				break
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("pages have %d attempts, the view %d", len(got), len(want))
		}
		addAttempts(t, c.leader, j)
		if !slices.Equal(view.Statuses(), want) {
			t.Fatal("the view has changed")
		}
	})
}

// TestLargeJob bounds the tasks that a page of attempts reads, and the bytes that the history of a
// large job takes from a Step.
func TestLargeJob(t *testing.T) {
	c := newBigCluster(2, 1).ready().core
	l, j := c.leader, c.leader.order[0]
	j.maps = make([]mapTask, past.MaxStored)
	for i := range j.maps {
		j.maps[i].kind, j.maps[i].n = wire.Map, int32(i)
	}
	pages := 0
	for next := (wire.AttemptID{Task: wire.TaskID{Job: j.id, Kind: wire.Setup}}); next != (wire.AttemptID{}); pages++ {
		page, _, err := c.Attempts(j.id, next)
		if err != nil {
			t.Fatal(err)
		}
		next = page.Next
	}
	if want := len(j.maps) / pageVisits; pages < want {
		t.Errorf("%d pages read %d tasks, want %d or more", pages, len(j.maps), want)
	}
	for i := range j.maps {
		j.addEnded(&j.maps[i].task, &past.Attempt{Number: 1000, State: wire.AttemptSucceeded}, "")
	}
	if n := allocated(func() { l.freezeAttempts(j) }); n > 16<<10 {
		t.Errorf("a view of %d attempts takes %d bytes", len(j.maps), n)
	}
	lost := allocated(func() {
		j.ended.SetLevel(5, wire.NodeLocal)
		j.addEnded(&j.maps[0].task, &past.Attempt{Number: 1001, State: wire.AttemptSucceeded}, "")
	})
	if lost > 512<<10 {
		t.Errorf("changes after a view take %d bytes", lost)
	}
}

// BenchmarkViews measures what the lists, statuses and copies of 10,000 jobs and of a job with 100,000
// attempts cost the goroutine of the core.
func BenchmarkViews(b *testing.B) {
	const trackers, jobs = 1000, 10_000
	c := newBigCluster(trackers, jobs).ready().core
	l, j := c.leader, c.leader.order[0]
	j.maps = make([]mapTask, past.MaxStored)
	for i := range j.maps {
		j.maps[i].kind, j.maps[i].n = wire.Map, int32(i)
		j.addEnded(&j.maps[i].task, &past.Attempt{Number: 1000, State: wire.AttemptSucceeded}, "")
	}
	middle := wire.AttemptID{Task: wire.TaskID{Job: j.id, Kind: wire.Map, N: len(j.maps) / 2}}
	for _, x := range []struct {
		name string
		work func()
	}{
		{"forecast", func() { l.recentForecast(l.now, 0) }},
		{"status", func() { c.StatusAt(0, wire.JobID{Start: 1, N: jobs / 2}) }},
		{"page of jobs", func() { c.Statuses(0, Query{After: wire.JobID{Start: 1, N: jobs / 2}}) }},
		{"page of explanations", func() { c.Explanations(0, wire.JobID{Start: 1, N: jobs / 2}) }},
		{"page of attempts", func() { c.Attempts(j.id, middle) }},
		{"view of attempts", func() { l.freezeAttempts(j) }},
		{"view of facts", func() { c.Freeze() }},
		{"cluster", func() { c.Cluster(0) }},
	} {
		b.Run(x.name, func(b *testing.B) {
			for b.Loop() {
				x.work()
			}
		})
	}
}
