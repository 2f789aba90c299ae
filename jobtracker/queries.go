package jobtracker

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/quernmr/quern/history"
	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/jobtracker/core/admission"
	"github.com/quernmr/quern/wire"
)

// query is a function that reads the core while it leads.
type query struct {
	read   func()
	epoch  uint64 // in which it was read
	answer chan error
}

// Jobs returns a page of the jobs that the cluster knows, without counters and troubles. The next page
// begins after next; zero: there is none. It fails with core.ErrCursor or core.ErrNotLeader.
func (s *Server) Jobs(ctx context.Context, q core.Query) (jobs []wire.JobStatus, next wire.JobID, err error) {
	return readPage(ctx, s, func(now time.Duration) ([]wire.JobStatus, wire.JobID, error) { return s.core.Statuses(now, q) })
}

// readPage makes the goroutine of Run read a page of jobs.
func readPage[T any](ctx context.Context, s *Server, read func(time.Duration) ([]T, wire.JobID, error)) ([]T, wire.JobID, error) {
	var list []T
	var next wire.JobID
	var refused error
	if err := s.query(ctx, func() { list, next, refused = read(s.now()) }); err != nil {
		return nil, wire.JobID{}, err // do not return list: Run may still write it
	}
	return list, next, refused
}

// Attempts returns a page of a job's attempts, by task and number. The page begins after an attempt, or
// with the first one if after is zero. For an ended job it reads the history, in one page. It fails with admission.ErrUnknownJob,
// core.ErrCursor, core.ErrNotLeader, or fs.ErrNotExist if an ended job has no history. If the caller
// may not see the job, it fails with admission.ErrNotAllowed, before it reads a history. End ctx as for
// History.
func (s *Server) Attempts(ctx context.Context, caller core.Caller, job wire.JobID, after wire.AttemptID) (wire.JobAttempts, error) {
	var attempts wire.JobAttempts
	var owner string
	var access wire.Access
	var running, known bool
	var refused error
	err := s.query(ctx, func() {
		if owner, access, known = s.core.Access(job); known {
			refused = caller.CheckView(job, owner, access)
		}
		if refused == nil {
			attempts, running, refused = s.core.Attempts(job, after)
		}
	})
	switch {
	case err != nil:
	case refused != nil:
		err = refused
	case running:
		return attempts, nil
	case !known:
		err = fmt.Errorf("%v: %w", job, admission.ErrUnknownJob)
	default:
		var r *history.Record
		if waitErr := s.readInTurn(ctx, func() { r, err = history.Find(s.cfg.FS, s.cfg.Staging, job) }); waitErr != nil {
			err = waitErr
		}
		if err == nil {
			list := slices.DeleteFunc(r.Attempts, func(a wire.AttemptStatus) bool { return a.Attempt.Compare(after) <= 0 })
			return wire.JobAttempts{Attempts: list, Owner: r.Owner, Access: access, Token: r.Token}, nil
		}
	}
	return wire.JobAttempts{}, fmt.Errorf("list attempts: %w", err)
}

// Explain says why a job has its slots, what it waits for, and its predicted end. It fails with
// admission.ErrUnknownJob or core.ErrNotLeader.
func (s *Server) Explain(ctx context.Context, job wire.JobID) (wire.Explanation, error) {
	var x wire.Explanation
	known := false
	err := s.query(ctx, func() { x, known = s.core.Explain(s.now(), job) })
	switch {
	case err != nil: // do not return x: Run may still write it
		return wire.Explanation{}, err
	case !known:
		return wire.Explanation{}, fmt.Errorf("%v: %w", job, admission.ErrUnknownJob)
	}
	return x, nil
}

// Explanations explains a page of the jobs that have not ended, by id. The page begins after a job, or with
// the first one if after is zero; next is as in Jobs.
func (s *Server) Explanations(ctx context.Context, after wire.JobID) (list []wire.Explanation, next wire.JobID, err error) {
	return readPage(ctx, s, func(now time.Duration) ([]wire.Explanation, wire.JobID, error) {
		return s.core.Explanations(now, after)
	})
}

// Cluster describes the cluster as this job tracker knows it. Followers answer too, but do not know
// the task trackers.
func (s *Server) Cluster(ctx context.Context) (wire.ClusterStatus, error) {
	view := make(chan func() wire.ClusterStatus, 1)
	if !s.post(func() { view <- s.core.ClusterView(s.now()) }) {
		return wire.ClusterStatus{}, ErrStopped
	}
	select {
	case status := <-view:
		return status(), nil
	case <-ctx.Done():
		return wire.ClusterStatus{}, ctx.Err()
	case <-s.done:
		return wire.ClusterStatus{}, ErrStopped
	}
}

// query makes the goroutine of Run call read. If this job tracker is elected but does not lead yet,
// query waits. It fails if another one leads.
func (s *Server) query(ctx context.Context, read func()) error {
	q := &query{read: read, answer: make(chan error, 1)}
	if !s.post(func() { s.queries = append(s.queries, q) }) {
		return ErrStopped
	}
	select {
	case err := <-q.answer:
		return s.confirmed(ctx, q.epoch, err)
	case <-ctx.Done():
		s.post(func() {
			s.queries = slices.DeleteFunc(s.queries, func(other *query) bool { return other == q })
		})
		return ctx.Err()
	case <-s.done:
		return ErrStopped
	}
}

// answerQueries answers all queries, unless this job tracker is elected but does not lead yet.
func (s *Server) answerQueries() {
	err := s.core.CheckLeading()
	if err == nil && !s.core.IsLeader() {
		return
	}
	for _, q := range s.queries {
		if err == nil {
			q.epoch = s.leadingEpoch()
			began := s.now()
			q.read()
			s.meters.steps.AddTime(s.now() - began)
		}
		q.answer <- err
	}
	clear(s.queries)
	s.queries = s.queries[:0]
}
