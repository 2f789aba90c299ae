package quota

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/quernmr/quern/wire"
	"pgregory.net/rapid"
)

// model is a Quota without clever parts: it counts all jobs each time.
type model struct {
	limits   Limits
	jobs     []entry
	reserved []reserved
	moves    []reserved
}

type reserved struct {
	key string
	job Job
	n   int
}

// movesTo counts jobs with reservations to move to a pool.
func (m *model) movesTo(pool string) (n int) {
	for _, r := range m.moves {
		if r.job.Pool == pool {
			n += r.n
		}
	}
	return n
}

func (m *model) find(n int) *entry {
	for i := range m.jobs {
		if m.jobs[i].n == n {
			return &m.jobs[i]
		}
	}
	return nil
}

// have counts unfinished or begun jobs: all, of a user, in a pool.
func (m *model) have(user, pool string, begun bool) (all, ofUser, inPool int) {
	add := func(j Job, n int) {
		all += n
		if j.User == user {
			ofUser += n
		}
		if j.Pool == pool {
			inPool += n
		}
	}
	for _, e := range m.jobs {
		if !begun || e.begun && !e.Suspended {
			add(e.Job, 1)
		}
	}
	for _, r := range m.reserved {
		if !begun {
			add(r.job, r.n)
		}
	}
	if !begun {
		inPool += m.movesTo(pool)
	}
	return all, ofUser, inPool
}

func (m *model) fits(b Bound, j Job, more int, begun bool) bool {
	all, user, pool := m.have(j.User, j.Pool, begun)
	return (b.All == 0 || all+more <= b.All) && (b.User == 0 || user+more <= b.User) && (b.Pool == 0 || pool+more <= b.Pool)
}

func (m *model) next() (n int, ok bool) {
	var best *entry
	for i := range m.jobs {
		e := &m.jobs[i]
		if e.waiting && m.fits(m.limits.Begun, e.Job, 1, true) && (best == nil || e.Priority > best.Priority || e.Priority == best.Priority && e.n < best.n) {
			best = e
		}
	}
	if best == nil {
		return 0, false
	}
	best.waiting, best.begun = false, true
	return best.n, true
}

func drawJob(t *rapid.T) Job {
	return Job{
		User: rapid.SampledFrom([]string{"ann", "bob", ""}).Draw(t, "user"), Pool: rapid.SampledFrom([]string{"default", "etl"}).Draw(t, "pool"),
		Priority: wire.Priority(rapid.IntRange(-2, 2).Draw(t, "priority")), Suspended: rapid.IntRange(0, 4).Draw(t, "suspended") == 0,
	}
}

