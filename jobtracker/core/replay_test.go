package core

import (
	"cmp"
	"slices"
	"testing"

	"github.com/quernmr/quern/history"
	"github.com/quernmr/quern/scheduler/menu"
	"github.com/quernmr/quern/wire"
)

// TestReplay replays runs from the histories of their jobs. No tracker exceeded its slots, no plan
// assigned more slots than existed. Each slot went to the first job of the plan or of a queue.
func TestReplay(t *testing.T) {
	for _, name := range menu.Names() {
		for _, mix := range []string{"maps", "arrivals"} {
			t.Run(name+"/"+mix, func(t *testing.T) {
				p := pacedMix(t, mix, name, 1)
				r := newReplay(t, p.records)
				r.checkSlots([2]int{10, 5})
				r.checkPlans([2]int{40, 20})
				if n := r.checkOrder(name == "hmhs"); n < 50 {
					t.Errorf("only %d of %d assignments were checked", n, len(r.launches))
				} else {
					t.Logf("%d of %d assignments were checked", n, len(r.launches))
				}
			})
		}
	}
}

// replay has the histories of all jobs of a run.
type replay struct {
	t        *testing.T
	jobs     map[wire.JobID]*history.Record
	attempts []wire.AttemptStatus
	launches []wire.AttemptStatus // maps by time of launch
}

func newReplay(t *testing.T, records []*history.Record) *replay {
	r := &replay{t: t, jobs: make(map[wire.JobID]*history.Record)}
	for _, x := range records {
		r.jobs[x.Job.ID] = x
		if x.PlansSince != 0 || x.Omitted != 0 {
			t.Fatalf("%v has no complete history", x.Job.ID)
		}
		for _, a := range x.Attempts {
			if !a.Attempt.Task.Kind.Slotted() {
				continue
			}
			if a.Launched == 0 || a.Launched > a.Began {
				t.Fatalf("%v was launched at %d and began at %d", a.Attempt, a.Launched, a.Began)
			}
			r.attempts = append(r.attempts, a)
			if a.Attempt.Task.Kind == wire.Map && !a.Speculative {
				r.launches = append(r.launches, a)
			}
		}
	}
	slices.SortFunc(r.launches, func(a, b wire.AttemptStatus) int {
		return cmp.Or(cmp.Compare(a.Launched, b.Launched), a.Attempt.Compare(b.Attempt))
	})
	return r
}

// checkSlots counts the attempts in the slots of each tracker.
func (r *replay) checkSlots(slots [2]int) {
	type change struct {
		at int64
		by int
	}
	type slotKind struct {
		tracker string
		phase   int
	}
	changes := make(map[slotKind][]change)
	for _, a := range r.attempts {
		key := slotKind{a.Tracker, phaseOf(a.Attempt.Task.Kind)}
		changes[key] = append(changes[key], change{a.Launched, 1}, change{a.Began + a.Took, -1})
	}
	for key, list := range changes {
		slices.SortFunc(list, func(a, b change) int { return cmp.Or(cmp.Compare(a.at, b.at), a.by-b.by) })
		used := 0
		for _, c := range list {
			if used += c.by; used > slots[key.phase] {
				r.t.Fatalf("%s runs %d attempts in its %d slots of phase %d at %d", key.tracker, used, slots[key.phase], key.phase, c.at)
			}
		}
	}
}

// planAt returns the plan in force for a job at a time, and whether it changed at that time.
func (r *replay) planAt(x *history.Record, phase wire.Kind, at int64) (p history.Planned, changed bool) {
	for _, q := range x.Plans {
		if q.Phase == phase && q.At <= at {
			p, changed = q, q.At == at
		}
	}
	return p, changed
}

