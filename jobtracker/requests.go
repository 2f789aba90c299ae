package jobtracker

import (
	"context"
	"crypto/rand"
	"fmt"
	"iter"
	"reflect"
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

// Kill kills a job. If it returns nil, the job ends as Killed, unless it was already failing. It
// fails with admission.ErrUnknownJob, admission.ErrJobEnded, admission.ErrJobCommitting,
// admission.ErrNotAllowed or core.ErrNotLeader.
func (s *Server) Kill(ctx context.Context, caller core.Caller, job wire.JobID, reason string) error {
	_, err := s.request(ctx, func(token core.Token) core.Event {
		return core.Kill{Token: token, By: caller, Job: job, Reason: reason}
	})
	return err
}

// request feeds the core a client's request and waits for its reply.
func (s *Server) request(ctx context.Context, event func(core.Token) core.Event) (core.Reply, error) {
	replies, epoch := make(chan core.Reply, 1), uint64(0)
	if !s.post(func() {
		s.lastToken++
		s.replies[s.lastToken] = func(r core.Reply) {
			epoch = s.epoch.Load()
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

// watchGap is the minimum time between two states of a Watch. The last state may come earlier.
const watchGap = 100 * time.Millisecond

// watch is a request for the next state of jobs. It gets one answer.
type watch struct {
	jobs      []wire.JobID
	last      []wire.JobStatus
	notBefore time.Duration // earliest answer, unless all jobs have ended
	changed   bool          // an event has come since the last check
	answer    chan watchAnswer
}

type watchAnswer struct {
	statuses []wire.JobStatus
	err      error
	epoch    uint64 // in which err was found
}

// Watch yields the jobs' states at once and after changes, but at most every 100 ms. It stops when
// all jobs have ended, or after an error: core.ErrNotLeader if another job tracker leads.
func (s *Server) Watch(ctx context.Context, jobs []wire.JobID) iter.Seq2[[]wire.JobStatus, error] {
	return func(yield func([]wire.JobStatus, error) bool) {
		w := watch{jobs: jobs}
		for {
			statuses, err := s.next(ctx, &w)
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(statuses, nil) || allEnded(statuses) {
				return
			}
		}
	}
}

// next waits until the jobs of w change.
func (s *Server) next(ctx context.Context, w *watch) ([]wire.JobStatus, error) {
	request := &watch{jobs: w.jobs, last: w.last, notBefore: w.notBefore, changed: true, answer: make(chan watchAnswer, 1)}
	if !s.post(func() { s.watches = append(s.watches, request) }) {
		return nil, ErrStopped
	}
	select {
	case a := <-request.answer:
		w.last, w.notBefore = a.statuses, s.now()+watchGap
		if a.err != nil {
			a.err = s.confirmed(ctx, a.epoch, a.err)
		}
		return a.statuses, a.err
	case <-ctx.Done():
		s.post(func() { s.unwatch(request) })
		return nil, ctx.Err()
	case <-s.done:
		return nil, ErrStopped
	}
}

func (s *Server) unwatch(w *watch) {
	for i, other := range s.watches {
		if other == w {
			s.watches = append(s.watches[:i], s.watches[i+1:]...)
			return
		}
	}
}

// answerWatches answers watches after an event.
func (s *Server) answerWatches() {
	waiting := s.watches[:0]
	for _, w := range s.watches {
		if !w.changed || !s.answerWatch(w) {
			waiting = append(waiting, w)
		}
	}
	clear(s.watches[len(waiting):])
	s.watches = waiting
}

func (s *Server) answerWatch(w *watch) bool {
	mayAnswer := s.now() >= w.notBefore
	if !mayAnswer && !s.ended(w.jobs) {
		return false
	}
	var a watchAnswer
	if !s.core.IsLeader() && !s.ended(w.jobs) {
		if a.err = s.core.CheckLeading(); a.err == nil {
			return false // elected, but does not lead yet
		}
		w.answer <- a
		return true
	}
	for _, id := range w.jobs {
		status, ok := s.core.StatusAt(s.now(), id)
		if !ok {
			a = watchAnswer{epoch: s.epoch.Load(), err: fmt.Errorf("%v: %w", id, admission.ErrUnknownJob)}
			break
		}
		a.statuses = append(a.statuses, status)
	}
	if a.err == nil && sameStatuses(a.statuses, w.last) && !allEnded(a.statuses) {
		w.changed = false
		return false
	}
	w.answer <- a
	return true
}

func (s *Server) ended(jobs []wire.JobID) bool {
	for _, id := range jobs {
		if state, ok := s.core.State(id); !ok || !state.Ended() {
			return false
		}
	}
	return true
}

func allEnded(statuses []wire.JobStatus) bool {
	for i := range statuses {
		if !statuses[i].State.Ended() {
			return false
		}
	}
	return true
}

// minEndChange is the smallest change of a predicted end that Watch reports.
const minEndChange = time.Second

// sameStatuses ignores the elapsed time and small changes of the predicted end.
func sameStatuses(a, b []wire.JobStatus) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		x, y := a[i], b[i]
		if (x.Ends == 0) == (y.Ends == 0) && (x.Ends-y.Ends).Abs() < minEndChange {
			x.Ends = y.Ends
		}
		x.Elapsed, y.Elapsed = 0, 0
		if !reflect.DeepEqual(x, y) {
			return false
		}
	}
	return true
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