// TestLikeModel compares a Quota with the model: the same submissions fit, and the same jobs begin
// in the same order.
func TestLikeModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bound := func(name string) Bound {
			limit := rapid.IntRange(0, 5)
			return Bound{limit.Draw(t, name), limit.Draw(t, name+" of a user"), limit.Draw(t, name+" in a pool")}
		}
		m := &model{limits: Limits{Jobs: bound("jobs"), Begun: bound("begun")}}
		q := New(m.limits)
		last := 0
		some := func() int { return rapid.IntRange(1, max(last, 1)).Draw(t, "job") }
		release := func(key string) {
			q.Release(key)
			m.reserved = slices.DeleteFunc(m.reserved, func(r reserved) bool { return r.key == key })
		}
		t.Repeat(map[string]func(*rapid.T){
			"submit": func(t *rapid.T) {
				j, n := drawJob(t), rapid.IntRange(1, 2).Draw(t, "jobs")
				key := fmt.Sprintf("key%d", last+rapid.IntRange(0, 2).Draw(t, "key"))
				known := slices.ContainsFunc(m.reserved, func(r reserved) bool { return r.key == key })
				want := known || m.fits(m.limits.Jobs, j, n, false)
				if err := q.Reserve(key, j, n); (err == nil) != want {
					t.Fatalf("%+v: %v, want it to fit: %v", j, err, want)
				}
				if !known && want {
					m.reserved = append(m.reserved, reserved{key, j, n})
				}
			},
			"apply": func(t *rapid.T) {
				if len(m.reserved) == 0 {
					return
				}
				r := m.reserved[0]
				release(r.key)
				for range r.n {
					last++
					q.Add(last, r.job)
					m.jobs = append(m.jobs, entry{Job: r.job, n: last})
				}
			},
			"move": func(t *rapid.T) {
				key, j, n := fmt.Sprintf("key%d", rapid.IntRange(0, 2).Draw(t, "key")), drawJob(t), rapid.IntRange(1, 3).Draw(t, "jobs")
				m.moves = slices.DeleteFunc(m.moves, func(r reserved) bool { return r.key == key })
				want := m.fits(Bound{Pool: m.limits.Jobs.Pool}, j, n, false)
				if err := q.ReserveMove(key, j.Pool, n); (err == nil) != want {
					t.Fatalf("%d jobs to pool %s: %v, want them to fit: %v", n, j.Pool, err, want)
				}
				if want {
					m.moves = append(m.moves, reserved{key, j, n})
				}
			},
			"moved": func(t *rapid.T) {
				key := fmt.Sprintf("key%d", rapid.IntRange(0, 2).Draw(t, "key"))
				q.ReleaseMove(key)
				m.moves = slices.DeleteFunc(m.moves, func(r reserved) bool { return r.key == key })
			},
			"refuse": func(t *rapid.T) { release(fmt.Sprintf("key%d", last)) },
			"wait": func(t *rapid.T) {
				n := some()
				q.Wait(n)
				if e := m.find(n); e != nil && !e.begun && !e.Suspended {
					e.waiting = true
				}
			},
			"stop": func(t *rapid.T) {
				n := some()
				q.Stop(n)
				if e := m.find(n); e != nil {
					e.waiting = false
				}
			},
			"run": func(t *rapid.T) {
				n := some()
				q.Begin(n)
				if e := m.find(n); e != nil {
					e.begun, e.waiting = true, false
				}
			},
			"end": func(t *rapid.T) {
				n := some()
				q.Remove(n)
				m.jobs = slices.DeleteFunc(m.jobs, func(e entry) bool { return e.n == n })
			},
			"change": func(t *rapid.T) {
				n, j := some(), drawJob(t)
				e := m.find(n)
				if e == nil {
					return
				}
				j.User = e.User
				q.Change(n, j)
				if e.Job = j; j.Suspended {
					e.waiting = false
				}
			},
			"begin": func(t *rapid.T) {
				n, ok := q.Next()
				wantN, wantOK := m.next()
				if n != wantN || ok != wantOK {
					t.Fatalf("job %d begins (%v), want job %d (%v)", n, ok, wantN, wantOK)
				}
			},
			"": func(t *rapid.T) {
				all, _, _ := m.have("ann", "etl", false)
				begun, user, pool := m.have("ann", "etl", true)
				if q.total.all != all || q.begun.all != begun || q.begun.users["ann"] != user || q.begun.pools["etl"] != pool {
					t.Fatalf("it counts %+v and %+v, want %d and %d, %d of ann, %d in etl", q.total, q.begun, all, begun, user, pool)
				}
				for _, u := range q.Uses() {
					var want, most int
					for _, user := range []string{"ann", "bob", ""} {
						for _, pool := range []string{"default", "etl"} {
							all, ofUser, inPool := m.have(user, pool, strings.HasSuffix(u.Limit, "running"))
							have := map[string]int{"jobs": all, "running": all, "user-jobs": ofUser, "user-running": ofUser, "pool-jobs": inPool, "pool-running": inPool}[u.Limit]
							most = max(most, have)
							if u.Of == "" || u.Of == "user "+user || u.Of == "pool "+pool {
								want = have
							}
						}
					}
					if u.Have != most || u.Have != want || u.Max == 0 {
						t.Fatalf("%+v, want %d, and %d at most", u, want, most)
					}
				}
				for _, e := range m.jobs {
					held := e.waiting && !m.fits(m.limits.Begun, e.Job, 1, true)
					if (q.Why(e.n) != "") != held || q.Begun(e.n) != e.begun {
						t.Fatalf("job %d: begun %v, waits as %q", e.n, q.Begun(e.n), q.Why(e.n))
					}
				}
			},
		})
	})
}

