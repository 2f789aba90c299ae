package web

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/jobtracker/core/admission"
	"github.com/quernmr/quern/wire"
)

// EndAttempt ends the first attempt of a job; the second one commits.
func (f *fake) EndAttempt(_ context.Context, caller core.Caller, id wire.AttemptID, fail bool, reason string) error {
	var err error
	f.log.change(func() {
		f.callers = append(f.callers, caller)
		switch _, err = f.status(id.Task.Job); {
		case err != nil:
		case id.N != 1000:
			err = fmt.Errorf("%v: %w", id, admission.ErrAttemptEnded)
		case id.Task.N > 0:
			err = fmt.Errorf("%v: %w", id, admission.ErrAttemptCommitting)
		default:
			f.ended = append(f.ended, fmt.Sprintf("%v %v %s", id, fail, reason))
		}
	})
	return err
}

// Changes always yields all jobs.
func (f *fake) Changes(ctx context.Context, ids []wire.JobID) iter.Seq2[[]wire.JobStatus, error] {
	return func(yield func([]wire.JobStatus, error) bool) {
		for {
			f.log.mu.Lock()
			var all []wire.JobStatus
			ended := true
			err := f.checkLeads()
			for _, id := range ids {
				s, unknown := f.status(id)
				err = errors.Join(err, unknown)
				all, ended = append(all, s), ended && s.State.Ended()
			}
			changed := f.log.changed
			f.log.mu.Unlock()
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(all, nil) || ended {
				return
			}
			select {
			case <-changed:
			case <-ctx.Done():
				yield(nil, ctx.Err())
				return
			}
		}
	}
}

// Follow yields all jobs after each change.
func (f *fake) Follow(ctx context.Context) iter.Seq2[[]core.Listed, error] {
	f.log.mu.Lock()
	defer f.log.mu.Unlock()
	changed := f.log.changed
	return func(yield func([]core.Listed, error) bool) {
		for {
			select {
			case <-changed:
			case <-ctx.Done():
				yield(nil, ctx.Err())
				return
			}
			f.log.mu.Lock()
			changed = f.log.changed
			var all []core.Listed
			for _, s := range f.log.jobs {
				all = append(all, core.Listed{JobStatus: s, Submitted: fakeSubmitted})
			}
			f.log.mu.Unlock()
			if !yield(all, nil) {
				return
			}
		}
	}
}
