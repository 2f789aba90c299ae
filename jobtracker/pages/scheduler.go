package pages

import (
	"cmp"
	"net/http"
	"slices"

	"github.com/quernmr/quern/jobtracker/web"
	"github.com/quernmr/quern/locality"
	"github.com/quernmr/quern/scheduler"
	"github.com/quernmr/quern/scheduler/menu"
)

// schedulerHead is what both pages of the scheduler begin with.
type schedulerHead struct {
	web.Scheduling
	Tab   string
	Admin bool   // the user may change the scheduler
	Token string // of the user's form
}

// schedulerPage shows the plan, and why each job has what it has.
type schedulerPage struct {
	schedulerHead
	NoPlan string
	Plans  []planned
	Hidden int // jobs that the user may not see
}

// planned is a job in the plan.
type planned struct {
	web.Explanation
	Rows []planRow // of its phases that have tasks
}

// planRow is a phase of a job in the plan.
type planRow struct {
	web.Phase
	First bool // the first row of its job
}

func (h *handler) scheduler(r *http.Request) (any, error) {
	cluster, err := h.led(r)
	if err != nil {
		return nil, err
	}
	plans, err := h.allExplanations(r)
	if err != nil {
		return nil, err
	}
	page := &schedulerPage{schedulerHead: h.schedulerHead(r, &cluster, "plan"), NoPlan: cluster.NoPlan, Hidden: max(0, cluster.Jobs-len(plans))}
	slices.SortStableFunc(plans, func(a, b web.Explanation) int { return cmp.Compare(rank(&a), rank(&b)) })
	for _, x := range plans[:min(len(plans), rowsOfPage)] {
		p := planned{Explanation: x}
		for _, phase := range x.Phases {
			if phase.Tasks > 0 {
				p.Rows = append(p.Rows, planRow{phase, len(p.Rows) == 0})
			}
		}
		page.Plans = append(page.Plans, p)
	}
	return page, nil
}

func (h *handler) schedulerHead(r *http.Request, c *web.Cluster, tab string) schedulerHead {
	return schedulerHead{Scheduling: c.Scheduling, Tab: tab, Admin: c.Admin, Token: h.token(r)}
}

// Schedulers, MetricNames and Delays are the choices of the form.
func (*schedulerHead) Schedulers() []string  { return menu.Names() }
func (*schedulerHead) MetricNames() []string { return scheduler.MetricNames() }

// Delays has the current rule too, which may have a time of its own.
func (s *schedulerHead) Delays() []string {
	names := locality.RuleNames()
	if !slices.Contains(names, s.Delay) {
		names = append(names, s.Delay)
	}
	return names
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

// Ends says when the job ends, by its prediction.
func (p *planned) Ends() string {
	x := p.Prediction
	switch {
	case x == nil:
		return ""
	case x.LikelyMillis == 0:
		return x.Unknown
	case p.Submitted.IsZero():
		return ""
	}
	return clock(p.Submitted.Add(millis(x.LikelyMillis)))
}

// Late reports whether the job is predicted to miss its deadline.
func (p *planned) Late() bool { return p.Prediction != nil && p.Prediction.LateMillis > 0 }

// Span is the number of rows of the job.
func (p *planned) Span() int { return max(1, len(p.Rows)) }
