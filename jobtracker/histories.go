package jobtracker

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/quernmr/quern/history"
	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/wire"
)

// maxHistoryReads is how many requests read histories at a time: a history of a large job takes much
// memory, and so does the answer. So a request counts until its context ends. Others wait.
const maxHistoryReads = 4

// readInTurn calls read when few others read histories.
func (s *Server) readInTurn(ctx context.Context, read func()) error {
	select {
	case s.historyReads <- struct{}{}:
		defer func() { // read may take longer than ctx
			context.AfterFunc(ctx, func() { <-s.historyReads })
		}()
	case <-ctx.Done():
		return ctx.Err()
	}
	read()
	return nil
}

// CheckView fails with admission.ErrNotAllowed if the core knows the job and the caller may not see it. Of other
// jobs, the history says who may see them. It fails with core.ErrNotLeader.
func (s *Server) CheckView(ctx context.Context, caller core.Caller, job wire.JobID) error {
	var refused error
	if err := s.query(ctx, func() {
		if owner, access, known := s.core.Access(job); known {
			refused = caller.CheckView(job, owner, access)
		}
	}); err != nil {
		return err // do not return refused: Run may still write it
	}
	return refused
}

// History returns the history of an ended job. It fails with fs.ErrNotExist if there is none, with
// core.ErrNotLeader, or with admission.ErrNotAllowed if the caller may not see the job. End ctx when the
// answer has been sent: until then, it counts as one of maxHistoryReads.
func (s *Server) History(ctx context.Context, caller core.Caller, job wire.JobID) (*history.Record, error) {
	if err := s.CheckView(ctx, caller, job); err != nil {
		return nil, fmt.Errorf("read history: %w", err)
	}
	p, err := s.readHistories(ctx, func() (*history.Page, error) {
		r, err := history.Find(s.cfg.FS, s.cfg.Staging, job)
		return &history.Page{Records: []*history.Record{r}}, err
	})
	if err != nil {
		return nil, err
	}
	r := p.Records[0]
	if err := caller.CheckView(job, r.Owner, r.Job.Access); err != nil {
		return nil, fmt.Errorf("read history: %w", err)
	}
	return r, nil
}

// Histories returns a page of the histories, newest first, with who may see them. If the query names a flow, the
// page has all jobs of it. It fails with core.ErrNotLeader. End ctx as for History.
func (s *Server) Histories(ctx context.Context, q core.Query) (*history.Page, error) {
	selects := func(r *history.Record, visible bool) bool {
		job := r.Job
		job.Owner = r.Owner
		return q.Filter.Selects(&job, r.Submitted, visible)
	}
	p, err := s.readHistories(ctx, func() (*history.Page, error) {
		if q.Filter.Flow.IsZero() {
			since := time.UnixMilli(q.Filter.Since)
			return history.ReadPage(ctx, s.cfg.FS, s.cfg.Staging, history.Query{
				After: q.After, Since: since, Select: func(r *history.Record) bool { return selects(r, true) },
			})
		}
		p, err := history.ReadFlow(ctx, s.cfg.FS, s.cfg.Staging, q.Filter.Flow)
		if err == nil {
			slices.Reverse(p.Records)
		}
		return p, err
	})
	if err != nil {
		return nil, err
	}
	p.Records = slices.DeleteFunc(p.Records, func(r *history.Record) bool { // names of jobs that the caller may not see match nothing
		return !selects(r, q.By.MayView(r.Owner, r.Job.Access))
	})
	return p, nil
}

// readHistories reads records, and adds owners and who may see the jobs.
func (s *Server) readHistories(ctx context.Context, read func() (*history.Page, error)) (*history.Page, error) {
	var p *history.Page
	var err error
	if waitErr := s.readInTurn(ctx, func() { p, err = read() }); waitErr != nil {
		return nil, waitErr
	}
	if err != nil {
		return nil, err
	}
	err = s.query(ctx, func() {
		for _, r := range p.Records {
			r.Job.Owner, r.Job.Access = r.Owner, s.core.PastAccess(r.Job.Settings.Pool, r.ViewACL())
		}
	})
	if err != nil {
		return nil, err // do not return p: Run may still write it
	}
	return p, nil
}
