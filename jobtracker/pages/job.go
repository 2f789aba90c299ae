package pages

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"

	"github.com/quernmr/quern/jobtracker/web"
)

// jobHead is what all pages of a job begin with.
type jobHead struct {
	jobRow
	Tab  string
	Past *web.History // nil: the job has not ended, or its history is not readable
	Axis *axis        // of the bar; nil: there is none
}

// jobPage is what the first page of a job shows.
type jobPage struct {
	jobHead
	Explanation *web.Explanation // nil: the job has ended
	Graph       *graph           // of its flow
	First       *web.Attempt     // the attempt that failed first
	Unlisted    int              // attempts that the history does not have
	Running     []web.Attempt    // the attempts that have run longest
	Times       []histogram      // of the phases' ended tasks
	Slow        []straggler
	Spent       []share
	Levels      []share
	LevelMaps   int
	Sizes       *histogram
	Bytes       *curves
	Over        *stack // running attempts over time; nil: there are none, or too many
}

// head asks for the status of a job, or for its history if only that has it.
func (h *handler) head(r *http.Request, tab string) (*jobHead, error) {
	id := url.PathEscape(r.PathValue("id"))
	head := &jobHead{Tab: tab, jobRow: jobRow{Job: new(web.Job)}}
	err := h.get(r, "/v1/jobs/"+id, nil, head.Job)
	if err == nil && ended(head.State) || err != nil && asProblem(err).Status == http.StatusNotFound { // the history knows more
		past := new(web.History)
		switch pastErr := h.get(r, "/v1/jobs/"+id+"/history", nil, past); {
		case pastErr == nil:
			head.Job, head.Past, err = &past.Job, past, nil
			head.Owner, head.Submitted = past.Owner, past.Submitted
		case err != nil && asProblem(pastErr).Status != http.StatusNotFound:
			err = pastErr
		}
	}
	if err != nil {
		return nil, err
	}
	rows := rowsOf([]web.Job{*head.Job})
	head.Axis = setBars(rows, h.now())
	head.jobRow = rows[0]
	return head, nil
}

func (h *handler) job(r *http.Request) (any, error) {
	head, err := h.head(r, "overview")
	if err != nil {
		return nil, err
	}
	page := &jobPage{jobHead: *head, Spent: spent(head.SlotTime), Sizes: sizesHistogram(head.Partitions)}
	var b web.Breakdown
	attempts, all, err := h.attemptsOf(r, head)
	if err == nil {
		err = h.get(r, "/v1/jobs/"+page.ID+"/breakdown", nil, &b)
	}
	if err != nil && asProblem(err).Status != http.StatusNotFound { // an ended job may have no history
		return nil, err
	}
	if !ended(page.State) {
		page.Explanation = new(web.Explanation)
		if err := h.get(r, "/v1/jobs/"+page.ID+"/explain", nil, page.Explanation); err != nil {
			page.Explanation = nil // it has ended meanwhile
		}
	}
	if page.Flow != "" {
		flow := new(web.Flow)
		if err := h.get(r, "/v1/flows/"+page.Flow, nil, flow); err == nil && len(flow.Items) > 1 { // else it is a part of an old history
			page.Graph = graphOf(rowsOf(flow.Items), page.ID)
		}
	}
	setTook(attempts, h.now())
	page.setBreakdown(&b)
	if page.Running = longestRunning(attempts); all {
		page.Over = attemptsOverTime(attempts, nil)
	}
	return page, nil
}

// shownRunning is the number of running attempts that the page shows.
const shownRunning = 8

// longestRunning returns the running attempts that began first.
func longestRunning(attempts []web.Attempt) (all []web.Attempt) {
	for i := range attempts {
		if running(&attempts[i]) {
			all = append(all, attempts[i])
		}
	}
	slices.SortStableFunc(all, func(a, b web.Attempt) int { return cmp.Compare(b.TookMillis, a.TookMillis) })
	return all[:min(len(all), shownRunning)]
}

// straggler is a slow attempt; Factor is its time by the median of its phase.
type straggler struct {
	web.Attempt
	Factor float64
}

// shownSlow is the number of stragglers that the page shows.
const shownSlow = 10

// setBreakdown makes the drawings and tables of a breakdown. Stragglers of both phases are one list, slowest first.
func (p *jobPage) setBreakdown(b *web.Breakdown) {
	for i := range b.Phases {
		x := &b.Phases[i]
		if len(x.Buckets) > 0 {
			p.Times = append(p.Times, timesHistogram(x))
		}
		for _, a := range x.Slow {
			p.Slow = append(p.Slow, straggler{a, float64(a.TookMillis) / float64(max(x.MedianMillis, 1))})
		}
	}
	slices.SortStableFunc(p.Slow, func(a, b straggler) int { return cmp.Compare(b.TookMillis, a.TookMillis) })
	p.Slow = p.Slow[:min(len(p.Slow), shownSlow)]
	p.Levels, p.LevelMaps = localities(b.Levels)
	p.Bytes = bytesOverTime(b.Curve)
	p.First, p.Unlisted = b.Failure, b.UnlistedAttempts
}

// Left says how long the job still runs, by the prediction.
func (p *jobHead) Left() string { return leftOf(p.State, p.Prediction, p.ElapsedMillis) }

// live is the job if it can still change, for the events of the page.
func (p *jobHead) live() string {
	if ended(p.State) {
		return ""
	}
	return p.ID
}

// Largest has the largest partitions with their part of the largest.
func (p *jobPage) Largest() (all []share) {
	if p.Partitions == nil {
		return nil
	}
	for _, x := range p.Partitions.Largest[:min(5, len(p.Partitions.Largest))] {
		all = append(all, share{Count: x.Partition, Millis: x.Bytes, Width: part(x.Bytes, p.Partitions.Largest[0].Bytes)})
	}
	return all
}

// Factor is the largest partition by the median.
func (p *jobPage) Factor() float64 {
	if p.Partitions == nil || p.Partitions.MedianBytes == 0 || len(p.Partitions.Largest) == 0 {
		return 0
	}
	return float64(p.Partitions.Largest[0].Bytes) / float64(p.Partitions.MedianBytes)
}

// countersPage shows all counters of a job.
type countersPage struct {
	jobHead
	Groups []group
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

func (h *handler) counters(r *http.Request) (any, error) {
	head, err := h.head(r, "counters")
	if err != nil {
		return nil, err
	}
	return &countersPage{*head, groupsOf(head.Counters)}, nil
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

// settingsPage shows the settings of a job, and what was submitted for it.
type settingsPage struct {
	jobHead
	Submission *web.Submission // nil: it is not known any more
	Lacks      string          // why
}

func (h *handler) settings(r *http.Request) (any, error) {
	head, err := h.head(r, "settings")
	if err != nil {
		return nil, err
	}
	page := &settingsPage{jobHead: *head, Submission: new(web.Submission)}
	if err := h.get(r, "/v1/jobs/"+page.ID+"/submission", nil, page.Submission); err != nil {
		page.Submission, page.Lacks = nil, err.Error()
	}
	return page, nil
}
