package core

import (
	"fmt"
	"slices"

	"github.com/quernmr/quern/jobtracker/core/admission"
	"github.com/quernmr/quern/wire"
)

// Clients kill single attempts, or fail them. Both end as if a tracker had been told so by the leader. A
// failed one counts against its task, but not against its tracker: no user may exclude trackers in this
// way. Failures of attempts are not in the log, so these requests are not either. A new leader knows
// none of them: the client asks again.

// endKey is the key of the requests to end an attempt.
func endKey(id wire.AttemptID) string { return "end " + id.String() }

// endAttempt handles a request to end an attempt. Its answer waits until the attempt has ended, unless
// its tracker is not connected: it gets the Kill when it connects.
func (l *leader) endAttempt(r EndAttempt) {
	a, err := l.attemptToEnd(r)
	switch {
	case err != nil:
		l.reply(r, err)
		return
	case a.tracker.contact.stream == 0 && !r.Fail:
		l.reply(r, nil)
	default:
		l.requests.add(endKey(r.Attempt), r)
	}
	l.killAttempt(a, endReason(r))
}

// attemptToEnd returns the running attempt that a request may end.
func (l *leader) attemptToEnd(r EndAttempt) (*attempt, error) {
	id := r.Attempt
	f := l.facts.Find(id.Task.Job)
	if err := admission.EndAttempt(l.facts, id.Task.Job, f, r.By); err != nil {
		return nil, err
	}
	j := l.jobs[f.N()]
	a := j.attempt(id)
	switch {
	case !id.Task.Kind.Slotted():
		return nil, fmt.Errorf("%v: %w", id, admission.ErrNotTask)
	case a == nil:
		return nil, fmt.Errorf("%v: %w", id, admission.ErrAttemptEnded)
	case id.Task.Kind == f.Kind() && f.HasGrant(id.Task.N, id.N):
		return nil, fmt.Errorf("%v: %w", id, admission.ErrAttemptCommitting)
	case r.Fail && a.killed() && a.reason != endReason(r):
		return nil, fmt.Errorf("%v: %w: it is being killed already: %s", id, admission.ErrAttemptEnded, a.reason)
	}
	return a, nil
}

// endReason is the reason of the Kill for a request.
func endReason(r EndAttempt) string {
	text := map[bool]string{true: "failed", false: "killed"}[r.Fail] + " by "
	if r.By.Known() {
		text += r.By.Name
	} else {
		text += "a user"
	}
	if r.Reason != "" {
		text += ": " + r.Reason
	}
	return wire.Truncate(text, 200)
}

// failedOnRequest reports whether a client has asked to fail an attempt.
func (l *leader) failedOnRequest(id wire.AttemptID) bool {
	return slices.ContainsFunc(l.requests[endKey(id)], func(w waitingRequest) bool { return w.request.(EndAttempt).Fail })
}

// answerEnds answers the requests to end an attempt that has ended in a state.
func (l *leader) answerEnds(a *attempt, state wire.AttemptState, lost bool) {
	if !a.killed() {
		return
	}
	key := endKey(a.id)
	for _, w := range l.requests[key] {
		var err error
		switch {
		case state == wire.AttemptSucceeded:
			err = fmt.Errorf("%v: %w: it has succeeded before", a.id, admission.ErrAttemptEnded)
		case lost && w.request.(EndAttempt).Fail:
			err = fmt.Errorf("%v: %w: it was lost with its task tracker, which is no failure", a.id, admission.ErrAttemptEnded)
		}
		l.reply(w, err)
	}
	delete(l.requests, key)
}
