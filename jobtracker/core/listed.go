package core

import (
	"time"

	"github.com/quernmr/quern/jobtracker/core/admission"
	"github.com/quernmr/quern/jobtracker/core/facts"
	"github.com/quernmr/quern/wire"
)

// Query asks for a page of a list of jobs. The zero Query asks for the newest jobs.
type Query struct {
	By     Caller
	Filter admission.Filter
	Oldest bool       // list the oldest jobs first
	After  wire.JobID // the page begins after this job; zero: it is the first page
}

// Listed is a job as in a list.
type Listed struct {
	wire.JobStatus
	Submitted int64 // Unix milliseconds
}

// Listed returns jobs as in a list. It leaves out unknown ones.
func (c *Core) Listed(now time.Duration, ids []wire.JobID) (list []Listed) {
	for _, id := range ids {
		if f := c.facts.Find(id); f != nil {
			s := c.predictedStatus(f, now)
			s.Counters, s.Troubles = nil, nil
			list = append(list, Listed{s, f.Submission().At()})
		}
	}
	return list
}

// selects reports whether a list has a job.
func (c *Core) selects(q *Query, f *facts.Job) bool {
	if q.Filter.IsZero() {
		return true
	}
	s := wire.JobStatus{Name: f.Name(), State: c.facts.State(f), Owner: f.Submission().Owner(), Flow: c.flowOf(f)}
	s.Settings.Pool = f.Submission().Pool()
	visible := q.Filter.Name == "" || q.By.MayView(s.Owner, c.access(f))
	return q.Filter.Selects(&s, f.Submission().At(), visible)
}
