package jobtracker

import (
	"context"

	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/jobtracker/core/pastplans"
)

// PastPlans returns the plans of the last minutes, as Core.PastPlans does. It fails with core.ErrNotLeader.
func (s *Server) PastPlans(ctx context.Context) ([2]pastplans.View, error) {
	var p [2]pastplans.View
	if err := s.query(ctx, func() { p = s.core.PastPlans() }); err != nil {
		return [2]pastplans.View{}, err // do not return p: Run may still write it
	}
	return p, nil
}

// Recent returns the attempts in slots of the jobs that have not ended, and the last ones of those that have. It
// fails with core.ErrNotLeader.
func (s *Server) Recent(ctx context.Context) (*core.Recent, error) {
	r, err := s.request(ctx, func(token core.Token) core.Event { return core.TakeRecent{Token: token} })
	if err != nil {
		return nil, err
	}
	return r.Recent.Get(), nil
}
