package jobtracker

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"reflect"
	"time"

	"github.com/quernmr/quern/wire"
)

// Watch yields the jobs' states at once and after changes, but at most every 100 ms. It stops when
// all jobs have ended, or after an error: core.ErrNotLeader if another job tracker leads. Clients
// share what the states contain: it must not be changed.
func (s *Server) Watch(ctx context.Context, jobs []wire.JobID) iter.Seq2[[]wire.JobStatus, error] {
	return s.watch(ctx, jobs, func(states, _ []*jobState) []*jobState { return states })
}

// Changes is Watch, but after the first states yields only those that have changed.
func (s *Server) Changes(ctx context.Context, jobs []wire.JobID) iter.Seq2[[]wire.JobStatus, error] {
	return s.watch(ctx, jobs, func(states, last []*jobState) (changed []*jobState) {
		for i, state := range states {
			if last == nil || state != last[i] {
				changed = append(changed, state)
			}
		}
		return changed
	})
}

// watch yields what choose returns for the jobs' states and those before; nil: there are none before.
func (s *Server) watch(ctx context.Context, jobs []wire.JobID, choose func(states, last []*jobState) []*jobState) iter.Seq2[[]wire.JobStatus, error] {
	return func(yield func([]wire.JobStatus, error) bool) {
		w := newWatch(jobs)
		if !s.post(func() { s.watchers.add(w, s.now()) }) {
			yield(nil, ErrStopped)
			return
		}
		defer s.post(func() { s.watchers.remove(w) })
		var last []*jobState
		for {
			states, err := s.nextStates(ctx, w, last)
			if u := (*unconfirmed)(nil); errors.As(err, &u) {
				err = s.confirmed(ctx, u.epoch, u.error)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(statusesAt(choose(states, last), s.now()), nil) || allEnded(states) {
				return
			}
			last = states
		}
	}
}

// nextStates waits until a job's state differs from the last one.
func (s *Server) nextStates(ctx context.Context, w *watch, last []*jobState) ([]*jobState, error) {
	gap := time.NewTimer(watchGap)
	defer gap.Stop()
	early := last != nil // the last states came less than watchGap ago
	for {
		select {
		case <-w.wake:
		case <-gap.C:
			early = false
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-s.done:
			return nil, ErrStopped
		}
		states, changed, err := w.states(last)
		if err != nil || changed && (!early || allEnded(states)) {
			return states, err
		}
	}
}

// states returns the published states of a watch's jobs, and whether they differ from the last ones.
func (w *watch) states(last []*jobState) (states []*jobState, changed bool, err error) {
	of := w.state.Load()
	switch {
	case of == nil:
		return nil, false, nil
	case of.err != nil:
		return nil, false, of.err
	}
	states = make([]*jobState, len(of.jobs))
	changed = last == nil
	for i, j := range of.jobs {
		if states[i] = j.published.Load(); states[i] == nil {
			return nil, false, nil // it will be published soon
		}
		if states[i].err != nil {
			return nil, false, &unconfirmed{states[i].epoch, states[i].err}
		}
		changed = changed || states[i] != last[i]
	}
	return states, changed, nil
}

// unconfirmed is an error that this job tracker has found in an epoch, see confirmed.
type unconfirmed struct {
	epoch uint64
	error
}

func (e *unconfirmed) Unwrap() error { return e.error }

// statusesAt returns states as statuses at a time: a job that has not ended has grown older, and had slots for longer.
func statusesAt(states []*jobState, now time.Duration) []wire.JobStatus {
	statuses := make([]wire.JobStatus, len(states))
	for i, s := range states {
		statuses[i] = s.status
		if !s.status.State.Ended() {
			statuses[i].Elapsed += max(now-s.at, 0)
			statuses[i].SlotTime = cmp.Or(s.slots.Load(), s.status.SlotTime)
		}
	}
	return statuses
}

func allEnded(states []*jobState) bool {
	for _, s := range states {
		if !s.status.State.Ended() {
			return false
		}
	}
	return true
}

// minEndChange is the smallest change of a predicted end that Watch reports.
const minEndChange = time.Second

// sameStatus ignores what grows without an event: the elapsed time, the time in slots, and small changes of the
// predicted end.
func sameStatus(a, b *wire.JobStatus) bool {
	x, y := *a, *b
	if x.Prediction.CloseTo(&y.Prediction, minEndChange) {
		x.Prediction = y.Prediction
	}
	x.Elapsed, y.Elapsed = 0, 0
	x.SlotTime, y.SlotTime = nil, nil
	return reflect.DeepEqual(x, y)
}
