package jobtracker

import (
	"context"
	"fmt"
	"slices"

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

// Jobs returns all jobs that the cluster knows, oldest first. It fails with core.ErrNotLeader.
func (s *Server) Jobs(ctx context.Context) ([]wire.JobStatus, error) {
	var jobs []wire.JobStatus
	if err := s.query(ctx, func() { jobs = s.core.Statuses(s.now()) }); err != nil {
		return nil, err
	}
	return jobs, nil
}

// Attempts lists a job's attempts by task and number; for an ended job it reads the history. The
// token is included if the caller may read the job's logs. It fails with admission.ErrUnknownJob,
// core.ErrNotLeader, or fs.ErrNotExist if an ended job has no history.
func (s *Server) Attempts(ctx context.Context, caller core.Caller, job wire.JobID) (wire.JobAttempts, error) {
	a, err := s.attempts(ctx, job)
	if !caller.MayRead(a.Owner) {
		a.Token = ""
	}
	return a, err
}

func (s *Server) attempts(ctx context.Context, job wire.JobID) (wire.JobAttempts, error) {
	var attempts wire.JobAttempts
	var running, known bool
	err := s.query(ctx, func() {
		attempts, running = s.core.Attempts(job)
		_, known = s.core.State(job)
	})
	switch {
	case err != nil:
	case running:
		return attempts, nil
	case !known:
		err = fmt.Errorf("%v: %w", job, admission.ErrUnknownJob)
	default:
		var r *history.Record
		if r, err = history.Find(s.cfg.FS, s.cfg.Staging, job); err == nil {
			return wire.JobAttempts{Attempts: r.Attempts, Owner: r.Owner, Token: r.Token}, nil
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

// Explanations explains all jobs that have not ended, by id.
func (s *Server) Explanations(ctx context.Context) ([]wire.Explanation, error) {
	var all []wire.Explanation
	if err := s.query(ctx, func() { all = s.core.Explanations(s.now()) }); err != nil {
		return nil, err
	}
	return all, nil
}

// Cluster describes the cluster as this job tracker knows it. Followers answer too, but do not know
// the task trackers.
func (s *Server) Cluster(ctx context.Context) (wire.ClusterStatus, error) {
	status := make(chan wire.ClusterStatus, 1)
	if !s.post(func() { status <- s.core.Cluster(s.now()) }) {
		return wire.ClusterStatus{}, ErrStopped
	}
	select {
	case c := <-status:
		return c, nil
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
			q.epoch = s.epoch.Load()
			q.read()
		}
		q.answer <- err
	}
	clear(s.queries)
	s.queries = s.queries[:0]
}
