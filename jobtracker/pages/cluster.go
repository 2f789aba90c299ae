package pages

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quernmr/quern/jobtracker/web"
)

// clusterPage is what the page of the cluster shows.
type clusterPage struct {
	web.Cluster
	Use     [2]use // of slots for maps, for reduces
	Jobs    jobTable
	Running int // jobs that run
	Waiting int // jobs that have not begun
	Slots   []*stack
	Fleet   fleet
	Limits  []web.Limit
}

// use says how much of a whole is used.
type use struct{ Used, Total int }

// Part is the used part of the whole.
func (u use) Part() float64 { return part(u.Used, u.Total) }

// shownJobs and shownTrackers limit the tables of the page of the cluster, which has links to all.
const shownJobs, shownTrackers = 10, 20

// led asks for the cluster, and fails at a follower, which knows no task trackers.
func (h *handler) led(r *http.Request) (c web.Cluster, err error) {
	if err := h.get(r, "/v1/cluster", nil, &c); err != nil {
		return c, err
	}
	if !c.IsLeader && c.Addr != "" {
		return c, &problem{Status: http.StatusMisdirectedRequest, Text: "the leader has this page", Leader: c.Addr}
	}
	return c, nil
}

func (h *handler) cluster(r *http.Request) (any, error) {
	page := new(clusterPage)
	var err error
	if page.Cluster, err = h.led(r); err != nil {
		return nil, err
	}
	jobs, _, err := readList[web.Job](h, r, "/v1/jobs", url.Values{"state": states[1:6]}, maxJobs)
	if err != nil {
		return nil, err
	}
	var past web.Plans
	if err := h.get(r, "/v1/plans", nil, &past); err != nil {
		return nil, err
	}
	plans, err := h.allExplanations(r)
	if err != nil {
		return nil, err
	}
	page.sum(jobs, h.now())
	names := make(map[string]string)
	for i := range jobs {
		names[jobs[i].ID] = jobs[i].Name
	}
	for i := range past.Items {
		if s := slotsOf(&past.Items[i], plans, names, h.now()); s != nil {
			page.Slots = append(page.Slots, s)
		}
	}
	page.Fleet = fleetOf(&page.Cluster, 0, shownTrackers)
	page.setLimits()
	return page, nil
}

// sum computes the slots in use, and the rows of the jobs that run: the first to end come first.
func (p *clusterPage) sum(jobs []web.Job, now time.Time) {
	for i := range p.Trackers {
		t := &p.Trackers[i]
		p.Use[0].Used, p.Use[0].Total = p.Use[0].Used+t.Maps, p.Use[0].Total+t.MapSlots
		p.Use[1].Used, p.Use[1].Total = p.Use[1].Used+t.Reduces, p.Use[1].Total+t.ReduceSlots
	}
	var begun []web.Job
	for i := range jobs {
		if j := &jobs[i]; j.Maps.Running+j.Reduces.Running+j.Maps.Done == 0 {
			p.Waiting++
		} else {
			begun = append(begun, *j)
		}
	}
	rows := rowsOf(begun)
	p.Running = len(rows)
	slices.SortStableFunc(rows, sorters["end"])
	p.Jobs = tableOf(rows[:min(len(rows), shownJobs)], now)
}

// setLimits keeps the limits that are used, the most used ones first.
func (p *clusterPage) setLimits() {
	for _, l := range p.Cluster.Limits {
		if l.Used > 0 {
			p.Limits = append(p.Limits, l)
		}
	}
	slices.SortStableFunc(p.Limits, func(a, b web.Limit) int { return cmp.Compare(part(b.Used, b.Max), part(a.Used, a.Max)) })
}

// Well counts the task trackers that work, by their condition.
func (p *clusterPage) Well() use {
	u := use{Total: len(p.Trackers) + len(p.Lost)}
	for i := range p.Trackers {
		if condition(&p.Trackers[i]) == "well" {
			u.Used++
		}
	}
	return u
}

// Limit formats a limit of a pool; -1: none.
func (*clusterPage) Limit(slots int) string {
	if slots < 0 {
		return "–"
	}
	return fmt.Sprint(slots)
}

// fleet is a part of the table of task trackers, those with troubles first.
type fleet struct {
	Rows   []web.Tracker
	Lost   []web.LostTracker
	All    int    // with those that are not listed
	Before string // link to the rows before
	After  string // link to the next rows
	Racks  bool   // the trackers are in several racks
	Offers bool   // some offer memory or cores beside slots
}

func fleetOf(c *web.Cluster, from, most int) fleet {
	f := fleet{All: len(c.Trackers) + len(c.Lost)}
	all := slices.Clone(c.Trackers)
	slices.SortStableFunc(all, func(a, b web.Tracker) int { return cmp.Compare(rankOf(&a), rankOf(&b)) })
	if from == 0 {
		f.Lost = c.Lost[:min(len(c.Lost), most)]
	}
	from = min(from, len(all))
	to := min(from+most, len(all))
	f.Rows = all[from:to]
	if from > 0 {
		f.Before = "/trackers?from=" + strconv.Itoa(max(0, from-most))
	}
	if to < len(all) {
		f.After = "/trackers?from=" + strconv.Itoa(to)
	}
	f.Offers = slices.ContainsFunc(all, func(t web.Tracker) bool { return t.Memory != nil || t.Cores != nil })
	f.Racks = slices.ContainsFunc(all, func(t web.Tracker) bool { return t.Rack != all[0].Rack })
	return f
}

// trackersPage shows all task trackers.
type trackersPage struct{ Fleet fleet }

func (h *handler) trackers(r *http.Request) (any, error) {
	from, err := firstRow(r.URL.Query())
	if err != nil {
		return nil, err
	}
	c, err := h.led(r)
	if err != nil {
		return nil, err
	}
	return &trackersPage{fleetOf(&c, from, rowsOfPage)}, nil
}

// conditions of task trackers, the worst first.
var conditions = []string{"silent", "troubled", "excluded", "well"}

func rankOf(t *web.Tracker) int { return slices.Index(conditions, condition(t)) }

// condition says in a word how a task tracker is.
func condition(t *web.Tracker) string {
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

// Condition is that of a task tracker, for the template.
func (fleet) Condition(t web.Tracker) string { return condition(&t) }

// Filled is the used part of a disk, and Full the class of its colour.
func (fleet) Filled(d web.Disk) float64 {
	if d.Total == 0 {
		return 0
	}
	return 1 - part(d.Free, d.Total)
}

func (f fleet) Full(d web.Disk) string {
	if f.Filled(d) >= nearlyFull {
		return "failed"
	}
	return "other"
}

// nearlyFull is the used part from which a disk is marked.
const nearlyFull = 0.9

// Faults lists the faults of a task tracker.
func (fleet) Faults(t web.Tracker) string {
	var all []string
	for _, of := range []struct {
		n         int64
		one, many string
	}{
		{int64(t.Faults.Attempts), "failed attempt", "failed attempts"}, {int64(t.Faults.Outputs), "unread map output", "unread map outputs"},
		{t.Faults.Fetches, "failed fetch", "failed fetches"}, {int64(t.Faults.Disks), "failed disk", "failed disks"},
	} {
		if of.n == 1 {
			all = append(all, "1 "+of.one)
		} else if of.n > 0 {
			all = append(all, grouped(of.n)+" "+of.many)
		}
	}
	return strings.Join(all, ", ")
}
