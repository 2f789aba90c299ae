// Package overlap schedules maps and shuffles together so that the mean response time
// is small: MaxSRPT and SplitSRPT (Lin, Zhang, Wierman, Tan: Joint Optimization of
// Overlapping Phases in MapReduce, 2013). Sections named in this package are that
// paper's.
//
// The model (section 2.1) is fluid. There are two stations of capacity 1, map and
// shuffle, and a job is (x, y): its seconds at each if it had the whole station. Any
// part of a station may serve any job, and the fraction of a job shuffled is never
// more than the fraction mapped. A [Policy] divides the stations among the jobs present;
// [Run] follows one through arrivals, event by event. [MaxSRPT], [SplitSRPT] and
// [SRPT] are policies of the live system too: their Plan has whole slots for the map
// station and shares for the shuffle. [LPS] is the paper's picture of Hadoop's fair
// scheduler, [InOrder] follows a given order at both stations, [Bound] is a lower bound
// for all policies.
//
// Sizes are never negative, NaN or infinite, nor above 1e15. A job without shuffle
// ends when it is mapped, a job without map work is all ready when it arrives.
//
// Invariants
//
//	O1  Rates of a station are never negative and sum to at most 1; only a job with map
//	    work left is mapped, and only what has been mapped is shuffled.
//	O2  The map station is busy as long as a job has map work. The shuffle is busy as long
//	    as a job has shuffle work ready. Only SplitSRPT.Strict lets both idle.
//	O3  Rates depend on the jobs alone; what a policy's order leaves tied goes to the job
//	    that stands first, in a plan to the lower id.
//
// Rates take O(n log n) for n jobs, and so does an event of Run: they are what the
// simulation of millions of arrivals (sim/papers/overlap) is compared with. A Plan
// takes O(n log n) too.
package overlap

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Job is the state of a job in the model.
type Job struct {
	Number       int     // who it is, for InOrder and observers
	Map, Shuffle float64 // original sizes x and y: seconds of a whole station
	Left         float64 // map work left, seconds
	Ready        float64 // shuffle work mapped and not shuffled, seconds
	Ratio        float64 // shuffle work that a unit of map work makes ready
}

// NewJob is a job of those sizes that has just arrived. A map size next to nothing
// beside the shuffle is none, so that Ratio stays finite.
func NewJob(x, y float64) Job {
	if x <= y*1e-12 {
		return Job{Shuffle: y, Ready: y}
	}
	return Job{Map: x, Shuffle: y, Left: x, Ratio: y / x}
}

// ShuffleLeft is the shuffle work left, ready or not, in seconds.
func (j *Job) ShuffleLeft() float64 { return j.Ready + float64(j.Ratio*j.Left) }

// Longest is max(x(t), y(t)): how long the job takes if nobody else is there.
func (j *Job) Longest() float64 { return max(j.Left, j.ShuffleLeft()) }

// Done says whether nothing is left. What a job maps now has to be shuffled too, at
// the rate at which it is mapped, so that both end at once.
func (j *Job) Done() bool { return j.Left == 0 && j.Ready == 0 }

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

// Policy divides the stations among jobs.
type Policy interface {
	// Rates sets maps[i] and shuffles[i] to the rates at which job i is served at each
	// station. Jobs are in order of arrival; the rates are 0 when it is called.
	Rates(jobs []Job, maps, shuffles []float64)
}

// lane is a class of jobs with a part of each station: who is served first at each.
type lane struct {
	maps, shuffles         []int // jobs by precedence
	mapShare, shuffleShare float64
}

// MaxSRPT serves at both stations the job with the least max(x(t), y(t)), and the
// next ones with what it leaves (section 4.1, and section 5 for the leavings).
type MaxSRPT struct{}

func (MaxSRPT) lanes(jobs []Job) []lane {
	order := sorted(jobs, nil, func(a, b *Job) int { return cmp.Compare(a.Longest(), b.Longest()) })
	return []lane{{order, order, 1, 1}}
}

// SRPT serves at each station the job that has least left there. No guarantee is known;
// on the paper's workload it is better than both of the paper's policies.
type SRPT struct{}

func (SRPT) lanes(jobs []Job) []lane {
	return []lane{{sorted(jobs, nil, byMap), sorted(jobs, nil, byShuffle), 1, 1}}
}

// SplitSRPT divides both stations between map-heavy and shuffle-heavy jobs, by the
// least unbalance of the jobs present, and serves each class by SRPT at its heavy
// station (section 4.2). What a class cannot use it lends to the other.
type SplitSRPT struct {
	// Strict forbids lending, as in the paper's Algorithm 2. Then the policy is
	// unstable at loads for which it is stable with lending.
	Strict bool
}

func (SplitSRPT) lanes(jobs []Job) []lane {
	least := math.Inf(1)
	for i := range jobs {
		least = min(least, jobs[i].Unbalance())
	}
	light := 1 / (1 + least) // the paper's μ1
	mapHeavy := sorted(jobs, func(j *Job) bool { return j.Map >= j.Shuffle }, byMap)
	shuffleHeavy := sorted(jobs, func(j *Job) bool { return j.Map < j.Shuffle }, byShuffle)
	return []lane{
		{mapHeavy, mapHeavy, 1 - light, light},
		{shuffleHeavy, shuffleHeavy, light, 1 - light},
	}
}

// InOrder serves at each station the job whose number comes first in its list, and
// those that are not in the list last.
type InOrder struct{ Maps, Shuffles []int }

func (o InOrder) lanes(jobs []Job) []lane {
	return []lane{{sorted(jobs, nil, listed(o.Maps)), sorted(jobs, nil, listed(o.Shuffles)), 1, 1}}
}

func listed(list []int) func(a, b *Job) int {
	rank := make(map[int]int, len(list))
	for at, number := range list {
		rank[number] = at - len(list) // below that of the others
	}
	return func(a, b *Job) int { return cmp.Compare(rank[a.Number], rank[b.Number]) }
}

// byMap orders by what is left of the map, then of the shuffle.
func byMap(a, b *Job) int {
	return cmp.Or(cmp.Compare(a.Left, b.Left), cmp.Compare(a.ShuffleLeft(), b.ShuffleLeft()))
}

// byShuffle orders by what is left of the shuffle. Of two with as much left the one
// with more ready goes first: when one overtakes another, it is the one that can be
// shuffled.
func byShuffle(a, b *Job) int {
	return cmp.Or(cmp.Compare(a.ShuffleLeft(), b.ShuffleLeft()), cmp.Compare(b.Ready, a.Ready))
}

// sorted is the jobs that are in the class, by precedence.
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

// LPS is limited processor sharing: the first K jobs with map work share the map
// station, all jobs with shuffle work share the shuffle, equally but none more than
// it can use (section 5.1, k-LPS).
type LPS struct {
	K int // at least 1; Run refuses less
}

// check refuses sizes that the model has no meaning for.
func check(x, y float64) error {
	for _, size := range []struct {
		name  string
		value float64
	}{{"Map", x}, {"Shuffle", y}} {
		if !(size.value >= 0 && size.value <= most) {
			return fmt.Errorf("field %s is %v", size.name, size.value)
		}
	}
	return nil
}

// most bounds sizes and times, so that sums of them stay finite.
const most = 1e15
