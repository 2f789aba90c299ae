package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// busyNoteEvery is the time between two messages of a client that waits.
const busyNoteEvery = time.Minute

// errNotAccepted ends the wait of an interrupted client. No job was submitted.
var errNotAccepted = errors.New("the cluster has not accepted the job")

// submitOrWait submits. While the cluster accepts no submission for now, it waits as long as the
// cluster says, up to twice as long so that many clients come at different times, and submits again
// with the same key. It ends with ctx.
func (s *session) submitOrWait(ctx context.Context) (err error) {
	var began, noted time.Time
	files := renewer{session: s, next: wall(s.Now()).Add(renewEvery)}
	undecided := false // an earlier request may have been accepted
	for {
		s.ids, err = s.Cluster.Submit(ctx, *s.sub)
		undecided = undecided || errors.Is(err, ErrUndecided)
		wait, busy := retryAfter(err)
		switch now := s.Now(); {
		case err == nil && !began.IsZero():
			fmt.Fprintf(s.Out, "accepted after %v\n", now.Sub(began).Round(time.Second))
			return nil
		case err == nil || !busy || s.NoWait:
			return err
		case began.IsZero():
			began, noted = now, now
			fmt.Fprintf(s.Out, "waiting until the cluster accepts the job: %s\n", OneLine(err.Error()))
		case now.Sub(noted) >= busyNoteEvery:
			noted = now
			fmt.Fprintf(s.Out, "still waiting after %v: %s\n", now.Sub(began).Round(time.Second), OneLine(err.Error()))
		}
		timer := time.NewTimer(wait + rand.N(wait))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			if undecided {
				return fmt.Errorf("%w: %w", ErrUndecided, ctx.Err())
			}
			return errNotAccepted
		}
		// If the job runs already, the cluster may have removed the files at its end.
		if err := files.renewIfDue(); err != nil && !undecided {
			return err
		}
	}
}

// retryAfter returns how long to wait if an error says that the cluster accepts no submission for
// now.
func retryAfter(err error) (wait time.Duration, busy bool) {
	var e interface {
		error
		RetryAfter() (time.Duration, bool)
	}
	if !errors.As(err, &e) {
		return 0, false
	}
	wait, busy = e.RetryAfter()
	return max(wait, time.Millisecond), busy
}
