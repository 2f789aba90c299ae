package forecast

import "time"

// FlowJob is a job of a flow. It counts all its tasks, including ended ones.
type FlowJob struct {
	N     int              // job number
	After []int            // numbers of the jobs from which it reads output; they come first in the list
	Tasks [2]int           // by phase
	Each  [2]time.Duration // time of a task, by phase
}

// Alone is the time in seconds that a flow takes alone in the cluster; stretch is relative to it.
// It is the critical path if each phase gets all the slots that it can use. But it is at least the
// total work of each phase on all slots. It includes ended tasks, so it does not change with progress.
func Alone(slots [2]int, flow []FlowJob) float64 {
	longest, area := 0.0, [2]float64{}
	ends := make(map[int]float64, len(flow))
	for _, j := range flow {
		at := 0.0
		for _, n := range j.After {
			at = max(at, ends[n])
		}
		for phase, tasks := range j.Tasks {
			work := TotalSeconds(tasks, j.Each[phase])
			area[phase] += work
			at += work / float64(max(1, min(tasks, slots[phase])))
		}
		ends[j.N] = at
		longest = max(longest, at)
	}
	for phase, work := range area {
		longest = max(longest, work/float64(max(1, slots[phase])))
	}
	return longest
}
