package scheduler

import (
	"slices"

	"github.com/quernmr/quern/wire"
)

// Forecasting adds forecast ends of phases to the plans of a policy without any. It asks the
// policy for a new plan each time a phase ends, as if slots were divisible and no job arrived.
type Forecasting struct{ Policy Policy }

// maxForecast is the number of jobs up to which ends are forecast: each takes one plan.
const maxForecast = 200

// Plan implements [Policy]. If the forecast fails, it returns the policy's Plan without ends.
func (f Forecasting) Plan(s Snapshot) (Plan, error) {
	plan, err := f.Policy.Plan(s)
	if err != nil || len(plan.Targets) > maxForecast {
		return plan, err
	}
	ends, err := f.ends(s, plan)
	if err != nil {
		return plan, nil
	}
	for i := range plan.Targets {
		plan.Targets[i].End = ends[plan.Targets[i].Job]
	}
	return plan, nil
}

// ends simulates the policy until all jobs of the snapshot have ended, in O(J) plans.
func (f Forecasting) ends(s Snapshot, plan Plan) (map[wire.JobID]float64, error) {
	minima := make(map[wire.JobID]int, len(s.Jobs))
	for _, j := range s.Jobs {
		minima[j.ID] = j.Min
	}
	s, err := s.Normal()
	if err != nil {
		return nil, err
	}
	for i := range s.Jobs { // a measured phase needs no slot for measuring
		s.Jobs[i].Min = min(minima[s.Jobs[i].ID], s.Jobs[i].Max)
	}
	s.Trackers, s.Measured = nil, nil // their times hold for now only
	s.Transfers = slices.Clone(s.Transfers)
	ends, now := make(map[wire.JobID]float64, len(s.Jobs)), 0.0
	for {
		slots := make(map[wire.JobID]int, len(plan.Targets))
		for _, t := range plan.Targets {
			slots[t.Job] = t.Slots
		}
		next := 0.0
		for _, j := range s.Jobs {
			if n := slots[j.ID]; n > 0 && (next == 0 || j.Work/float64(n) < next) {
				next = j.Work / float64(n)
			}
		}
		if next == 0 {
			return ends, nil // jobs without slots in a plan without progress never end
		}
		now += next
		s.advance(next, slots, plan.ShuffleShares)
		s.Jobs = slices.DeleteFunc(s.Jobs, func(j Job) bool {
			over := slots[j.ID] > 0 && j.Work <= 1e-9*j.Alone
			if over {
				ends[j.ID] = now
			}
			return over
		})
		if len(s.Jobs) == 0 {
			return ends, nil
		}
		if plan, err = f.Policy.Plan(s); err != nil {
			return nil, err
		}
	}
}

// advance moves jobs with slots and shuffles with shares forward in time.
func (s *Snapshot) advance(seconds float64, slots map[wire.JobID]int, portions []ShuffleShare) {
	for i := range s.Jobs {
		j := &s.Jobs[i]
		n := slots[j.ID]
		done := min(j.Work, seconds*float64(n))
		for k := range s.Transfers {
			if t := &s.Transfers[k]; t.ID == j.ID && j.Work > 0 {
				t.Ready += (t.Left - t.Ready) * done / j.Work
			}
		}
		j.Work -= done
		j.Running = n
	}
	for _, p := range portions {
		for k := range s.Transfers {
			if t := &s.Transfers[k]; t.ID == p.Job {
				moved := min(t.Ready, seconds*p.Share*s.Bandwidth)
				t.Ready -= moved
				t.Left -= moved
			}
		}
	}
}
