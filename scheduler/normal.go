package scheduler

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// defaultTaskSeconds is a task's work before any job has been measured.
const defaultTaskSeconds = 1

// Normal validates a snapshot and returns its normal form. An error names the job and the
// invalid field. O(J log J).
//
// An amount is invalid if it is negative, NaN, infinite or above 1e15. Normal rejects:
//
//   - negative slots, and two jobs with one id;
//   - a negative Max, Min, Tasks or Running;
//   - a Pool that is not in Pools, and a pool with Max below Min;
//   - invalid amounts of Work, Alone (also of a flow), Share, weights, transfers and Bandwidth;
//   - SLA steps with times that do not rise, or with costs that fall or are invalid amounts;
//   - an unknown metric or penalty.
//
// Normal changes:
//
//   - jobs are sorted by id; those with a Max of 0 are left out;
//   - a weight or share of 0, which means not given, becomes 1;
//   - Min is at least 1 for a phase not measured yet, and at most Max;
//   - minima that together exceed the slots are scaled down in proportion, rounded
//     by largest remainder; before that each phase not measured yet keeps one slot,
//     in order of arrival, while slots last;
//   - Tasks is at least Max;
//   - Work not measured becomes Tasks times TaskSeconds. If TaskSeconds is 0, the mean task
//     of the measured jobs replaces it, or one second without any; Alone is at least Work;
//   - transfers are sorted by id, those with nothing left are left out; Left is at
//     least Ready, Whole at least Left;
//   - trackers and their measurements are sorted; measurements that took no time are left out.
//
// A deadline in the past stays: it is missed, and the lateness grows.
func (s Snapshot) Normal() (Snapshot, error) {
	if s.Slots < 0 {
		return s, fmt.Errorf("snapshot: field Slots is %d", s.Slots)
	}
	if !validAmount(s.TaskSeconds) {
		return s, fmt.Errorf("snapshot: field TaskSeconds is %v", s.TaskSeconds)
	}
	if err := s.Metric.check(); err != nil {
		return s, fmt.Errorf("snapshot: %w", err)
	}
	for _, p := range s.Pools {
		if p.Min < 0 || p.Max < p.Min {
			return s, fmt.Errorf("snapshot: field Pools has %+v", p)
		}
	}
	for _, f := range s.Flows {
		if !validAmount(f.Alone) {
			return s, fmt.Errorf("snapshot: flow %d: field Alone is %v", f.First, f.Alone)
		}
	}
	jobs := make([]Job, 0, len(s.Jobs))
	for _, j := range s.Jobs {
		if err := j.check(); err != nil {
			return s, fmt.Errorf("%v: %w", j.ID, err)
		}
		if j.Pool > len(s.Pools) {
			return s, fmt.Errorf("%v: field Pool is %d of %d", j.ID, j.Pool, len(s.Pools))
		}
		if j.Max > 0 {
			jobs = append(jobs, j)
		}
	}
	slices.SortFunc(jobs, func(a, b Job) int { return a.ID.Compare(b.ID) })
	for i := range jobs {
		if i > 0 && jobs[i].ID == jobs[i-1].ID {
			return s, fmt.Errorf("%v: field ID is given twice", jobs[i].ID)
		}
	}
	normalMinima(jobs, s.Slots)
	normalWork(jobs, s.TaskSeconds)
	s.Jobs = jobs
	if err := s.normalTransfers(); err != nil {
		return s, err
	}
	return s, s.normalTrackers()
}

func (j Job) check() error {
	switch {
	case j.Max < 0:
		return fmt.Errorf("field Max is %d", j.Max)
	case j.Min < 0:
		return fmt.Errorf("field Min is %d", j.Min)
	case j.Tasks < 0:
		return fmt.Errorf("field Tasks is %d", j.Tasks)
	case j.Pool < 0:
		return fmt.Errorf("field Pool is %d", j.Pool)
	case j.Running < 0:
		return fmt.Errorf("field Running is %d", j.Running)
	case !validAmount(j.Work):
		return fmt.Errorf("field Work is %v", j.Work)
	case !validAmount(j.Alone):
		return fmt.Errorf("field Alone is %v", j.Alone)
	case !validAmount(j.Share):
		return fmt.Errorf("field Share is %v", j.Share)
	}
	return j.Goal.Check()
}

// maxAmount bounds amounts so that sums and products of them stay finite and exact to about a
// second: 30 million years of one slot.
const maxAmount = 1e15

// validAmount reports whether x is finite, not negative and at most maxAmount.
func validAmount(x float64) bool { return x >= 0 && x <= maxAmount }

// normalWork estimates work that has not been measured. It runs after the minima, which depend
// on whether work was measured.
func normalWork(jobs []Job, taskSeconds float64) {
	work, tasks := 0.0, 0
	for _, j := range jobs {
		if j.Work > 0 {
			work += j.Work
			tasks += max(j.Tasks, j.Max)
		}
	}
	perTask := float64(defaultTaskSeconds)
	switch {
	case taskSeconds > 0:
		perTask = taskSeconds
	case tasks > 0:
		perTask = work / float64(tasks)
	}
	for i := range jobs {
		j := &jobs[i]
		j.Tasks = max(j.Tasks, j.Max)
		if j.Work == 0 {
			j.Work = perTask * float64(j.Tasks)
		}
		j.Alone = max(j.Alone, j.Work)
		j.Goal.Weight = cmp.Or(j.Goal.Weight, 1)
		j.Share = cmp.Or(j.Share, 1)
	}
}

func normalMinima(jobs []Job, slots int) {
	total := 0
	for i := range jobs {
		j := &jobs[i]
		if j.Work == 0 {
			j.Min = max(j.Min, 1)
		}
		j.Min = min(j.Min, j.Max)
		total += j.Min
	}
	if total <= slots {
		return
	}
	// First reserve one slot for each unmeasured phase, then divide the rest in proportion.
	reserved, rest := make([]int, len(jobs)), 0
	left := slots
	for _, i := range byArrival(jobs) {
		if jobs[i].Work == 0 && left > 0 {
			reserved[i] = 1
			left--
		}
		rest += jobs[i].Min - reserved[i]
	}
	scale := func(i int) float64 {
		return float64(jobs[i].Min-reserved[i]) * float64(left) / float64(rest)
	}
	given, remainders := 0, make([]int, len(jobs))
	for i := range jobs {
		given += int(scale(i))
		remainders[i] = i
	}
	slices.SortStableFunc(remainders, func(a, b int) int {
		return cmp.Compare(scale(b)-math.Floor(scale(b)), scale(a)-math.Floor(scale(a)))
	})
	extra := make([]int, len(jobs))
	for _, i := range remainders[:max(0, min(left-given, len(jobs)))] {
		extra[i] = 1
	}
	for i := range jobs {
		jobs[i].Min = min(jobs[i].Min, reserved[i]+int(scale(i))+extra[i])
	}
}