// checkPlans checks the sums of the slots that plans assign, and the places of the jobs.
func (r *replay) checkPlans(slots [2]int) {
	seen := 0
	for _, phase := range []wire.Kind{wire.Map, wire.Reduce} {
		var times []int64
		for _, x := range r.jobs {
			for _, p := range x.Plans {
				times = append(times, p.At)
			}
		}
		slices.Sort(times)
		for _, at := range slices.Compact(times) {
			total, places := 0, make(map[int]wire.JobID)
			for id, x := range r.jobs {
				p, _ := r.planAt(x, phase, at)
				if p.Place == 0 || x.Ended <= at {
					continue
				}
				seen++
				total += p.Target
				if other, taken := places[p.Place]; taken || p.Place > p.Places {
					r.t.Fatalf("%v is in place %d of %d at %d, and so is %v", id, p.Place, p.Places, at, other)
				}
				places[p.Place] = id
			}
			if total > slots[phaseOf(phase)] {
				r.t.Fatalf("the plan of %v at %d assigns %d slots", phase, at, total)
			}
		}
	}
	if seen == 0 {
		r.t.Error("the histories have no plan")
	}
}

// mapsAt counts the running and waiting maps of a job at the end of a millisecond.
func (r *replay) mapsAt(x *history.Record, at int64) (running, waiting int) {
	waiting = x.Job.Maps.Total
	for _, a := range x.Attempts {
		if a.Attempt.Task.Kind == wire.Map && a.Launched <= at {
			if !a.Speculative {
				waiting--
			}
			if a.Began+a.Took > at {
				running++
			}
		}
	}
	return running, waiting
}

// shareClaim orders jobs for a free slot, by their target slots, missing slots and place in the
// plan.
type shareClaim struct{ target, missing, place int }

// before orders claims: first the job that lacks the larger part of its target, then the earlier
// job of the plan.
func (c shareClaim) before(other shareClaim) bool {
	mine, others := c.missing*max(other.target, 1), other.missing*max(c.target, 1)
	return mine > others || mine == others && c.place < other.place
}

// checkOrder checks each map that was launched in the millisecond in which one other map ended.
// It returns the number of these maps.
func (r *replay) checkOrder(queues bool) (checked int) {
	ended, launched := make(map[int64]int), make(map[int64]int)
	for _, a := range r.launches {
		ended[a.Began+a.Took]++
		launched[a.Launched]++
	}
	for _, a := range r.launches {
		at := a.Launched
		mine, changed := r.planAt(r.jobs[a.Attempt.Task.Job], wire.Map, at)
		if ended[at] != 1 || launched[at] != 1 || changed || mine.Place == 0 {
			continue
		}
		if queues {
			if r.checkQueue(&a, &mine) {
				checked++
			}
			continue
		}
		running, _ := r.mapsAt(r.jobs[a.Attempt.Task.Job], at)
		ours := shareClaim{mine.Target, max(0, mine.Target-running+1), mine.Place}
		for id, x := range r.jobs {
			other, changed := r.planAt(x, wire.Map, at)
			running, waiting := r.mapsAt(x, at)
			if id == a.Attempt.Task.Job || changed || other.Place == 0 || waiting == 0 || x.Ended <= at {
				continue
			}
			if theirs := (shareClaim{other.Target, max(0, other.Target-running), other.Place}); theirs.before(ours) {
				r.t.Fatalf("%v gets a slot at %d by the plan %+v, but %v, with %d running and %d waiting maps, is before it by %+v",
					a.Attempt, at, mine, id, running, waiting, other)
			}
		}
		checked++
	}
	return checked
}

// checkQueue checks that a launch comes from a queue of its tracker, or that its job has more
// waiting maps than are in queues. It returns false if the history does not show which.
func (r *replay) checkQueue(a *wire.AttemptStatus, p *history.Planned) bool {
	x := r.jobs[a.Attempt.Task.Job]
	_, waiting := r.mapsAt(x, a.Launched)
	left := make(map[string]int)
	for _, q := range p.Queues {
		left[q.Tracker] += q.Tasks
	}
	for _, b := range x.Attempts {
		switch {
		case b.Attempt.Task.Kind != wire.Map:
		case b.Launched == p.At:
			return false // the launch may be before these queues, or from them
		case b.Launched > p.At && b.Launched < a.Launched:
			left[b.Tracker]--
		}
	}
	if left[a.Tracker] > 0 {
		return true
	}
	queued := 0
	for _, n := range left {
		queued += max(n, 0)
	}
	if queued > waiting {
		r.t.Fatalf("%v on %s is from no queue, but queues have %d of the %d waiting maps: %+v", a.Attempt, a.Tracker, queued, waiting, p)
	}
	return true
}
