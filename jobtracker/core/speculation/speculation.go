// Package speculation chooses the running tasks that get a second attempt, on another tracker. It
// follows LATE ("Improving MapReduce Performance in Heterogeneous Environments", OSDI 2008): the
// task with the longest remaining time comes first, and only if another tracker would end it much
// sooner. An attempt beside a slow one may be slow, too: only the latest one of each task counts.
// [Choose] is a function of values: it reads no clock and has no state.
//
// # The remaining time of an attempt
//
// The usual time is the mean of the job's tasks that ended on other trackers. An attempt that is
// older than the limit is slow: the usual time plus Rules.Threshold + 2 standard deviations, at
// least half as much again. The first line that applies gives the time that an attempt takes in
// all:
//
//	its tracker's mean is beyond the limit and its age this mean
//	it reports progress, has run for half of the       its age divided by its progress
//	usual time, and not for trustedLimits limits
//	older than the limit                               twice its age: nothing tells when it ends
//	otherwise                                          the usual time
//
// Measured times come before progress, which is not believed for ever: an attempt may read its
// input ahead of its work.
//
// If no task of the phase has ended, tasks of other jobs give the usual time (Phase.Others). They
// may differ much: the limit is then othersLimit usual times and at least leastOthers, and
// progress counts beyond it only.
//
// # Invariants
//
//	S1  An attempt is chosen at most once, and only on a site where it may run.
//	S2  No site gets more attempts than it has free slots, and a phase no more than Limit.
//	S3  When a second attempt would begin, a chosen one has more than worthwhile times the time
//	    of a task on the site left, and at least minGain more than it.
//	S4  Of two attempts, the one with the longer remaining time chooses its site first: one
//	    where tasks of the phase have ended, then the fastest one, then the one with more
//	    free slots.
package speculation

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/quernmr/quern/history"
)

// Rules limits the speculation of a job.
type Rules struct {
	Threshold    float64 // with it grows the age after which an attempt is slow
	RunningShare float64 // speculative attempts at a time, as a share of the running tasks,
	TotalShare   float64 // of all tasks of the phase,
	AtLeast      int     // and at least so many
}

// DefaultRules has the values of Hadoop's mapred-default.xml.
var DefaultRules = Rules{Threshold: 1, RunningShare: 0.1, TotalShare: 0.01, AtLeast: 10}

// Phase describes the maps or the reduces of a job.
type Phase struct {
	Tasks       int // of the phase
	Running     int // running tasks
	Speculative int // attempts beside another one of the same task

	Ended     history.Sum // tasks that succeeded
	Deviation float64     // standard deviation of their times, as a fraction of the mean

	Others bool          // none has ended: Ended is about tasks of other jobs
	Before time.Duration // from the choice of a second attempt to its begin
}

// Attempt is the latest running attempt of a task.
type Attempt struct {
	Age   time.Duration // since its launch, without the start of its process
	Done  float64       // its progress from 0 to 1; 0 or 1: unknown
	There history.Sum   // tasks of the phase that ended on its tracker
}

// Site is a tracker with free slots.
type Site struct {
	Free  int
	There history.Sum // tasks of the phase that ended there
}

// Choice is a second attempt: the indexes of a running attempt and of a site.
type Choice struct{ Attempt, Site int }

const (
	leastSlow     = 1.5                    // the limit is at least so many usual times
	trustedLimits = 2                      // progress counts up to this number of limits
	worthwhile    = 1.5                    // see S3
	minGain       = 500 * time.Millisecond // a process start costs about as much
	fewEnded      = 4                      // with fewer ended tasks, Deviation is at least fewDeviation
	fewDeviation  = 0.5
	othersLimit   = 10
	leastOthers   = 10 * time.Second
	leastEnded    = 0.05 // share of the tasks that must have ended, as in Hadoop
)

// See LookAfter.
const (
	minLook, maxLook = 100 * time.Millisecond, time.Second
	looksPerTask     = 4
)

// LookAfter returns the time from one look at a phase to the next, given the mean time of its tasks.
func LookAfter(mean time.Duration) time.Duration {
	return min(max(mean/looksPerTask, minLook), maxLook)
}

