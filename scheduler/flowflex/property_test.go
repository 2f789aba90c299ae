package flowflex

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/quernmr/quern/scheduler"
)

// drawProblem draws a problem of up to flows flows with up to jobs jobs each, in topological order.
func drawProblem(t *rapid.T, flows, jobs int) Problem {
	p := Problem{Slots: rapid.IntRange(1, 6).Draw(t, "slots")}
	for i := range rapid.IntRange(1, flows).Draw(t, "flows") {
		f := Flow{ID: fmt.Sprint("f", i), Cost: drawCost(t)}
		for k := range rapid.IntRange(0, jobs).Draw(t, "jobs") {
			j := Job{
				ID:   fmt.Sprint("j", k),
				Work: float64(rapid.IntRange(0, 12).Draw(t, "work")) / float64(rapid.SampledFrom([]int{1, 1, 3, 7}).Draw(t, "by")),
				Max:  rapid.IntRange(1, 8).Draw(t, "max"),
			}
			for before := range k {
				if rapid.IntRange(0, 2).Draw(t, "after") == 0 {
					j.After = append(j.After, before)
				}
			}
			f.Jobs = append(f.Jobs, j)
		}
		p.Flows = append(p.Flows, f)
	}
	return p
}

func drawCost(t *rapid.T) scheduler.Cost {
	c := scheduler.Cost{
		Penalty: rapid.SampledFrom([]scheduler.Penalty{scheduler.Response, scheduler.Tardy, scheduler.Tardiness, scheduler.Lateness, scheduler.SLA}).Draw(t, "penalty"),
		Weight:  float64(rapid.IntRange(1, 9).Draw(t, "weight")),
		Due:     float64(rapid.IntRange(-2, 20).Draw(t, "due")),
	}
	if c.Penalty == scheduler.SLA {
		l := scheduler.Level{Due: -2}
		for range rapid.IntRange(0, 3).Draw(t, "steps") {
			l.Due += float64(rapid.IntRange(1, 7).Draw(t, "gap"))
			l.Cost += float64(rapid.IntRange(0, 4).Draw(t, "height"))
			c.Levels = append(c.Levels, l)
		}
	}
	return c
}

func aggregate(t *rapid.T) scheduler.Aggregate {
	return rapid.SampledFrom([]scheduler.Aggregate{scheduler.Sum, scheduler.Max}).Draw(t, "aggregate")
}

// TestScheduleIsFeasible checks F1 for random options, and that Solve is repeatable.
func TestScheduleIsFeasible(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProblem(t, 5, 6)
		o := Options{
			Aggregate:  aggregate(t),
			ChainsOnly: rapid.Bool().Draw(t, "chains"),
			Deadlines:  make([][]float64, rapid.IntRange(0, 2).Draw(t, "orders")),
		}
		for k := range o.Deadlines {
			for range p.Flows {
				o.Deadlines[k] = append(o.Deadlines[k], float64(rapid.IntRange(0, 20).Draw(t, "deadline")))
			}
		}
		s, slots, err := solveWithIntervals(p, o)
		if err != nil {
			t.Fatal(err)
		}
		checkSchedule(t, p, s, slots)
		costs := make([]scheduler.Cost, len(p.Flows))
		for i, f := range p.Flows {
			costs[i] = f.Cost
		}
		if want := o.Aggregate.Combine(costs, s.Completion); !near(s.Cost, want) {
			t.Fatalf("cost %v, but the completion times cost %v", s.Cost, want)
		}
		if again, err := Solve(p, o); err != nil || !reflect.DeepEqual(again, s) {
			t.Fatalf("solved again: %+v (%v), first %+v", again, err, s)
		}
	})
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-7*max(1, math.Abs(a), math.Abs(b)) }

