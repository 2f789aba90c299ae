package forecast

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/quernmr/quern/history"
)

// FreeAt returns the seconds until each slot of a tracker is free, soonest first, given the
// remaining times of its running tasks. It sorts rests, and may return them.
func FreeAt(slots int, rests []float64) []float64 {
	slices.Sort(rests)
	if more := len(rests) - slots; more > 0 {
		return rests[more:] // its slots were reduced: the first tasks that end free none
	}
	free := make([]float64, slots)
	copy(free[slots-len(rests):], rests)
	return free
}

// minTasks is the number of tasks below which a mean is not compared.
const minTasks = 2

// Slowness is bounded, since task times vary.
const minSlowness, maxSlowness = 0.1, 10.0

// Slowness is the mean time of a job's tasks on a tracker, relative to the job's mean. It is 0 if
// too few have ended.
func Slowness(there history.Sum, mean time.Duration) float64 {
	if there.Tasks < minTasks || mean <= 0 {
		return 0
	}
	return clampSlowness(there.Mean().Seconds() / mean.Seconds())
}

// UpdateSlowness updates a tracker's slowness over all jobs (0: unknown) with the time of a task.
func UpdateSlowness(slow float64, job *history.Sum, took time.Duration) float64 {
	if job.Tasks < minTasks || job.Mean() <= 0 || took <= 0 {
		return slow
	}
	return 0.8*cmp.Or(slow, 1) + 0.2*clampSlowness(took.Seconds()/job.Mean().Seconds())
}

func clampSlowness(slow float64) float64 { return min(max(slow, minSlowness), maxSlowness) }

// OnTracker sums the tasks of one job that ended on a tracker.
type OnTracker struct {
	Tracker string
	Tasks   int
	Seconds float64 // sum of their times
}

// pastTasks is the largest number of tasks of an earlier job that count on a tracker.
const pastTasks = 4

// OnTrackers lists the tasks of a job's phase, and of the last job of the same name, by
// tracker name. History counts for at most pastTasks tasks per tracker.
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

// ByTracker lists the tasks of a phase by tracker name.
func ByTracker(sums map[string]*history.Sum) []OnTracker {
	list := make([]OnTracker, 0, len(sums))
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		list = append(list, OnTracker{name, sums[name].Tasks, sums[name].Took.Seconds()})
	}
	return list
}