// Limit returns how many more second attempts the phase may have.
func (p *Phase) Limit(r Rules) int {
	most := max(r.AtLeast, int(r.TotalShare*float64(p.Tasks)), int(r.RunningShare*float64(p.Running)))
	return max(0, most-p.Speculative)
}

// Comparable reports whether enough tasks have ended to compare the others with them.
func (p *Phase) Comparable() bool {
	return p.Ended.Tasks > 0 && (p.Others || float64(p.Ended.Tasks) >= leastEnded*float64(p.Tasks))
}

// Remaining estimates how long an attempt still runs.
func (p *Phase) Remaining(r Rules, a *Attempt) time.Duration {
	elsewhere := history.Sum{Tasks: p.Ended.Tasks - a.There.Tasks, Took: p.Ended.Took - a.There.Took}
	usual := cmp.Or(elsewhere.Mean(), p.Ended.Mean())
	limit := scaled(usual, max(leastSlow, 1+(r.Threshold+2)*p.deviation()))
	trusted := a.Age >= usual/2 && a.Age < trustedLimits*limit
	if p.Others {
		limit = max(othersLimit*usual, leastOthers)
		trusted = a.Age > limit && a.Age < trustedLimits*limit
	}
	there := a.There.Mean()
	switch {
	case there > limit && there > a.Age:
		return there - a.Age
	case a.Done > 0 && a.Done < 1 && trusted:
		return scaled(a.Age, 1/a.Done-1)
	case a.Age > limit:
		return a.Age
	}
	return usual - a.Age
}

// deviation is Deviation if it was measured, and a large one before.
func (p *Phase) deviation() float64 {
	if p.Ended.Tasks < fewEnded {
		return max(p.Deviation, fewDeviation)
	}
	return p.Deviation
}

// Choose chooses second attempts, in order. allowed reports whether an attempt's task may run on
// a site.
func Choose(p *Phase, r Rules, attempts []Attempt, sites []Site, allowed func(attempt, site int) bool) (chosen []Choice) {
	if !p.Comparable() {
		return nil
	}
	free, freeSlots, fastest := make([]int, len(sites)), 0, time.Duration(math.MaxInt64)
	for s := range sites {
		free[s] = sites[s].Free
		freeSlots += free[s]
		fastest = min(fastest, p.at(&sites[s]))
	}
	left := make([]time.Duration, len(attempts))
	var order []int // mostly empty: most attempts would end no sooner on the fastest site
	for i := range attempts {
		if left[i] = p.Remaining(r, &attempts[i]) - p.Before; freeSlots > 0 && gains(left[i], fastest) {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(x, y int) int { return cmp.Compare(left[y], left[x]) })
	for _, i := range order {
		if len(chosen) >= min(p.Limit(r), freeSlots) {
			break
		}
		best := -1
		for s := range sites {
			if free[s] > 0 && gains(left[i], p.at(&sites[s])) && allowed(i, s) && (best < 0 || p.better(sites, free, s, best)) {
				best = s
			}
		}
		if best >= 0 {
			free[best]--
			chosen = append(chosen, Choice{i, best})
		}
	}
	return chosen
}

// at is the expected time of a task on a site.
func (p *Phase) at(s *Site) time.Duration { return cmp.Or(s.There.Mean(), p.Ended.Mean()) }

// gains reports whether a task with so much time left would end much sooner where tasks take there.
func gains(left, there time.Duration) bool {
	return left > scaled(there, worthwhile) && left > there+minGain
}

// better compares two sites for the same attempt. A site where no task has ended may be slow.
func (p *Phase) better(sites []Site, free []int, a, b int) bool {
	unknown := func(s *Site) int { return max(0, 1-s.There.Tasks) }
	return cmp.Or(cmp.Compare(unknown(&sites[a]), unknown(&sites[b])), cmp.Compare(p.at(&sites[a]), p.at(&sites[b])), cmp.Compare(free[b], free[a])) < 0
}

func scaled(d time.Duration, by float64) time.Duration { return time.Duration(float64(d) * by) }
