package forecast

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/quernmr/quern/history"
)

// FreeAt is when each slot of a tracker is free, in seconds, soonest first, given what the
// tasks that run there have left. It sorts rests, and may return them.
func FreeAt(slots int, rests []float64) []float64 {
	slices.Sort(rests)
	if more := len(rests) - slots; more > 0 {
		return rests[more:] // it runs more than it may by now: the first to end free nothing
	}
	free := make([]float64, slots)
	copy(free[slots-len(rests):], rests)
	return free
}

// enough is how many tasks tell how fast a tracker is for a job.
const enough = 2

// Tasks scatter: no tracker is taken to be better or worse than this.
const leastSlow, mostSlow = 0.1, 10.0

// Slowness is how much longer than the mean a job's tasks took on a tracker; 0: too few have
// ended to say so.
func Slowness(there history.Sum, mean time.Duration) float64 {
	if there.Tasks < enough || mean <= 0 {
		return 0
	}
	return bounded(there.Mean().Seconds() / mean.Seconds())
}

// Slowed is a tracker's slowness for all jobs, 0: not known, after a task of a job has
// taken so long there.
func Slowed(slow float64, job *history.Sum, took time.Duration) float64 {
	if job.Tasks < enough || job.Mean() <= 0 || took <= 0 {
		return slow
	}
	return 0.8*cmp.Or(slow, 1) + 0.2*bounded(took.Seconds()/job.Mean().Seconds())
}

func bounded(slow float64) float64 { return min(max(slow, leastSlow), mostSlow) }

// OnTracker is the tasks of one job that ended on a tracker.
type OnTracker struct {
	Tracker string
	Tasks   int
	Seconds float64 // of all of them together
}

// OnTrackers lists the tasks of a job's phase, and of the last job of the same name, by
// their trackers' names. What history tells weighs no more than a few tasks on each.
func OnTrackers(own, past map[string]*history.Sum) []OnTracker {
	list := ByTracker(own)
	for _, p := range ByTracker(past) {
		tasks := min(p.Tasks, pastTasks)
		if tasks == 0 {
			continue
		}
		i, found := slices.BinarySearchFunc(list, p.Tracker, func(o OnTracker, name string) int { return cmp.Compare(o.Tracker, name) })
		if !found {
			list = slices.Insert(list, i, OnTracker{Tracker: p.Tracker})
		}
		list[i].Tasks += tasks
		list[i].Seconds += p.Seconds * float64(tasks) / float64(p.Tasks)
	}
	return list
}

// ByTracker lists the tasks of a phase by their trackers' names.
func ByTracker(sums map[string]*history.Sum) []OnTracker {
	list := make([]OnTracker, 0, len(sums))
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		list = append(list, OnTracker{name, sums[name].Tasks, sums[name].Took.Seconds()})
	}
	return list
}
