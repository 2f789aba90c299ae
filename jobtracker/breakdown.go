package jobtracker

import (
	"context"
	"fmt"
	"slices"

	"github.com/quernmr/quern/jobtracker/breakdown"
	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/jobtracker/core/admission"
	"github.com/quernmr/quern/wire"
)

// JobBreakdown is what the attempts of a job tell, and who may see it.
type JobBreakdown struct {
	*breakdown.Breakdown
	Curve    []wire.CurvePoint
	Unlisted int  // attempts that it does not consider: there were too many
	Ended    bool // the job has ended: this never changes
	Owner    string
	Access   wire.Access
}

// Breakdown returns what the attempts of a job tell. Of an ended job, it reads the history. It checks no permission. It
// fails with admission.ErrUnknownJob, core.ErrNotLeader, or fs.ErrNotExist if an ended job has no history.
func (s *Server) Breakdown(ctx context.Context, job wire.JobID) (*JobBreakdown, error) {
	var x *core.Attempted
	known := false
	if err := s.query(ctx, func() {
		x = s.core.Attempted(job)
		_, _, known = s.core.Access(job)
	}); err != nil {
		return nil, err // do not return x: Run may still write it
	}
	if x != nil {
		return &JobBreakdown{Breakdown: breakdown.Of(x.All(), x.Wall), Curve: x.Curve, Unlisted: x.Omitted(), Owner: x.Owner, Access: x.Access}, nil
	}
	r, err := s.History(ctx, core.Caller{}, job)
	switch {
	case err != nil && !known:
		return nil, fmt.Errorf("%v: %w: %w", job, admission.ErrUnknownJob, err)
	case err != nil:
		return nil, err
	}
	return &JobBreakdown{Breakdown: breakdown.Of(slices.Values(r.Attempts), r.Ended), Curve: r.Curve, Unlisted: r.Omitted, Ended: true, Owner: r.Owner, Access: r.Job.Access}, nil
}
