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
	jobs, _, err := h.allJobs(r)
	if err != nil {
		return nil, err
	}
	page.sum(jobs, h.now())
	return page, nil
}

// sum computes the slots in use, and the rows of the jobs that run.
func (p *clusterPage) sum(jobs []web.Job, now time.Time) {
	for _, t := range p.Trackers {
		p.Slots[0].Used, p.Slots[0].Total = p.Slots[0].Used+t.Maps, p.Slots[0].Total+t.MapSlots
		p.Slots[1].Used, p.Slots[1].Total = p.Slots[1].Used+t.Reduces, p.Slots[1].Total+t.ReduceSlots
	}
	for i := range jobs {
		switch {
		case ended(jobs[i].State):
		case jobs[i].Maps.Running+jobs[i].Reduces.Running == 0 && jobs[i].Maps.Done == 0:
			p.Waiting++
		default:
			p.Running = append(p.Running, rowOf(&jobs[i]))
		}
	}
	setAxis(p.Running)
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

// Load says how many slots of a task tracker work.
func (clusterPage) Load(t web.Tracker) string {
	return fmt.Sprintf("%d of %d, %d of %d", t.Maps, t.MapSlots, t.Reduces, t.ReduceSlots)
}
