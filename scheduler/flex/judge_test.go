package flex

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/quernmr/quern/scheduler"
)

// drawProblem draws up to most jobs and any metric. Work and due times are whole numbers, so that
// many jobs end together. With fullMax every job can use all slots.
func drawProblem(t *rapid.T, most int, fullMax bool) *Problem {
	m := rapid.SampledFrom(scheduler.Metrics()).Draw(t, "metric")
	p := &Problem{Slots: rapid.IntRange(1, 12).Draw(t, "slots"), Aggregate: m.Aggregate}
	left := p.Slots
	for range rapid.IntRange(1, most).Draw(t, "jobs") {
		j := Job{
			Work: float64(rapid.IntRange(0, 30).Draw(t, "work")), Max: p.Slots,
			Min: rapid.IntRange(0, min(3, left)).Draw(t, "min"),
		}
		if !fullMax {
			j.Max = rapid.IntRange(max(1, j.Min), p.Slots+2).Draw(t, "max")
		}
		left -= j.Min
		j.Cost = scheduler.Cost{Penalty: m.Penalty, Weight: 1, Due: float64(rapid.IntRange(-2, 12).Draw(t, "due"))}
		if m.Weighted {
			j.Cost.Weight = rapid.Float64Range(0.1, 3).Draw(t, "weight")
		}
		switch m.Penalty {
		case scheduler.Stretch:
			j.Cost.Penalty = scheduler.Response
			j.Cost.Weight /= max(1, j.Work)
		case scheduler.SLA:
			j.Cost.Levels = []scheduler.Level{
				{Due: j.Cost.Due, Cost: rapid.Float64Range(0, 2).Draw(t, "first")},
				{Due: j.Cost.Due + 3, Cost: rapid.Float64Range(2, 4).Draw(t, "second")},
			}
		}
		p.Jobs = append(p.Jobs, j)
	}
	return p
}

// endsByFig3 follows Fig. 3 literally: it computes all allocations for each interval, in O(J²).
func endsByFig3(p *Problem, order []int) []float64 {
	left, ends := p.keys(func(j *Job) float64 { return j.Work }), make([]float64, len(order))
	live, now := slices.Clone(order), 0.0
	for len(live) > 0 {
		slots, slack := make([]int, len(order)), p.Slots
		for _, j := range live {
			slots[j] = p.Jobs[j].Min
			slack -= slots[j]
		}
		for _, j := range live {
			more := min(slack, p.Jobs[j].Max-slots[j])
			slots[j] += more
			slack -= more
		}
		end, job := math.Inf(1), -1
		for _, j := range live {
			if e := left[j] / float64(slots[j]); left[j] == 0 {
				end, job = 0, j
				break
			} else if slots[j] > 0 && e < end {
				end, job = e, j
			}
		}
		for _, j := range live {
			left[j] = max(0, left[j]-float64(slots[j])*end)
		}
		now += end
		ends[job] = now
		live = slices.DeleteFunc(live, func(j int) bool { return j == job })
	}
	return ends
}

// checkFeasible checks F1: at every time each job has between its minimum and its maximum, all
// jobs together fit the slots, and each job's work is done at its end.
func checkFeasible(t *rapid.T, p *Problem, s *Schedule) {
	t.Helper()
	var times []float64
	done := make([]float64, len(p.Jobs))
	for _, piece := range s.Pieces {
		if piece.To <= piece.From || piece.To > s.Ends[piece.Job]+1e-9 {
			t.Fatalf("%+v, the job ends at %v", piece, s.Ends[piece.Job])
		}
		done[piece.Job] += piece.Slots * (piece.To - piece.From)
		times = append(times, piece.From, piece.To)
	}
	slices.Sort(times)
	for i := range max(0, len(times)-1) {
		if times[i+1]-times[i] < 1e-9 {
			continue
		}
		now, used := (times[i]+times[i+1])/2, 0.0
		for j, job := range p.Jobs {
			slots := s.at(j, now)
			used += slots
			if slots > float64(job.Max)+1e-9 || now < s.Ends[j] && slots < float64(job.Min)-1e-9 {
				t.Fatalf("at %v job %d of %+v has %v slots", now, j, job, slots)
			}
		}
		if used > float64(p.Slots)+1e-9 {
			t.Fatalf("at %v %v of %d slots are used", now, used, p.Slots)
		}
	}
	for j, job := range p.Jobs {
		if math.Abs(done[j]-job.Work) > 1e-6 {
			t.Fatalf("job %d has had %v of %v", j, done[j], job.Work)
		}
	}
}

