package history

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

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

// ReadPage reads the histories after a job, newest first, or the newest ones if after is zero. If the
// files of that day are no longer kept, the page is empty: the others were older.
func ReadPage(ctx context.Context, f dfs.FS, staging string, after wire.JobID) (*Page, error) {
	entries, err := List(f, staging)
	if err != nil {
		return nil, err
	}
	if !after.IsZero() {
		i := slices.IndexFunc(entries, func(e Entry) bool { return e.Job == after })
		if i < 0 {
			return new(Page), nil
		}
		entries = entries[i+1:]
	}
	p := new(Page)
	if len(entries) > PageLength {
		entries = entries[:PageLength]
		p.Next = entries[PageLength-1].Job
	}
	for _, e := range entries {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		r, err := Read(f, e.Name)
		if err != nil { // removed meanwhile, or damaged
			p.Skipped = append(p.Skipped, err)
			continue
		}
		p.Records = append(p.Records, r.summary())
	}
	return p, nil
}

// summary drops the long parts.
func (r *Record) summary() *Record {
	r.Attempts, r.Plans, r.PlanLog, r.Job.Counters, r.Job.Troubles = nil, nil, nil, nil, nil
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
