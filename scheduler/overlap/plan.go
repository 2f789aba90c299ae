package overlap

import (
	"cmp"
	"math"
	"slices"

	"github.com/quernmr/quern/scheduler"
	"github.com/quernmr/quern/wire"
)

// Plan implements [scheduler.Policy].
func (p MaxSRPT) Plan(s scheduler.Snapshot) (scheduler.Plan, error) { return plan(p.Lanes, s) }

// Plan implements [scheduler.Policy].
func (p SRPT) Plan(s scheduler.Snapshot) (scheduler.Plan, error) { return plan(p.Lanes, s) }

// Plan implements [scheduler.Policy]. It partitions the map slots as in section 4.3.
func (p SplitSRPT) Plan(s scheduler.Snapshot) (scheduler.Plan, error) { return plan(p.Lanes, s) }

// plan rounds the lanes' map rates to whole slots, and computes shares of the shuffle from
// those slots. Minima come first, and count as part of their lane's slots. The model serves one
// job at a time; here several jobs get slots, because none may exceed its Max. The order of
// precedence alternates between the lanes.
//
// For reduces the shuffle does not count: their slots go by work left.
func plan(lanes func([]Job) []Lane, s scheduler.Snapshot) (scheduler.Plan, error) {
	s, err := s.Normal()
	if err != nil {
		return scheduler.Plan{}, err
	}
	if s.Phase != wire.Map {
		s.Transfers = nil
	}
	active := fromSnapshot(s)
	chosen := lanes(active.jobs)
	slots := active.slots(chosen, s.Slots)
	maps := make([]float64, len(slots))
	for i := range slots {
		maps[i] = float64(slots[i]) / float64(max(1, s.Slots))
	}
	shares := make([]float64, len(slots))
	ServeShuffles(chosen, active.jobs, maps, shares)

	plan := scheduler.Plan{Targets: make([]scheduler.Target, 0, len(s.Jobs))}
	for i := range alternate(chosen, func(l *Lane) []int { return l.Maps }) {
		if active.max[i] > 0 {
			plan.Targets = append(plan.Targets, scheduler.Target{Job: active.ids[i], Slots: slots[i]})
		}
	}
	for i := range alternate(chosen, func(l *Lane) []int { return l.Shuffles }) {
		if active.shuffles[i] {
			plan.ShuffleShares = append(plan.ShuffleShares, scheduler.ShuffleShare{Job: active.ids[i], Share: min(1, shares[i])})
		}
	}
	return plan, nil
}

// activeJobs has the jobs of a snapshot with maps or shuffle left, by id.
type activeJobs struct {
	ids      []wire.JobID
	jobs     []Job
	min, max []int  // slots
	shuffles []bool // whether the job has shuffle left
}

// fromSnapshot converts sizes to seconds of a whole station. A job's Ratio comes from the work
// left now, not from the original sizes.
func fromSnapshot(s scheduler.Snapshot) *activeJobs {
	p, bandwidth := &activeJobs{}, bandwidth(s)
	slots := float64(max(1, s.Slots))
	for i, k := 0, 0; i < len(s.Jobs) || k < len(s.Transfers); { // merge both lists by id
		var j scheduler.Job
		var t scheduler.Transfer
		order := -1
		switch {
		case i == len(s.Jobs):
			order = 1
		case k < len(s.Transfers):
			order = s.Jobs[i].ID.Compare(s.Transfers[k].ID)
		}
		if order <= 0 {
			j = s.Jobs[i]
			i++
		}
		if order >= 0 {
			t = s.Transfers[k]
			k++
		}
		job := Job{
			Map: cmp.Or(t.Maps, j.Alone) / slots, Shuffle: t.Whole / bandwidth,
			MapLeft: j.Work / slots, Ready: t.Left / bandwidth,
		}
		// If little map work is left for much shuffle, all shuffle counts as ready, so that
		// Ratio stays finite.
		if notReady := (t.Left - t.Ready) / bandwidth; job.MapLeft > notReady*1e-12 {
			job.Ready, job.Ratio = t.Ready/bandwidth, notReady/job.MapLeft
		}
		p.ids = append(p.ids, cmp.Or(j.ID, t.ID))
		p.jobs = append(p.jobs, job)
		p.min, p.max = append(p.min, j.Min), append(p.max, j.Max)
		p.shuffles = append(p.shuffles, t.Left > 0)
	}
	return p
}

// bandwidth returns the snapshot's bandwidth, but at least one byte per second. If unmeasured, it
// returns the bandwidth at which all shuffles take as long as all maps.
func bandwidth(s scheduler.Snapshot) float64 {
	if s.Bandwidth > 0 {
		return max(1, s.Bandwidth)
	}
	work, bytes := 0.0, 0.0
	for _, j := range s.Jobs {
		work += j.Work
	}
	for _, t := range s.Transfers {
		bytes += t.Left
	}
	if work == 0 || bytes == 0 {
		return 1
	}
	return max(1, bytes*float64(max(1, s.Slots))/work)
}

// slots returns the slots of each job: first its minimum, then each lane's part of the slots by
// precedence. Slots that a lane cannot use go to any job that can.
func (p *activeJobs) slots(lanes []Lane, slots int) []int {
	given, left := slices.Clone(p.min), slots
	for _, least := range p.min {
		left -= least
	}
	fill := func(l *Lane, most int) {
		for _, i := range l.Maps {
			give := max(0, min(p.max[i]-given[i], most, left))
			given[i] += give
			most -= give
			left -= give
		}
	}
	unassigned := slots
	for k := range lanes {
		part := unassigned
		if k < len(lanes)-1 {
			part = int(math.Round(lanes[k].MapShare * float64(slots)))
		}
		unassigned -= part
		for _, i := range lanes[k].Maps {
			part -= p.min[i]
		}
		fill(&lanes[k], part)
	}
	for k := range lanes {
		fill(&lanes[k], left)
	}
	return given
}

// alternate yields one entry of each lane's list at a time.
func alternate(lanes []Lane, list func(*Lane) []int) func(yield func(int) bool) {
	return func(yield func(int) bool) {
		for at, more := 0, true; more; at++ {
			more = false
			for k := range lanes {
				if jobs := list(&lanes[k]); at < len(jobs) {
					more = true
					if !yield(jobs[at]) {
						return
					}
				}
			}
		}
	}
}
