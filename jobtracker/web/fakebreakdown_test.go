package web

import (
	"context"
	"slices"

	"github.com/quernmr/quern/jobtracker"
	"github.com/quernmr/quern/jobtracker/breakdown"
	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/wire"
)

// Breakdown breaks down the attempts of the history.
func (f *fake) Breakdown(ctx context.Context, id wire.JobID) (*jobtracker.JobBreakdown, error) {
	r, err := f.History(ctx, core.Caller{}, id)
	if err != nil {
		return nil, err
	}
	return &jobtracker.JobBreakdown{
		Breakdown: breakdown.Of(slices.Values(r.Attempts), 2000), Curve: []wire.CurvePoint{{At: 1000, Read: 5, Shuffled: 4, Reduced: 3}}, Owner: r.Owner, Access: r.Job.Access,
	}, nil
}
