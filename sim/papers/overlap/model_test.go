package overlap

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/quernmr/quern/scheduler/overlap"
)

// This file has the fluid model of section 2.1, which calls the policy at every event. Tests
// compare the engines with it. Other tests run the job tracker's policies in it and check the
// paper's guarantees.

// ratesOf is a policy. It sets maps[i] and shuffles[i] to the rates of job i at the stations.
// Jobs are in order of arrival; the rates are 0 before the call.
type ratesOf func(jobs []overlap.Job, maps, shuffles []float64)

// lending returns a policy of the job tracker: each lane uses its part of a station, and then
// all lanes share the rest in order.
func lending(lanes func([]overlap.Job) []overlap.Lane) ratesOf {
	return func(jobs []overlap.Job, maps, shuffles []float64) {
		all, left := lanes(jobs), 1.0
		for _, l := range all {
			left -= serveMap(l, jobs, min(left, l.MapShare), maps)
		}
		for _, l := range all {
			left -= serveMap(l, jobs, left, maps)
		}
		overlap.ServeShuffles(all, jobs, maps, shuffles)
	}
}

// strictRates is SplitSRPT as in the paper's Algorithm 2: lanes do not lend.
func strictRates(jobs []overlap.Job, maps, shuffles []float64) {
	for _, l := range (overlap.SplitSRPT{}).Lanes(jobs) {
		serveMap(l, jobs, l.MapShare, maps)
		l.ServeShuffle(jobs, l.ShuffleShare, maps, shuffles)
	}
}

// serveMap adds the lane's map rates within a capacity and returns the capacity used. The first
// job with map work takes all of it.
func serveMap(l overlap.Lane, jobs []overlap.Job, capacity float64, maps []float64) (used float64) {
	for _, i := range l.Maps {
		if jobs[i].MapLeft > 0 {
			maps[i] += capacity
			return capacity
		}
	}
	return 0
}

// inOrder returns a policy that serves the first job in a station's list. Jobs outside the list
// come last.
func inOrder(maps, shuffles []int) ratesOf {
	return lending(func(jobs []overlap.Job) []overlap.Lane {
		return []overlap.Lane{{Maps: listed(jobs, maps), Shuffles: listed(jobs, shuffles), MapShare: 1, ShuffleShare: 1}}
	})
}

func listed(jobs []overlap.Job, list []int) []int {
	rank := make(map[int]int, len(list))
	for at, number := range list {
		rank[number] = at - len(list) // below the rank of jobs outside the list
	}
	order := make([]int, len(jobs))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(rank[jobs[a].Number], rank[jobs[b].Number]) })
	return order
}

// modelLPS returns k-LPS, limited processor sharing (section 5.1). The first k jobs with map
// work share the map station. All jobs with shuffle work share the shuffle max-min.
func modelLPS(k int) ratesOf {
	return func(jobs []overlap.Job, maps, shuffles []float64) {
		var mapped []int
		for i := range jobs {
			if jobs[i].MapLeft > 0 && len(mapped) < k {
				mapped = append(mapped, i)
			}
		}
		for _, i := range mapped {
			maps[i] = 1 / float64(len(mapped))
		}
		wants := make([]float64, len(jobs))
		for i := range jobs {
			wants[i] = float64(maps[i] * jobs[i].Ratio)
			if jobs[i].Ready > 0 {
				wants[i] = math.Inf(1)
			}
		}
		level := waterLevel(wants)
		for i, want := range wants {
			shuffles[i] = min(want, level)
		}
	}
}

// waterLevel returns the level at which the wants, limited to this level, add up to 1; +Inf if
// they add up to less.
func waterLevel(wants []float64) float64 {
	ascending := slices.Sorted(slices.Values(wants))
	left := 1.0
	for k, want := range ascending {
		level := left / float64(len(ascending)-k)
		if want >= level {
			return level
		}
		left -= want
	}
	return math.Inf(1)
}

// newJob returns a job that has just arrived. A map size that is negligible beside the shuffle
// counts as 0, so that Ratio stays finite.
func newJob(x, y float64) overlap.Job {
	if x <= y*1e-12 {
		return overlap.Job{Shuffle: y, Ready: y}
	}
	return overlap.Job{Map: x, Shuffle: y, MapLeft: x, Ratio: y / x}
}

// isDone reports whether no work is left: without map work, all remaining shuffle work is ready.
func isDone(j *overlap.Job) bool { return j.MapLeft == 0 && j.Ready == 0 }

// check refuses invalid sizes.
func check(x, y float64) error {
	for _, size := range []struct {
		name  string
		value float64
	}{{"Map", x}, {"Shuffle", y}} {
		if !(size.value >= 0 && size.value <= maxSize) {
			return fmt.Errorf("field %s is %v", size.name, size.value)
		}
	}
	return nil
}

// maxSize bounds sizes and times, so that sums of them stay finite.
const maxSize = 1e15

// modelArrival is a job and its time of arrival.
type modelArrival struct {
	At           float64 // seconds
	Map, Shuffle float64 // sizes, seconds of a whole station
}

// modelSpan is an interval of constant rates. Its slices are valid until the observer returns.
type modelSpan struct {
	From, To       float64
	Jobs           []overlap.Job // state of the present jobs at From; Number is the index of the arrival
	Maps, Shuffles []float64     // rates
}

