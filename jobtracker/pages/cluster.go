package pages

import (
	"fmt"
	"net/http"
	"time"

	"github.com/quernmr/quern/jobtracker/web"
)

// clusterPage is what the page of the cluster shows.
type clusterPage struct {
	web.Cluster
	Slots   [2]use // of maps, of reduces
	Running []jobRow
	Waiting int // jobs that have not begun
	Gantts  []*gantt
}

// use says how much of a whole is used.
type use struct{ Used, Total int }

func (h *handler) cluster(r *http.Request) (any, error) {
	page := new(clusterPage)
	if err := h.get(r, "/v1/cluster", nil, &page.Cluster); err != nil {
		return nil, err
	}
	if !page.IsLeader && page.Addr != "" {
		return nil, &problem{Status: http.StatusMisdirectedRequest, Text: "the leader has this page", Leader: page.Addr}
	}
	jobs, _, err := h.allJobs(r, unended())
	if err != nil {
		return nil, err
	}
	recent, err := h.recent(r)
	if err != nil {
		return nil, err
	}
	plans, err := h.allExplanations(r)
	if err != nil {
		return nil, err
	}
	page.sum(jobs)
	page.setGantts(recent, plans, h.now())
	return page, nil
}

// unended selects the jobs that have not ended.
func unended() map[string][]string {
	return map[string][]string{"state": {"waiting", "preparing", "running", "committing", "stopping"}}
}

// sum computes the slots in use, and the rows of the jobs that run.
func (p *clusterPage) sum(jobs []web.Job) {
	for _, t := range p.Trackers {
		p.Slots[0].Used, p.Slots[0].Total = p.Slots[0].Used+t.Maps, p.Slots[0].Total+t.MapSlots
		p.Slots[1].Used, p.Slots[1].Total = p.Slots[1].Used+t.Reduces, p.Slots[1].Total+t.ReduceSlots
	}
	var begun []web.Job
	for i := range jobs {
		switch j := &jobs[i]; {
		case ended(j.State):
		case j.Maps.Running+j.Reduces.Running+j.Maps.Done == 0:
			p.Waiting++
		default:
			begun = append(begun, *j)
		}
	}
	p.Running = rowsOf(begun)
}

func (p *clusterPage) setGantts(recent *web.Recent, plans []web.Explanation, now time.Time) {
	for i, phase := range []string{"map", "reduce"} {
		if g := ganttOf(phase, p.Slots[i].Total, recent, plans, now); g != nil && len(g.Areas) > 0 {
			p.Gantts = append(p.Gantts, g)
		}
	}
}

// Condition says in a word how a task tracker is, for its class in the style.
func (clusterPage) Condition(t web.Tracker) string {
	switch {
	case !t.Connected:
		return "silent"
	case t.Excluded != "":
		return "excluded"
	case t.Trouble != "":
		return "troubled"
	}
	return "well"
}

// Limit formats a limit of a pool; -1: none.
func (clusterPage) Limit(slots int) string {
	if slots < 0 {
		return "none"
	}
	return fmt.Sprint(slots)
}
