package jobtracker

import (
	"context"

	"github.com/quernmr/quern/jobtracker/core"
)

// confirmed returns err, or a core.NotLeaderError if this job tracker did not lead any more when it
// made an answer in an epoch. A leader that was stopped may have facts that are out of date, and
// goes on before it knows of another leader. Answers after a commit need no confirmation.
func (s *Server) confirmed(ctx context.Context, epoch uint64, err error) error {
	if epoch == 0 {
		return err // a follower does not claim to lead
	}
	terms := make(chan uint64, 1)
	s.cfg.Log.Confirm(func(term uint64) { terms <- term })
	select {
	case term := <-terms:
		if term != epoch {
			return &core.NotLeaderError{}
		}
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-s.done:
		return ErrStopped
	}
}