// checkSchedule checks slots, work, precedence and completion times.
func checkSchedule(t *rapid.T, p Problem, s *Schedule, slots []interval) {
	begin, end, work := jobTimes(p), jobTimes(p), jobTimes(p)
	times := []float64{0}
	for _, a := range slots {
		if a.Slots <= 0 || a.To < a.From {
			t.Fatalf("%+v", a)
		}
		begin[a.Flow][a.Job] = min(begin[a.Flow][a.Job], a.From)
		end[a.Flow][a.Job] = max(a.To, orZero(end[a.Flow][a.Job]))
		work[a.Flow][a.Job] = orZero(work[a.Flow][a.Job]) + float64(a.Slots)*(a.To-a.From)
		times = append(times, a.From, a.To)
	}
	slices.Sort(times)
	for k, from := range times[1:] {
		checkInstant(t, p, slots, (times[k]+from)/2)
	}
	for i, f := range p.Flows {
		last := 0.0
		for k, j := range f.Jobs {
			last = max(last, orZero(end[i][k]))
			if !near(orZero(work[i][k]), j.Work) {
				t.Fatalf("%s.%s has done %v of %v", f.ID, j.ID, orZero(work[i][k]), j.Work)
			}
			// Ends are of pseudo-jobs; the wrap-around may end a job sooner.
			if s.Ends[i][k] < orZero(end[i][k])-1e-7 {
				t.Fatalf("%s.%s ends at %v, not %v", f.ID, j.ID, end[i][k], s.Ends[i][k])
			}
			for _, before := range j.After {
				if orZero(end[i][before]) > begin[i][k]+1e-7 {
					t.Fatalf("%s.%s begins at %v, but its predecessor ends at %v", f.ID, j.ID, begin[i][k], end[i][before])
				}
			}
		}
		if !near(last, s.Completion[i]) {
			t.Fatalf("%s completes at %v, not %v", f.ID, last, s.Completion[i])
		}
	}
}

// jobTimes returns infinity for every job.
func jobTimes(p Problem) [][]float64 {
	times := make([][]float64, len(p.Flows))
	for i, f := range p.Flows {
		for range f.Jobs {
			times[i] = append(times[i], math.Inf(1))
		}
	}
	return times
}

// orZero returns x, or 0 for infinity: a job without slots.
func orZero(x float64) float64 {
	if math.IsInf(x, 1) {
		return 0
	}
	return x
}

func checkInstant(t *rapid.T, p Problem, slots []interval, at float64) {
	total, has := 0, make(map[[2]int]int)
	for _, a := range slots {
		if a.From < at && at < a.To {
			total += a.Slots
			has[[2]int{a.Flow, a.Job}] += a.Slots
		}
	}
	if total > p.Slots {
		t.Fatalf("%d slots of %d at %v", total, p.Slots, at)
	}
	for job, n := range has {
		if n > p.Flows[job[0]].Jobs[job[1]].Max {
			t.Fatalf("job %v has %d slots at %v", job, n, at)
		}
	}
}

// TestNowIsTheStart: Schedule.Now gives jobs at most their maxima, and as many slots as the
// schedule uses at its start.
func TestNowIsTheStart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProblem(t, 5, 6)
		s, slots, err := solveWithIntervals(p, Options{Aggregate: aggregate(t), ChainsOnly: rapid.Bool().Draw(t, "chains")})
		if err != nil {
			t.Fatal(err)
		}
		given, want := 0, 0
		for _, a := range slots {
			if a.From == 0 && a.To > 0 {
				want += a.Slots
			}
		}
		for _, share := range s.Now {
			j := p.Flows[share.Flow].Jobs[share.Job]
			if given += share.Slots; share.Slots <= 0 || share.Slots > j.Max || j.Work == 0 {
				t.Fatalf("%s has %d slots of %d", j.ID, share.Slots, j.Max)
			}
		}
		if given != want {
			t.Fatalf("%d slots now, %d in the schedule", given, want)
		}
	})
}

// TestChainKeepsTheBounds: stage 1 keeps the flow's squashed area and critical path, and each
// job's work.
func TestChainKeepsTheBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProblem(t, 2, 10)
		made, err := prepare(p)
		if err != nil {
			t.Fatal(err)
		}
		for i := range made.chains {
			c := &made.chains[i]
			area, path := 0.0, 0.0
			work := make([]float64, len(p.Flows[i].Jobs))
			for k := range c.jobs {
				area += c.jobs[k].work
				path += c.jobs[k].duration()
				for _, part := range c.allocations(int32(k)) {
					work[part.job] += float64(part.slots) * c.jobs[k].duration()
				}
			}
			if f := &made.flows[i]; !near(area, f.volume) || !near(path, f.path) {
				t.Fatalf("area %v of %v, path %v of %v", area, f.volume, path, f.path)
			}
			for k, j := range p.Flows[i].Jobs {
				if !near(work[k], j.Work) {
					t.Fatalf("%s has %v of %v in the chain", j.ID, work[k], j.Work)
				}
			}
		}
	})
}