// shortestByDefinition is the definition of shortestOrder: at each end it ranks all live jobs and
// assigns all slots again.
func shortestByDefinition(p *Problem) []int {
	left, ended := p.keys(func(j *Job) float64 { return j.Work }), make([]int, 0, len(p.Jobs))
	live := sorted(left)
	slices.Sort(live)
	for len(live) > 0 {
		slots, slack := make([]int, len(left)), p.Slots
		for _, j := range live {
			slots[j] = p.Jobs[j].Min
			slack -= slots[j]
		}
		keys := make([]float64, len(left))
		for _, j := range live {
			keys[j] = left[j] / float64(min(p.Jobs[j].Max, p.Jobs[j].Min+slack)) / p.Jobs[j].Cost.Weight
		}
		sortBy(live, keys)
		end, job := math.Inf(1), -1
		for _, j := range live {
			more := min(slack, p.Jobs[j].Max-slots[j])
			slots[j] += more
			slack -= more
			if e := left[j] / float64(slots[j]); slots[j] > 0 && e < end {
				end, job = e, j
			}
		}
		for _, j := range live {
			left[j] -= float64(slots[j]) * end
		}
		ended = append(ended, job)
		live = slices.DeleteFunc(live, func(j int) bool { return j == job })
	}
	return ended
}

// TestShortestAgainstRanks compares shortestOrder with its definition, for jobs without ties.
func TestShortestAgainstRanks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProblem(t, 12, rapid.Bool().Draw(t, "full max"))
		r := rand.New(rand.NewPCG(1, rapid.Uint64().Draw(t, "works")))
		for j := range p.Jobs {
			p.Jobs[j].Work = 0.1 + 30*r.Float64()
		}
		if got, want := shortestOrder(p), shortestByDefinition(p); !slices.Equal(got, want) {
			t.Fatalf("%v, want %v", got, want)
		}
	})
}

// TestWithoutContention: if all jobs can have their maxima, Solve does not search.
func TestWithoutContention(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProblem(t, 6, false)
		p.Slots = 0
		for _, j := range p.Jobs {
			p.Slots += j.Max
		}
		s, err := Solve(p)
		if err != nil {
			t.Fatal(err)
		}
		for j, job := range p.Jobs {
			if want := job.Work / float64(job.Max); math.Abs(s.Ends[j]-want) > 1e-9 {
				t.Fatalf("job %d of %+v ends at %v", j, p, s.Ends[j])
			}
		}
		if strings.Contains(s.Method, "improved") {
			t.Fatalf("by %s", s.Method)
		}
	})
}

func nearlyEqual(a, b []float64) bool {
	return slices.EqualFunc(a, b, func(x, y float64) bool { return math.Abs(x-y) < 1e-9*max(1, x) })
}

func TestPackAgainstFig3(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProblem(t, 9, false)
		order := rapid.Permutation(sorted(make([]float64, len(p.Jobs)))).Draw(t, "order")
		s := newPacker(p).schedule(order)
		if want := endsByFig3(p, order); !nearlyEqual(s.Ends, want) {
			t.Fatalf("ends %v, want %v", s.Ends, want)
		}
		checkFeasible(t, p, s)
	})
}

// TestFairAgainstSteps compares packFair with a version that assigns all slots again at every end.
func TestFairAgainstSteps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProblem(t, 9, false)
		for j := range p.Jobs {
			p.Jobs[j].Work++ // fairBySteps needs work in every job
		}
		r := newRecorder(len(p.Jobs))
		ends := packFair(p, r)
		if want := fairBySteps(p); !nearlyEqual(ends, want) {
			t.Fatalf("ends %v, want %v", ends, want)
		}
		checkFeasible(t, p, r.schedule(sorted(ends), ends))
	})
}

// fairBySteps returns the ends under FAIR. At every end it searches for the water level.
func fairBySteps(p *Problem) []float64 {
	left, ends := p.keys(func(j *Job) float64 { return j.Work }), make([]float64, len(p.Jobs))
	for now := 0.0; ; {
		rate := func(level float64) (rates []float64, total float64) {
			rates = make([]float64, len(p.Jobs))
			for j, job := range p.Jobs {
				if ends[j] == 0 {
					rates[j] = max(float64(job.Min), min(float64(job.Max), level))
					total += rates[j]
				}
			}
			return rates, total
		}
		low, high := 0.0, float64(p.Slots+3)
		for range 100 {
			if _, total := rate((low + high) / 2); total > float64(p.Slots) {
				high = (low + high) / 2
			} else {
				low = (low + high) / 2
			}
		}
		rates, total := rate(low)
		if total == 0 {
			return ends
		}
		end, job := math.Inf(1), -1
		for j := range rates {
			if e := left[j] / rates[j]; ends[j] == 0 && e < end {
				end, job = e, j
			}
		}
		for j := range rates {
			left[j] = max(0, left[j]-rates[j]*end)
		}
		now += end
		ends[job] = now
	}
}

// TestMoldable compares solutions of small allocation problems with an exhaustive search.
func TestMoldable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProblem(t, 4, false)
		value := func(slots []int) float64 {
			total := math.Inf(-1)
			if p.Aggregate == scheduler.Sum {
				total = 0
			}
			for j, s := range slots {
				if cost := p.Jobs[j].costWith(s); p.Aggregate == scheduler.Sum {
					total += cost
				} else {
					total = max(total, cost)
				}
			}
			return total
		}
		best := math.Inf(1)
		var try func(slots []int, left int)
		try = func(slots []int, left int) {
			if len(slots) == len(p.Jobs) {
				best = min(best, value(slots))
				return
			}
			job := p.Jobs[len(slots)]
			for s := job.Min; s <= min(job.Max, job.Min+left); s++ {
				try(append(slices.Clone(slots), s), left-(s-job.Min))
			}
		}
		try(nil, p.slack())
		slots := p.moldable()
		used := 0
		for j, s := range slots {
			used += s
			if s < p.Jobs[j].Min || s > p.Jobs[j].Max {
				t.Fatalf("job %d of %+v has %d slots", j, p.Jobs[j], s)
			}
		}
		if got := value(slots); used > p.Slots || got > best+1e-9*max(1, math.Abs(best)) {
			t.Fatalf("%v with slots %v of %d costs %v, the best %v", p, slots, p.Slots, got, best)
		}
	})
}

