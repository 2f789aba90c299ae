package jobtracker

import (
	"context"

	"github.com/quernmr/quern/jobtracker/core/pastplans"
	"github.com/quernmr/quern/wire"
)

// PastPlans returns the plans of the last minutes, as Core.PastPlans does. It fails with core.ErrNotLeader.
func (s *Server) PastPlans(ctx context.Context) ([2]pastplans.View, error) {
	var p [2]pastplans.View
	if err := s.query(ctx, func() { p = s.core.PastPlans() }); err != nil {
		return [2]pastplans.View{}, err // do not return p: Run may still write it
	}
	return p, nil
}

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
