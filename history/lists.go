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
const PageLength = 20

// Page is a part of the list of histories.
type Page struct {
	Records []*Record  // without attempts, plans, counters and troubles
	Next    wire.JobID // the next page begins after this job; zero: this is the last page
	Skipped []error    // why files cannot be read
}

// Query asks for a [Page].
type Query struct {
	After  wire.JobID         // the page begins after this job; zero: with the newest one
	Since  time.Time          // without days that ended before; zero: all days
	Select func(*Record) bool // nil: all
}

// pageReads is the maximum number of files that a page reads: Select may refuse most of them.
const pageReads = 5 * PageLength

// ReadPage reads histories, newest first. If the files of the day of q.After are no longer kept, the page
// is empty: the others were older.
func ReadPage(ctx context.Context, f dfs.FS, staging string, q Query) (*Page, error) {
	entries, err := List(f, staging)
	if err != nil {
		return nil, err
	}
	p := new(Page)
	if !q.After.IsZero() {
		i := slices.IndexFunc(entries, func(e Entry) bool { return e.Job == q.After })
		if i < 0 {
			return p, nil
		}
		entries = entries[i+1:]
	}
	// A job that ended before then was submitted before.
	if i := slices.IndexFunc(entries, func(e Entry) bool { return e.Day.AddDate(0, 0, 1).Before(q.Since) }); i >= 0 {
		entries = entries[:i]
	}
	for i, e := range entries {
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case len(p.Records)+len(p.Skipped) == PageLength, i == pageReads:
			p.Next = entries[i-1].Job
			return p, nil
		}
		r, err := Read(f, e.Name)
		switch {
		case err != nil: // removed meanwhile, or damaged
			p.Skipped = append(p.Skipped, err)
		case q.Select == nil || q.Select(r):
			p.Records = append(p.Records, r.summary())
		}
	}
	return p, nil
}

// summary drops the long parts.
func (r *Record) summary() *Record {
	r.Attempts, r.Plans, r.PlanLog, r.Job.Counters, r.Job.Troubles = nil, nil, nil, nil, nil
	r.Job.Partitions, r.Job.HotKeys, r.Job.SlotTime = nil, nil, nil
	return r
}

// ReadFlow reads the histories of a flow, by id. Jobs of a flow have consecutive numbers, which begin with
// the flow's number. So a damaged history may belong to this flow, unless a history of another flow
// comes before it. If the file system fails, so does ReadFlow.
func ReadFlow(ctx context.Context, f dfs.FS, staging string, flow wire.FlowID) (*Page, error) {
	entries, err := List(f, staging)
	if err != nil {
		return nil, err
	}
	entries = slices.DeleteFunc(entries, func(e Entry) bool { return e.Job.Start != flow.Start || e.Job.N < flow.N })
	slices.SortFunc(entries, func(a, b Entry) int { return a.Job.Compare(b.Job) })
	p := new(Page)
	for _, e := range entries {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		r, err := Read(f, e.Name)
		if err != nil {
			if !errors.Is(err, ErrNotHistory) && !errors.Is(err, fs.ErrNotExist) {
				return nil, err
			}
			p.Skipped = append(p.Skipped, fmt.Errorf("%v, which may belong to %v: %w", e.Job, flow, err))
			continue
		}
		if r.Job.Flow != flow {
			break
		}
		p.Records = append(p.Records, r.summary())
	}
	return p, nil
}
