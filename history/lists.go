package history

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/wire"
)

// PageLength is the number of jobs in a [Page].
const PageLength = 100

// Page is a part of the list of histories.
type Page struct {
	Records []*Record  // without the parts that lists do not show
	Next    wire.JobID // the next page begins after this job; zero: this is the last page
	Skipped []error    // why files cannot be read
}

// Query asks for a [Page]. Of a record Select may read the id, name, state, owner, pool, flow and time of submission.
type Query struct {
	After  wire.JobID         // the page begins after this job; zero: with the newest one
	Since  time.Time          // without days that ended before; zero: all days
	Select func(*Record) bool // nil: all
}

// pageReads is the maximum number of records that a page reads because the index lacks them: Select may refuse most.
const pageReads = PageLength

// ReadPage reads summaries, newest first. If the files of the day of q.After are no longer kept, the page
// is empty: the others were older.
func ReadPage(ctx context.Context, f dfs.FS, staging string, q Query) (*Page, error) {
	p, last, passed := new(Page), wire.JobID{}, q.After.IsZero()
	s := summaries{f: f, selects: q.Select, days: make(map[string]index)}
	for e, err := range entries(f, staging) {
		switch {
		case err != nil:
			return nil, fmt.Errorf("list history: %w", err)
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case e.Day.AddDate(0, 0, 1).Before(q.Since): // a job that ended before then was submitted before
			return p, nil
		case !passed:
			passed = e.Job == q.After
			continue
		case len(p.Records)+len(p.Skipped) == PageLength, s.reads == pageReads:
			p.Next = last
			return p, nil
		}
		r, err := s.of(e)
		switch last = e.Job; {
		case err != nil: // removed meanwhile, or damaged
			p.Skipped = append(p.Skipped, err)
		case r != nil:
			p.Records = append(p.Records, r)
		}
	}
	return p, nil
}

// summaries reads summaries of selected jobs.
type summaries struct {
	f       dfs.FS
	selects func(*Record) bool
	days    map[string]index // by URL
	reads   int              // records read, because an index lacks them
}

// of returns the summary of a job; nil: the job is not selected.
func (s *summaries) of(e Entry) (*Record, error) {
	d := day{name: dfs.Dir(e.Name)}
	x, read := s.days[d.name]
	if !read {
		x = d.readIndex(s.f, s.selects)
		s.days[d.name] = x
	}
	if summary, known := x[e.Job]; known {
		if summary == nil {
			return nil, nil
		}
		if r, err := x.record(e.Job); err == nil {
			return r, nil
		}
	}
	s.reads++
	r, err := Read(s.f, e.Name)
	if err != nil || s.selects != nil && !s.selects(r) {
		return nil, err
	}
	return r.summary(), nil
}

// ReadFlow reads the histories of a flow, by id. Jobs of a flow have consecutive numbers, which begin with
// the flow's number. So a damaged history may belong to this flow, unless a history of another flow
// comes before it. If the file system fails, so does ReadFlow.
func ReadFlow(ctx context.Context, f dfs.FS, staging string, flow wire.FlowID) (*Page, error) {
	var all []Entry
	for e, err := range entries(f, staging) {
		if err != nil {
			return nil, fmt.Errorf("list history: %w", err)
		}
		if e.Job.Start == flow.Start && e.Job.N >= flow.N {
			all = append(all, e)
		}
	}
	slices.SortFunc(all, func(a, b Entry) int { return a.Job.Compare(b.Job) })
	p := new(Page)
	s := summaries{f: f, selects: func(r *Record) bool { return r.Job.Flow == flow }, days: make(map[string]index)}
	for _, e := range all {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		r, err := s.of(e)
		switch {
		case errors.Is(err, ErrNotHistory), errors.Is(err, fs.ErrNotExist):
			p.Skipped = append(p.Skipped, fmt.Errorf("%v, which may belong to %v: %w", e.Job, flow, err))
		case err != nil:
			return nil, err
		case r == nil: // of another flow
			return p, nil
		default:
			p.Records = append(p.Records, r)
		}
	}
	return p, nil
}
