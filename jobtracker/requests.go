package jobtracker

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/jobtracker/core/admission"
	"github.com/quernmr/quern/wire"
)

// Errors in this file do not name the request, because the HTTP client adds it.

// secretBytes is the length of a submission's random secret.
const secretBytes = 32

// Submit submits jobs and returns their ids, in the order of the Plan. The same key gets the
// same ids, so a caller may submit again after core.ErrNotLeader or an error of ctx.
// admission.ErrBadSubmission is final.
//
// If the caller is known, it becomes the owner, even if the submission names another one.
// admission.ErrNotAllowed: the caller may not use the key or the pool.
func (s *Server) Submit(ctx context.Context, caller core.Caller, sub wire.Submission) ([]wire.JobID, error) {
	secret := make([]byte, secretBytes)
	rand.Read(secret) // never fails
	r, err := s.request(ctx, func(token core.Token) core.Event {
		return core.Submit{Token: token, By: caller, Wall: time.Now().UnixMilli(), Submission: &sub, Secret: secret}
	})
	if err != nil {
		return nil, err
	}
	return r.Jobs, nil
}

// Find returns the ids of the jobs that were submitted with a key, or none if the key is not known.
func (s *Server) Find(ctx context.Context, caller core.Caller, key string) ([]wire.JobID, error) {
	jobs, err := s.Submit(ctx, caller, wire.Submission{Key: key}) // it is bad, unless the key is known
	if errors.Is(err, admission.ErrBadSubmission) {
		return nil, nil
	}
	return jobs, err
}

// Kill kills a job. If it returns nil, the job ends as Killed, unless it was already failing. It
// fails with admission.ErrUnknownJob, admission.ErrJobEnded, admission.ErrJobCommitting,
// admission.ErrNotAllowed or core.ErrNotLeader.
func (s *Server) Kill(ctx context.Context, caller core.Caller, job wire.JobID, reason string) error {
	_, err := s.request(ctx, func(token core.Token) core.Event {
		return core.Kill{Token: token, By: caller, Job: job, Reason: reason}
	})
	return err
}

// EndAttempt kills a running attempt, or fails it: then it counts as a failure of its task. It returns when
// the attempt has ended, or a kill will reach its task tracker when that connects. It fails with
// admission.ErrUnknownJob, admission.ErrJobEnded, admission.ErrAttemptEnded, admission.ErrAttemptCommitting,
// admission.ErrNotTask, admission.ErrNotAllowed or core.ErrNotLeader.
func (s *Server) EndAttempt(ctx context.Context, caller core.Caller, attempt wire.AttemptID, fail bool, reason string) error {
	_, err := s.request(ctx, func(token core.Token) core.Event {
		return core.EndAttempt{Token: token, By: caller, Attempt: attempt, Fail: fail, Reason: reason}
	})
	return err
}

// request feeds the core a client's request and waits for its reply.
func (s *Server) request(ctx context.Context, event func(core.Token) core.Event) (core.Reply, error) {
	replies, epoch := make(chan core.Reply, 1), uint64(0)
	if !s.post(func() {
		s.lastToken++
		s.replies[s.lastToken] = func(r core.Reply) {
			epoch = s.leadingEpoch()
			replies <- r
		}
		s.step(event(s.lastToken))
	}) {
		return core.Reply{}, ErrStopped
	}
	select {
	case r := <-replies:
		if r.Err != nil {
			r.Err = s.confirmed(ctx, epoch, r.Err)
		}
		return r, r.Err
	case <-ctx.Done():
		return core.Reply{}, ctx.Err()
	case <-s.done:
		return core.Reply{}, ErrStopped
	}
}

// Change changes the settings of a job's submission, or suspends or resumes it. It fails with admission.ErrUnknownJob, admission.ErrJobEnded,
// admission.ErrBadSettings, admission.ErrNotAllowed or core.ErrNotLeader.
func (s *Server) Change(ctx context.Context, caller core.Caller, job wire.JobID, change wire.Change) error {
	_, err := s.request(ctx, func(token core.Token) core.Event {
		return core.Change{Token: token, By: caller, Job: job, Change: change}
	})
	return err
}

// Schedule changes the scheduler, metric or delay rule. It overrides the job trackers' flags. Empty
// parts stay. It fails with admission.ErrBadScheduling or core.ErrNotLeader.
func (s *Server) Schedule(ctx context.Context, scheduling wire.Scheduling) error {
	_, err := s.request(ctx, func(token core.Token) core.Event {
		return core.Schedule{Token: token, Scheduling: scheduling}
	})
	return err
}

// Exclude keeps a task tracker from new work, or readmits it; it sets Token and Wall of the request.
// It returns once the log has the change, and fails with core.ErrUnknownTracker or
// core.ErrNotLeader.
func (s *Server) Exclude(ctx context.Context, x core.Exclude) error {
	_, err := s.request(ctx, func(token core.Token) core.Event {
		x.Token, x.Wall = token, time.Now().UnixMilli()
		return x
	})
	return err
}

// Drain takes a task tracker out of service once no job needs its outputs; undo puts it back into
// service. It returns once the log has the change, and fails with core.ErrUnknownTracker or
// core.ErrNotLeader.
func (s *Server) Drain(ctx context.Context, tracker string, undo bool) error {
	_, err := s.request(ctx, func(token core.Token) core.Event {
		return core.Drain{Token: token, Tracker: tracker, Undo: undo}
	})
	return err
}