// TestDeadlinesForEveryFlow: Solve rejects deadlines that are not one for each flow.
func TestDeadlinesForEveryFlow(t *testing.T) {
	p := Problem{Slots: 1, Flows: []Flow{{ID: "f", Cost: scheduler.Cost{Penalty: scheduler.Response, Weight: 1}}}}
	_, err := Solve(p, Options{Deadlines: [][]float64{{1}, {}}})
	if want := "options: field Deadlines[1] has 0 entries for 1 flows"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestLowerBoundHolds: whatever the ranks of its jobs, a flow does not end before its lower bound,
// which is at least Q.
func TestLowerBoundHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProblem(t, 1, 9)
		made, err := prepare(p)
		if err != nil {
			t.Fatal(err)
		}
		f := &made.flows[0]
		if f.lowerBound < f.q || f.q < f.path {
			t.Fatalf("path %v, Q %v, lower bound %v: want ascending", f.path, f.q, f.lowerBound)
		}
		packer := newPacker(made.slots, made.graphFlows())
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "ranks"), 0))
		for range 5 {
			if done := packer.pack([]int32{0})[0]; done < f.lowerBound*(1-1e-9) {
				t.Fatalf("ends at %v, before the lower bound %v", done, f.lowerBound)
			}
			random.Shuffle(len(packer.ranks), func(i, j int) {
				packer.ranks[i], packer.ranks[j] = packer.ranks[j], packer.ranks[i]
			})
		}
	})
}

// TestPackIsFigure5 compares packing instant by instant with figure5.
func TestPackIsFigure5(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		made, err := prepare(drawProblem(t, 6, 6))
		if err != nil {
			t.Fatal(err)
		}
		order := positions(len(made.flows))
		rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "order"), 0)).Shuffle(len(order), func(i, j int) {
			order[i], order[j] = order[j], order[i]
		})
		want := figure5(made, order)
		for i, done := range newPacker(made.slots, made.chainFlows()).pack(order) {
			if !near(done, want[i]) {
				t.Fatalf("flow %d ends at %v, by Figure 5 at %v", i, done, want[i])
			}
		}
	})
}

// used is the number of slots in use from the end of the previous entry until a time.
type used struct{ until, slots float64 }

// figure5 returns completion times of chains packed one after the other into free slots.
func figure5(p *problem, order []int32) []float64 {
	done, use := make([]float64, len(order)), []used{{math.Inf(1), 0}}
	for _, i := range order {
		now := 0.0
		for _, j := range p.chains[i].jobs {
			left := j.work
			for left > 0 {
				at := slices.IndexFunc(use, func(u used) bool { return u.until > now })
				give := min(float64(p.slots)-use[at].slots, j.max)
				until := min(use[at].until, now+left/give) // +Inf without slots
				if left -= give * (until - now); left < 1e-12 {
					left = 0
				}
				use = slices.Replace(use, at, at+1,
					used{now, use[at].slots}, used{until, use[at].slots + give}, use[at])
				now = until
			}
		}
		done[i] = now
		slices.SortStableFunc(use, func(a, b used) int { return cmp.Compare(a.until, b.until) })
	}
	return done
}

// TestLineOfManyJobs: a flow may be a line of many jobs. A long cycle is an error.
func TestLineOfManyJobs(t *testing.T) {
	const jobs = 10_000
	f := Flow{ID: "line", Cost: scheduler.Cost{Penalty: scheduler.Response, Weight: 1}}
	for k := range jobs {
		f.Jobs = append(f.Jobs, Job{ID: fmt.Sprint(k), Work: 2, Max: 2})
		if k > 0 {
			f.Jobs[k].After = []int{k - 1}
		}
	}
	s, err := Solve(Problem{Slots: 3, Flows: []Flow{f}}, Options{})
	if err != nil || !near(s.Completion[0], jobs) {
		t.Fatalf("%v, %v", s, err)
	}
	f.Jobs[0].After = []int{jobs - 1}
	if _, err := Solve(Problem{Slots: 3, Flows: []Flow{f}}, Options{}); err == nil {
		t.Fatal("Solve accepts a cycle")
	}
}

// TestCostsBelowZero: moving all due dates by the same time changes the cost of all schedules by
// the same amount. So the search packs as many orders and finds an equally good schedule if
// costs are negative.
func TestCostsBelowZero(t *testing.T) {
	search := func(flows int, due float64) (cost float64, orders int) {
		p, offset := drawCluster(flows, 25, scheduler.Metric{Penalty: scheduler.Lateness}), 0.0
		for i := range p.Flows {
			p.Flows[i].Cost.Due = due
			offset += p.Flows[i].Cost.Weight * due
		}
		made, err := prepare(p)
		if err != nil {
			t.Fatal(err)
		}
		s := newSearch(made, Options{})
		s.solveMinisum(nil)
		s.improveSchedule(DefaultEffort)
		return s.best.cost + offset, len(s.packed)
	}
	for flows := 4; flows <= 16; flows++ {
		want, wantOrders := search(flows, 0)
		got, orders := search(flows, 1e4)
		if orders != wantOrders || got > want*(1+1e-3) {
			t.Errorf("%d flows, negative costs: cost %v with %d orders, want %v with %d", flows, got, orders, want, wantOrders)
		}
	}
}
