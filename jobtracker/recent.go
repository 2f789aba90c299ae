package jobtracker

import (
	"context"

	"github.com/quernmr/quern/wire"
)

// Recent returns the attempts in slots of the jobs that have not ended, as core.Recent does. It fails with
// core.ErrNotLeader.
func (s *Server) Recent(ctx context.Context) ([]wire.JobAttempts, int64, error) {
	var jobs []wire.JobAttempts
	var since int64
	if err := s.query(ctx, func() { jobs, since = s.core.Recent() }); err != nil {
		return nil, 0, err // do not return jobs: Run may still write it
	}
	return jobs, since, nil
}
