package pages

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/quernmr/quern/jobtracker/web"
)

// jobPage is what the page of a job shows.
type jobPage struct {
	web.Job
	Percent     int
	Explanation *web.Explanation // nil: the job has ended
	Attempts    []web.Attempt    // newest first
	Omitted     int              // older attempts that the page does not have
	Times       []histogram      // of the phases' ended tasks
	Slow        []web.Attempt    // stragglers
	Counters    []group
	Past        *web.History // nil: the job has not ended, or its history is not readable
}

// group is a group of counters.
type group struct {
	Name     string
	Counters []counter
}

type counter struct {
	Name  string
	Value int64
}

func (h *handler) job(r *http.Request) (any, error) {
	id := url.PathEscape(r.PathValue("id"))
	page := new(jobPage)
	err := h.get(r, "/v1/jobs/"+id, nil, &page.Job)
	if err != nil {
		if p := asProblem(err); p.Status == http.StatusNotFound {
			return h.pastJob(r, id, p)
		}
		return nil, err
	}
	if !ended(page.State) {
		page.Explanation = new(web.Explanation)
		if err := h.get(r, "/v1/jobs/"+id+"/explain", nil, page.Explanation); err != nil {
			page.Explanation = nil // it has ended meanwhile
		}
	}
	attempts, omitted, err := h.allAttempts(r, id)
	if err != nil {
		return nil, err
	}
	page.fill(attempts, omitted)
	return page, nil
}

// pastJob shows a job that only the history has.
func (h *handler) pastJob(r *http.Request, id string, unknown *problem) (any, error) {
	past := new(web.History)
	if err := h.get(r, "/v1/jobs/"+id+"/history", nil, past); err != nil {
		if asProblem(err).Status == http.StatusNotFound {
			return nil, unknown
		}
		return nil, err
	}
	page := &jobPage{Job: past.Job, Past: past}
	page.Owner = past.Owner
	page.fill(past.Attempts, past.UnlistedAttempts)
	return page, nil
}

// fill computes the parts of the page that follow from the job and its attempts.
func (p *jobPage) fill(attempts []web.Attempt, omitted int) {
	p.Percent, p.Omitted = percent(&p.Job), omitted
	p.Times, p.Slow = taskTimes(attempts)
	p.Attempts = slices.Clone(attempts)
	slices.SortStableFunc(p.Attempts, func(a, b web.Attempt) int { return b.Began.Compare(a.Began) })
	p.Counters = groupsOf(p.Job.Counters)
}

func groupsOf(counters map[string]map[string]int64) []group {
	var all []group
	for name, values := range counters {
		g := group{Name: name}
		for counterName, value := range values {
			g.Counters = append(g.Counters, counter{counterName, value})
		}
		slices.SortFunc(g.Counters, func(a, b counter) int { return compareText(a.Name, b.Name) })
		all = append(all, g)
	}
	slices.SortFunc(all, func(a, b group) int { return compareText(a.Name, b.Name) })
	return all
}

// Left says how long the job still runs, by the prediction.
func (p *jobPage) Left() string {
	if ended(p.State) || p.EndsMillis == 0 {
		return ""
	}
	return span(max(0, p.EndsMillis-p.ElapsedMillis))
}

// Fails returns the first attempt that failed with an error, if any.
func (p *jobPage) Fails() *web.Attempt {
	var first *web.Attempt
	for i := range p.Attempts {
		a := &p.Attempts[i]
		if a.State == "failed" && (first == nil || a.Began.Before(first.Began)) {
			first = a
		}
	}
	return first
}

// span formats milliseconds.
func span(ms int64) string {
	d := millis(ms)
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", ms)
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return d.Round(time.Second).String()
}