// TestTexts checks what users read.
func TestTexts(t *testing.T) {
	q := New(Limits{Jobs: Bound{All: 4, User: 3, Pool: 2}, Begun: Bound{All: 1}})
	ann := Job{User: "ann", Pool: "etl"}
	q.Add(1, ann)
	q.Add(2, ann)
	q.Add(3, Job{User: "bob", Pool: "default"})
	for n := range 3 {
		q.Wait(n + 1)
	}
	q.Next()
	for _, c := range []struct{ got, want string }{
		{q.Why(3), "it waits in line; running jobs of the cluster: 1, at most 1 (running); waiting jobs before it: 1"},
		{q.Why(1), ""},
		{fmt.Sprint(q.Reserve("k", ann, 1)), "unfinished jobs of pool etl: 2, with the submission 3, at most 2 (pool-jobs)"},
		{fmt.Sprint(q.Reserve("k", Job{User: "ann", Pool: "default"}, 2)), "unfinished jobs of the cluster: 3, with the submission 5, at most 4 (jobs)"},
		{fmt.Sprint(q.ReserveMove("k", "etl", 1)), "unfinished jobs of pool etl: 2, with the submission 3, at most 2 (pool-jobs)"},
		{fmt.Sprint(q.ReserveMove("k", "default", 1)), "<nil>"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
	err := New(Limits{Jobs: Bound{User: 1}}).Reserve("k", ann, 2)
	var e *Exceeded
	if !errors.As(err, &e) || e.Limit != "user-jobs" || !strings.HasPrefix(e.Error(), "unfinished jobs of user ann: 0, with") {
		t.Errorf("%v", err)
	}
}

// TestGroups: jobs that the limits of their user or pool hold back leave room for others.
func TestGroups(t *testing.T) {
	q := New(Limits{Begun: Bound{All: 4}})
	pools := func(_, pool string) []Group {
		if pool != "etl" {
			return nil
		}
		return []Group{{Of: "pool etl", Max: 2}}
	}
	for n := 1; n <= 4; n++ {
		q.Add(n, Job{User: "ann", Pool: "etl"})
		q.Wait(n)
	}
	q.SetGroups(pools)
	q.Add(5, Job{User: "bob", Pool: "default"})
	q.Wait(5)
	for _, want := range []int{1, 2, 5, 0} {
		if n, ok := q.Next(); n != want || ok != (want > 0) {
			t.Fatalf("Next: %d, %v; want %d", n, ok, want)
		}
	}
	if got, want := q.Why(4), "it waits in line; running jobs of pool etl: 2, at most 2 (pools file); waiting jobs before it: 1"; got != want {
		t.Errorf("Why: %s", got)
	}
	q.Change(2, Job{User: "ann", Pool: "default"}) // leaves the pool
	if n, _ := q.Next(); n != 3 {
		t.Errorf("Next after a job has left the pool: %d", n)
	}
	q.Remove(5)
	q.Change(1, Job{User: "ann", Pool: "etl", Suspended: true})
	if n, _ := q.Next(); n != 4 {
		t.Errorf("Next after a suspension: %d", n)
	}
	q.SetGroups(func(string, string) []Group { return []Group{{Of: "all", Max: 3}} })
	q.Add(6, Job{})
	q.Wait(6)
	if n, ok := q.Next(); ok { // jobs 2, 3 and 4 run
		t.Errorf("Next with new groups: %d", n)
	}
}
