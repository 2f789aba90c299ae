package pages

import (
	"net/http"
	"slices"

	"github.com/quernmr/quern/jobtracker/web"
)

// schedulerPage shows the plan, and why each job has what it has.
type schedulerPage struct {
	web.Scheduling
	NoPlan string
	Plans  []planRow
	Hidden int // jobs that the user may not see
}

// planRow is a phase of a job in the plan.
type planRow struct {
	Job, Name, Pool string
	web.Phase
	Prediction *web.Prediction
	Holds      []web.Hold
	First      bool // the first row of its job
}

func (h *handler) scheduler(r *http.Request) (any, error) {
	var cluster web.Cluster
	if err := h.get(r, "/v1/cluster", nil, &cluster); err != nil {
		return nil, err
	}
	plans, err := h.allExplanations(r)
	if err != nil {
		return nil, err
	}
	page := &schedulerPage{Scheduling: cluster.Scheduling, NoPlan: cluster.NoPlan, Hidden: max(0, cluster.Jobs-len(plans))}
	slices.SortStableFunc(plans, func(a, b web.Explanation) int { return rank(&a) - rank(&b) })
	for i := range plans {
		x := &plans[i]
		for k, p := range x.Phases {
			if p.Tasks == 0 {
				continue
			}
			page.Plans = append(page.Plans, planRow{Job: x.Job, Name: x.Name, Pool: x.Pool, Phase: p, Prediction: x.Prediction, Holds: x.Holds, First: k == 0})
		}
	}
	return page, nil
}

// rank is the first place of a job in the plan; jobs without one come last.
func rank(x *web.Explanation) int {
	best := 1 << 30
	for _, p := range x.Phases {
		if p.Place > 0 {
			best = min(best, p.Place)
		}
	}
	return best
}
