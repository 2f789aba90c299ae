package scheduler

import (
	"slices"

	"github.com/quernmr/quern/wire"
)

// Foreseeing says when phases end under a policy that does not: it has the policy
// plan again each time a phase ends, as if slots could be divided and nobody came.
type Foreseeing struct{ Policy Policy }

// foreseen is up to how many jobs that is done for, since it takes one plan a job.
const foreseen = 200

// Plan implements [Policy]. A snapshot in which it cannot see ahead has the policy's
// Plan all the same.
func (f Foreseeing) Plan(s Snapshot) (Plan, error) {
	plan, err := f.Policy.Plan(s)
	if err != nil || len(plan.Targets) > foreseen {
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

// ends plays the policy to the end of all it is told of, in O(J) plans.
func (f Foreseeing) ends(s Snapshot, plan Plan) (map[wire.JobID]float64, error) {
	asked := make(map[wire.JobID]int, len(s.Jobs))
	for _, j := range s.Jobs {
		asked[j.ID] = j.Min
	}
	s, err := s.Normal()
	if err != nil {
		return nil, err
	}
	for i := range s.Jobs { // measured, they need no slot for that
		s.Jobs[i].Min = min(asked[s.Jobs[i].ID], s.Jobs[i].Max)
	}
	s.Trackers, s.Measured = nil, nil // their times are of now
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
			return ends, nil // who has no slots now never has
		}
		now += next
		s.pass(next, slots, plan.Portions)
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

// pass lets time pass for jobs that have slots and shuffles that have shares.
func (s *Snapshot) pass(seconds float64, slots map[wire.JobID]int, portions []Portion) {
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
