package scheduler

import (
	"slices"

	"github.com/quernmr/quern/wire"
)

// Later says which slots a policy gives to jobs that are submitted later than others.
type Later int

const (
	LaterShare   Later = iota // a share
	LaterWait                 // those that earlier jobs leave
	LaterShorter              // as many as they can use, if they are shorter than what others have left
)

// Forecasting adds predicted ends of phases to the plans of a policy that predicts none. It asks
// the policy for a new plan each time a phase ends, as if slots were divisible and no job arrived.
type Forecasting struct{ Policy Policy }

// maxForecast is the largest number of jobs with predicted ends, because each job costs a plan.
const maxForecast = 200

// Plan implements [Policy]. If the forecast fails, it returns the policy's Plan without ends.
func (f Forecasting) Plan(s Snapshot) (Plan, error) {
	plan, err := f.Policy.Plan(s)
	if err != nil || len(plan.Targets) > maxForecast {
		return plan, err
	}
	ends, err := f.forecastEnds(s, plan)
	if err != nil {
		return plan, nil
	}
	for i := range plan.Targets {
		plan.Targets[i].End = ends[plan.Targets[i].Job]
	}
	return plan, nil
}

// forecastEnds simulates the policy until all jobs have ended, in O(J) plans. It returns the
// seconds from now to each job's end.
func (f Forecasting) forecastEnds(s Snapshot, plan Plan) (map[wire.JobID]float64, error) {
	minima := make(map[wire.JobID]int, len(s.Jobs))
	for _, j := range s.Jobs {
		minima[j.ID] = j.Min
	}
	s, err := s.Normal()
	if err != nil {
		return nil, err
	}
	// Only the first plan needs the slots that Normal reserves for measuring.
	for i := range s.Jobs {
		s.Jobs[i].Min = min(minima[s.Jobs[i].ID], s.Jobs[i].Max)
	}
	s.Trackers, s.Measured = nil, nil // they describe only the present
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
			return ends, nil // no job has slots: those left never end
		}
		now += next
		s.advance(next, slots, plan.ShuffleShares)
		s.Jobs = slices.DeleteFunc(s.Jobs, func(j Job) bool {
			ended := slots[j.ID] > 0 && j.Work <= 1e-9*j.Alone
			if ended {
				ends[j.ID] = now
			}
			return ended
		})
		if len(s.Jobs) == 0 {
			return ends, nil
		}
		if plan, err = f.Policy.Plan(s); err != nil {
			return nil, err
		}
	}
}

// advance subtracts the work that jobs and shuffles do in the given seconds.
func (s *Snapshot) advance(seconds float64, slots map[wire.JobID]int, shuffles []ShuffleShare) {
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
	for _, share := range shuffles {
		for k := range s.Transfers {
			if t := &s.Transfers[k]; t.ID == share.Job {
				fetched := min(t.Ready, seconds*share.Share*s.Bandwidth)
				t.Ready -= fetched
				t.Left -= fetched
			}
		}
	}
}