// TestConvexAgainstGreedy compares solveConvex with Fox's method, which assigns one slot at a time.
// There are many ties.
func TestConvexAgainstGreedy(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "jobs")
		p := &Problem{Slots: rapid.IntRange(n, 200).Draw(t, "slots")}
		gains := make([][]float64, n)
		left := p.Slots
		for j := range gains {
			p.Jobs = append(p.Jobs, Job{Max: rapid.IntRange(1, 60).Draw(t, "max")})
			for range p.Jobs[j].Max {
				gains[j] = append(gains[j], float64(rapid.IntRange(0, 30).Draw(t, "gain")))
			}
			slices.SortFunc(gains[j], func(a, b float64) int { return cmp.Compare(b, a) })
		}
		want := make([]int, n)
		for ; left > 0; left-- {
			first := -1
			for j := range want {
				if want[j] < p.Jobs[j].Max && (first < 0 || gains[j][want[j]] > gains[first][want[first]]) {
					first = j
				}
			}
			if first < 0 {
				break
			}
			want[first]++
		}
		got := p.solveConvex(func(j, s int) float64 { return gains[j][s] })
		if !slices.Equal(got, want) {
			t.Fatalf("%v, want %v", got, want)
		}
	})
}

// TestTardinessIsConvexInSlots: tardiness needs no dynamic programming, although the paper says so.
func TestTardinessIsConvexInSlots(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		j := Job{Work: rapid.Float64Range(0, 100).Draw(t, "work")}
		j.Cost = scheduler.Cost{Penalty: scheduler.Tardiness, Weight: 1, Due: rapid.Float64Range(-5, 20).Draw(t, "due")}
		for s := 1; s < 50; s++ {
			if j.costWith(s)-j.costWith(s+1) < j.costWith(s+1)-j.costWith(s+2)-1e-9 {
				t.Fatalf("costs %v %v %v from %d slots on", j.costWith(s), j.costWith(s+1), j.costWith(s+2), s)
			}
		}
	})
}

// TestSolutionsObey checks F1 for the results of Solve and for paced schedules.
func TestSolutionsObey(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProblem(t, 6, false)
		s, err := Solve(p)
		if err != nil {
			t.Fatal(err)
		}
		checkFeasible(t, p, s.Schedule)
		due := p.keys(func(j *Job) float64 { return j.Cost.Due })
		r := newRecorder(len(due))
		ends := paced(p, due, r)
		checkFeasible(t, p, r.schedule(sorted(due), ends))
	})
}

// TestSteady: the steady schedule for a maximum is within maxLoss of the best, and its sum of ends
// is no larger. If jobs can use all slots and have no minima, no order within the limit has a
// smaller sum than Smith's.
func TestSteady(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProblem(t, 6, false)
		best, err := Solve(p)
		if err != nil {
			t.Fatal(err)
		}
		limit := best.Value + maxLoss*math.Abs(best.Value) + 1e-9
		s := p.steady(best)
		if s.Value != p.Value(s.Ends) || s != best && (s.Value > limit || sum(s.Ends) >= sum(best.Ends)) {
			t.Fatalf("%+v instead of %+v", s, best)
		}
		checkFeasible(t, p, s.Schedule)
		if p.Aggregate != scheduler.Max || len(p.Jobs) < 2 || s.Method == "fair" || s.Method == "paced" {
			return
		}
		for j := range p.Jobs {
			p.Jobs[j].Min, p.Jobs[j].Max = 0, p.Slots
		}
		if best, err = Solve(p); err != nil {
			t.Fatal(err)
		}
		limit = best.Value + maxLoss*math.Abs(best.Value)
		k := newPacker(p)
		if v := k.value(p.smithOrder(limit)); v > limit+1e-9*max(1, math.Abs(limit)) {
			t.Fatalf("Smith's order costs %v, the limit is %v", v, limit)
		}
		total := k.total()
		order := sorted(make([]float64, len(p.Jobs)))
		everyOrder(order, 0, func() {
			if k.value(order) <= limit && k.total() < total-1e-6 {
				t.Fatalf("order %v ends at %v in sum, Smith's at %v", order, k.total(), total)
			}
		})
	})
}

func everyOrder(order []int, from int, visit func()) {
	if from == len(order) {
		visit()
		return
	}
	for i := from; i < len(order); i++ {
		order[from], order[i] = order[i], order[from]
		everyOrder(order, from+1, visit)
		order[from], order[i] = order[i], order[from]
	}
}
