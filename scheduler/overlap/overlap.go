// Package overlap schedules maps and shuffles together so that the mean response time
// is small: MaxSRPT and SplitSRPT (Lin, Zhang, Wierman, Tan: Joint Optimization of
// Overlapping Phases in MapReduce, 2013). Sections named in this package are that
// paper's.
//
// The model (section 2.1) is fluid. There are two stations of capacity 1, map and shuffle. A
// job is (x, y): its seconds at each if it has the whole station. Any part of a station may
// serve any job. The shuffled fraction of a job is never above the mapped fraction.
//
// [MaxSRPT], [SplitSRPT] and [SRPT] choose the order of service at each station ([Lane]). Their
// Plan rounds that to whole slots for the map station and shares for the shuffle. The tests of
// sim/papers/overlap follow the same lanes through arrivals, event by event, and check the
// paper's guarantees.
//
// Invariants
//
//	O1  Shares of the shuffle are never negative and sum to at most 1. A job with nothing
//	    ready has at most the rate at which its maps produce.
//	O2  No slot idles while a job can use it. The whole shuffle capacity is in use while
//	    a job has shuffle work ready.
//	O3  Lanes depend on the jobs alone. Ties go to the first job given; in a plan, to the
//	    lower id.
//
// A Plan takes O(n log n) for n jobs.
package overlap

import (
	"cmp"
	"math"
	"slices"
)

// Job is the state of a job in the model.
type Job struct {
	Number       int     // identifies the job to callers that follow it through time
	Map, Shuffle float64 // original sizes x and y: seconds of a whole station
	MapLeft      float64 // map work left, seconds
	Ready        float64 // shuffle work mapped and not shuffled, seconds
	Ratio        float64 // shuffle work that a unit of map work makes ready
}

// ShuffleLeft returns the shuffle work left, ready or not, in seconds.
func (j *Job) ShuffleLeft() float64 { return j.Ready + float64(j.Ratio*j.MapLeft) }

// Longest is max(x(t), y(t)): the seconds that the job takes alone.
func (j *Job) Bottleneck() float64 { return max(j.MapLeft, j.ShuffleLeft()) }

// Unbalance is max(x/y, y/x) on original sizes: +Inf if one of them is 0, 1 if both are.
func (j *Job) Unbalance() float64 {
	switch x, y := j.Map, j.Shuffle; {
	case x == y:
		return 1
	case x == 0 || y == 0:
		return math.Inf(1)
	default:
		return max(x/y, y/x)
	}
}

// Lane is a class of jobs with a part of each station and an order of service at each.
type Lane struct {
	Maps, Shuffles         []int // jobs by precedence
	MapShare, ShuffleShare float64
}

// MaxSRPT serves the job with the least max(x(t), y(t)) first at both stations (section 4.1).
// The next jobs get the capacity that it leaves (section 5).
type MaxSRPT struct{}

// Lanes returns one lane for all jobs.
func (MaxSRPT) Lanes(jobs []Job) []Lane {
	order := sorted(jobs, nil, func(a, b *Job) int { return cmp.Compare(a.Bottleneck(), b.Bottleneck()) })
	return []Lane{{order, order, 1, 1}}
}

// SRPT serves the job with the least left at each station first. It has no known guarantee; on
// the paper's workload it beats both of the paper's policies.
type SRPT struct{}

// Lanes returns one lane for all jobs.
func (SRPT) Lanes(jobs []Job) []Lane {
	return []Lane{{sorted(jobs, nil, byMap), sorted(jobs, nil, byShuffle), 1, 1}}
}

// SplitSRPT divides both stations between map-heavy and shuffle-heavy jobs, by the least
// unbalance of the jobs present. Each class has SRPT at its heavy station (section 4.2). A
// class lends unused capacity to the other; the paper's Algorithm 2 does not, and is unstable
// at loads at which this is stable.
type SplitSRPT struct{}

// Lanes returns the map-heavy jobs and the shuffle-heavy ones.
func (SplitSRPT) Lanes(jobs []Job) []Lane {
	least := math.Inf(1)
	for i := range jobs {
		least = min(least, jobs[i].Unbalance())
	}
	light := 1 / (1 + least) // the paper's μ1
	mapHeavy := sorted(jobs, func(j *Job) bool { return j.Map >= j.Shuffle }, byMap)
	shuffleHeavy := sorted(jobs, func(j *Job) bool { return j.Map < j.Shuffle }, byShuffle)
	return []Lane{
		{mapHeavy, mapHeavy, 1 - light, light},
		{shuffleHeavy, shuffleHeavy, light, 1 - light},
	}
}

// byMap orders by map work left, then by shuffle work left.
func byMap(a, b *Job) int {
	return cmp.Or(cmp.Compare(a.MapLeft, b.MapLeft), cmp.Compare(a.ShuffleLeft(), b.ShuffleLeft()))
}

// byShuffle orders by shuffle work left, then by most work ready: after a tie the job that can
// shuffle goes first.
func byShuffle(a, b *Job) int {
	return cmp.Or(cmp.Compare(a.ShuffleLeft(), b.ShuffleLeft()), cmp.Compare(b.Ready, a.Ready))
}

// sorted returns the jobs of the class by precedence.
func sorted(jobs []Job, in func(*Job) bool, by func(a, b *Job) int) []int {
	order := make([]int, 0, len(jobs))
	for i := range jobs {
		if in == nil || in(&jobs[i]) {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return by(&jobs[a], &jobs[b]) })
	return order
}
