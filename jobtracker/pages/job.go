package pages

import (
	"cmp"
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
	Explanation *web.Explanation // nil: the job has ended
	Past        *web.History     // nil: the job has not ended, or its history is not readable
	Flowing     []jobRow         // the jobs of its flow
	Attempts    []web.Attempt    // the last to begin first
	Unread      bool             // other attempts are not known
	More        bool             // Attempts leaves out some
	work
}

// work is what attempts say about a job.
type work struct {
	Times     []histogram   // of the phases' ended tasks
	Slow      []web.Attempt // stragglers
	Spent     []spent
	SlotTime  int64 // milliseconds
	Levels    []placed
	LevelMaps int
	Sizes     *partitions
	Curves    *curves
	Groups    []group // of counters
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
	attempts, more, err := h.allAttempts(r, id)
	if err != nil && asProblem(err).Status != http.StatusNotFound { // an ended job may have no history
		return nil, err
	}
	if !ended(page.State) {
		page.Explanation = new(web.Explanation)
		if err := h.get(r, "/v1/jobs/"+id+"/explain", nil, page.Explanation); err != nil {
			page.Explanation = nil // it has ended meanwhile
		}
		if more {
			if attempts, err = h.withRecent(r, page.ID, attempts); err != nil {
				return nil, err
			}
		}
	}
	if page.Flow != "" {
		jobs, _, err := h.allJobs(r, url.Values{"flow": {page.Flow}})
		if err != nil {
			return nil, err
		}
		page.Flowing = rowsOf(jobs)
	}
	page.fill(attempts, more, h.now())
	return page, nil
}

// withRecent adds the attempts that run or have just ended.
func (h *handler) withRecent(r *http.Request, job string, attempts []web.Attempt) ([]web.Attempt, error) {
	recent, err := h.recent(r)
	if err != nil {
		return nil, err
	}
	known := make(map[string]bool, len(attempts))
	for i := range attempts {
		known[attempts[i].ID] = true
	}
	for _, of := range recent.Items {
		for _, a := range of.Attempts {
			if of.Job == job && !known[a.ID] {
				attempts = append(attempts, a)
			}
		}
	}
	return attempts, nil
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
	page.fill(past.Attempts, past.UnlistedAttempts > 0, h.now())
	return page, nil
}

// fill computes the parts of the page that follow from the job and its attempts.
func (p *jobPage) fill(attempts []web.Attempt, more bool, now time.Time) {
	setTook(attempts, now)
	p.work = workOf(&p.Job, attempts)
	if p.Unread = more; more {
		p.Curves = nil // it would end too low
	}
	p.Attempts = slices.Clone(attempts)
	slices.SortStableFunc(p.Attempts, func(a, b web.Attempt) int { return b.Began.Compare(a.Began) })
	p.More = more || len(attempts) > maxAttempts
	p.Attempts = p.Attempts[:min(len(attempts), maxAttempts)]
}

// maxAttempts limits the table of attempts.
const maxAttempts = 300

func workOf(j *web.Job, attempts []web.Attempt) (w work) {
	w.Times, w.Slow = taskTimes(attempts)
	w.Spent, w.SlotTime = slotTime(attempts)
	w.Levels, w.LevelMaps = localities(attempts)
	w.Sizes, w.Curves = partitionSizes(attempts), bytesOverTime(attempts)
	w.Groups = groupsOf(j.Counters)
	return w
}

func groupsOf(counters map[string]map[string]int64) []group {
	var all []group
	for name, values := range counters {
		g := group{Name: name}
		for counterName, value := range values {
			g.Counters = append(g.Counters, counter{counterName, value})
		}
		slices.SortFunc(g.Counters, func(a, b counter) int { return cmp.Compare(a.Name, b.Name) })
		all = append(all, g)
	}
	slices.SortFunc(all, func(a, b group) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// Left says how long the job still runs, by the prediction.
func (p *jobPage) Left() string {
	x := p.Prediction
	switch {
	case ended(p.State) || x == nil:
		return ""
	case x.LikelyMillis == 0:
		return x.Unknown
	}
	left := func(ms int64) string { return span(max(0, ms-p.ElapsedMillis)) }
	return fmt.Sprintf("%s (%s to %s)", left(x.LikelyMillis), left(x.EarliestMillis), left(x.LatestMillis))
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
