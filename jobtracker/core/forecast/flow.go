package forecast

import "time"

// Extent is one job of a flow with all its tasks, those that have ended too.
type Extent struct {
	N     int              // its number
	After []int            // numbers of the jobs whose output it reads, which come before it
	Tasks [2]int           // by phase
	Each  [2]time.Duration // that one takes, by phase
}

// Alone is the seconds that the jobs of a flow take if they have all slots: those on the
// critical path, each phase as wide as it can be, and at least as long as all its slots
// need for the tasks of a phase. A flow's stretch is measured by it. It does not change
// because parts of the flow are done.
func Alone(slots [2]int, flow []Extent) float64 {
	longest, area := 0.0, [2]float64{}
	ends := make(map[int]float64, len(flow))
	for _, j := range flow {
		at := 0.0
		for _, n := range j.After {
			at = max(at, ends[n])
		}
		for phase, tasks := range j.Tasks {
			work := Times(tasks, j.Each[phase])
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
