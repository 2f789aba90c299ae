// Package overlap schedules maps and shuffles together so that the mean response time
// is small: MaxSRPT and SplitSRPT (Lin, Zhang, Wierman, Tan: Joint Optimization of
// Overlapping Phases in MapReduce, 2013). Sections named in this package are that
// paper's.
//
// The model (section 2.1) is fluid. There are two stations of capacity 1, map and shuffle. A
// job is (x, y): its seconds at each station if it has the whole station. Any part of a station
// may serve any job. The shuffled fraction of a job is never above the mapped fraction.
//
// [MaxSRPT], [SplitSRPT] and [SRPT] choose the order of service at each station ([Lane]). Their
// Plan turns lanes into whole map slots and into shares of the shuffle. Tests in
// sim/papers/overlap simulate the same lanes with arrivals and check the paper's guarantees.
//
// Invariants
//
//	O1  Shares of the shuffle are never negative and sum to at most 1. A job without map
//	    output to fetch shuffles at most as fast as its maps produce.
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
	Number       int     // identifies the job to callers that simulate it
	Map, Shuffle float64 // original sizes x and y: seconds of a whole station
	MapLeft      float64 // map work left, seconds
	Ready        float64 // shuffle work mapped and not shuffled, seconds
	Ratio        float64 // shuffle work per map work that is left
}

// ShuffleLeft returns the shuffle work left, ready or not, in seconds.
func (j *Job) ShuffleLeft() float64 { return j.Ready + float64(j.Ratio*j.MapLeft) }

// Bottleneck returns max(x(t), y(t)), the seconds that the rest of the job takes alone.
func (j *Job) Bottleneck() float64 { return max(j.MapLeft, j.ShuffleLeft()) }

// Unbalance returns max(x/y, y/x) for original sizes: +Inf if one of them is 0, 1 if both are.
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
	Maps, Shuffles         []int // indexes of jobs, by precedence at each station
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

// SRPT serves, at each station, the job with the least work left there first. It has no known
// guarantee. On the paper's workload it beats both of the paper's policies.
type SRPT struct{}

// Lanes returns one lane for all jobs.
func (SRPT) Lanes(jobs []Job) []Lane {
	return []Lane{{sorted(jobs, nil, byMap), sorted(jobs, nil, byShuffle), 1, 1}}
}

// SplitSRPT divides both stations between map-heavy and shuffle-heavy jobs, by the least
// [Job.Unbalance] of all jobs. Each class has SRPT at its heavy station (section 4.2). Unlike
// the paper's Algorithm 2, a class gives unused capacity to the other. This is stable at loads
// at which Algorithm 2 is not.
type SplitSRPT struct{}

// Lanes returns a lane for the map-heavy jobs and one for the shuffle-heavy jobs.
func (SplitSRPT) Lanes(jobs []Job) []Lane {
	least := math.Inf(1)
	for i := range jobs {
		least = min(least, jobs[i].Unbalance())
	}
	lightShare := 1 / (1 + least) // the paper's μ1
	mapHeavy := sorted(jobs, func(j *Job) bool { return j.Map >= j.Shuffle }, byMap)
	shuffleHeavy := sorted(jobs, func(j *Job) bool { return j.Map < j.Shuffle }, byShuffle)
	return []Lane{
		{mapHeavy, mapHeavy, 1 - lightShare, lightShare},
		{shuffleHeavy, shuffleHeavy, lightShare, 1 - lightShare},
	}
}

// byMap orders by map work left, then by shuffle work left.
func byMap(a, b *Job) int {
	return cmp.Or(cmp.Compare(a.MapLeft, b.MapLeft), cmp.Compare(a.ShuffleLeft(), b.ShuffleLeft()))
}

// byShuffle orders by shuffle work left. Ties go to the job with the most work ready, because
// it can use the network.
func byShuffle(a, b *Job) int {
	return cmp.Or(cmp.Compare(a.ShuffleLeft(), b.ShuffleLeft()), cmp.Compare(b.Ready, a.Ready))
}

// sorted returns the indexes of the jobs for which inClass holds, by precedence. A nil inClass
// means all jobs.
func sorted(jobs []Job, inClass func(*Job) bool, by func(a, b *Job) int) []int {
	order := make([]int, 0, len(jobs))
	for i := range jobs {
		if inClass == nil || inClass(&jobs[i]) {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return by(&jobs[a], &jobs[b]) })
	return order
}