// runModel runs the policy until all jobs are done and returns their ends. Arrivals must be in
// order of time. It calls observe, if not nil, for every span. O(n) events, each O(m log m) for
// m jobs present.
func runModel(rates ratesOf, arrivals []modelArrival, observe func(*modelSpan)) ([]float64, error) {
	for i, a := range arrivals {
		err := check(a.Map, a.Shuffle)
		switch {
		case err != nil:
			return nil, fmt.Errorf("arrival %d: %w", i, err)
		case !(math.Abs(a.At) <= maxSize):
			return nil, fmt.Errorf("arrival %d: field At is %v", i, a.At)
		case i > 0 && a.At < arrivals[i-1].At:
			return nil, fmt.Errorf("arrival %d: field At is %v, before %v", i, a.At, arrivals[i-1].At)
		}
	}
	r := &model{rates: rates, arrivals: arrivals, ends: make([]float64, len(arrivals))}
	for r.next < len(arrivals) || len(r.span.Jobs) > 0 {
		if !r.step(observe) {
			return nil, fmt.Errorf("none of %d jobs is served at %v", len(r.span.Jobs), r.span.From)
		}
	}
	return r.ends, nil
}

type model struct {
	rates    ratesOf
	arrivals []modelArrival
	next     int // index of the next arrival
	ends     []float64
	span     modelSpan
}

// step advances to the next event; false if there is none.
func (r *model) step(observe func(*modelSpan)) bool {
	s := &r.span
	if len(s.Jobs) == 0 {
		s.From = r.arrivals[r.next].At
	}
	r.arrive()
	s.Maps, s.Shuffles = zeros(s.Maps, len(s.Jobs)), zeros(s.Shuffles, len(s.Jobs))
	r.rates(s.Jobs, s.Maps, s.Shuffles)
	wait := math.Inf(1)
	for i := range s.Jobs {
		wait = min(wait, s.jobEvent(i), s.overtakes(i))
	}
	s.To = s.From + wait
	if r.next < len(r.arrivals) && r.arrivals[r.next].At < s.To {
		s.To = r.arrivals[r.next].At
		wait = s.To - s.From
	}
	if math.IsInf(wait, 1) {
		return len(s.Jobs) == 0
	}
	if observe != nil {
		observe(s)
	}
	r.advance(wait)
	return true
}

// arrive adds the jobs that have arrived by now. Jobs without work are done.
func (r *model) arrive() {
	s := &r.span
	for ; r.next < len(r.arrivals) && r.arrivals[r.next].At <= s.From; r.next++ {
		a := r.arrivals[r.next]
		r.ends[r.next] = a.At
		if j := newJob(a.Map, a.Shuffle); !isDone(&j) {
			j.Number = r.next
			s.Jobs = append(s.Jobs, j)
		}
	}
}

// net returns the growth rate of a job's ready work.
func (s *modelSpan) net(i int) float64 {
	return float64(s.Maps[i]*s.Jobs[i].Ratio) - s.Shuffles[i]
}

// jobEvent returns the time until job i is mapped or has nothing ready.
func (s *modelSpan) jobEvent(i int) float64 {
	j, wait := &s.Jobs[i], math.Inf(1)
	if s.Maps[i] > 0 {
		wait = j.MapLeft / s.Maps[i]
	}
	if net := s.net(i); net < 0 && j.Ready > 0 {
		wait = min(wait, -j.Ready/net)
	}
	return wait
}

// overtakes returns the time until job i has less left to shuffle than a job ahead of it. That
// is the only event of two jobs. The time is slightly late, so that the order has changed then.
func (s *modelSpan) overtakes(i int) float64 {
	wait := math.Inf(1)
	if s.Shuffles[i] == 0 {
		return wait
	}
	left := s.Jobs[i].ShuffleLeft()
	for k := range s.Jobs {
		other := s.Jobs[k].ShuffleLeft()
		if faster := s.Shuffles[i] - s.Shuffles[k]; faster > 0 && other < left {
			wait = min(wait, (left-other+1e-12*left)/faster)
		}
	}
	return wait
}

// advance moves time to the end of the span and removes done jobs.
func (r *model) advance(wait float64) {
	s := &r.span
	kept := 0
	for i := range s.Jobs {
		j := s.Jobs[i]
		mapped := s.Maps[i] > 0 && j.MapLeft/s.Maps[i] <= wait
		net := s.net(i)
		drained := net < 0 && j.Ready > 0 && -j.Ready/net <= wait
		j.MapLeft = max(0, j.MapLeft-float64(s.Maps[i]*wait))
		if net != 0 {
			j.Ready = max(0, j.Ready+float64(net*wait))
		}
		if mapped {
			j.MapLeft = 0
		}
		if drained {
			j.Ready = 0
		}
		if isDone(&j) {
			r.ends[j.Number] = s.To
			continue
		}
		s.Jobs[kept] = j
		kept++
	}
	s.Jobs = s.Jobs[:kept]
	s.From = s.To
}

func zeros(s []float64, n int) []float64 {
	s = slices.Grow(s[:0], n)[:n]
	clear(s)
	return s
}
