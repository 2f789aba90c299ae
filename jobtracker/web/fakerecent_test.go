package web

import (
	"context"

	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/jobtracker/core/pastplans"
	"github.com/quernmr/quern/wire"
)

// Recent has one attempt of each job.
func (f *fake) Recent(ctx context.Context) (*core.Recent, error) {
	var all []wire.JobAttempts
	jobs, _, err := f.Jobs(ctx, core.Query{Oldest: true})
	for _, s := range jobs {
		id := wire.AttemptID{Task: wire.TaskID{Job: s.ID, Kind: wire.Map}, N: 1000}
		all = append(all, wire.JobAttempts{Owner: s.Owner, Access: s.Access, Attempts: []wire.AttemptStatus{{Attempt: id, State: wire.AttemptRunning}}})
	}
	return &core.Recent{Jobs: all, Since: 1000}, err
}

// PastPlans has two samples of maps: of each job, and of none.
func (f *fake) PastPlans(ctx context.Context) (all [2]pastplans.View, err error) {
	jobs, _, err := f.Jobs(ctx, core.Query{Oldest: true})
	s := &pastplans.Sample{At: 1000, Slots: 9}
	for _, x := range jobs {
		s.Entries = append(s.Entries, pastplans.Entry{Job: &pastplans.Job{ID: x.ID, Owner: x.Owner, Access: x.Access}, Planned: 4, Used: int32(x.ID.N)})
	}
	all[0] = pastplans.View{Samples: []*pastplans.Sample{s, {At: 5000, Slots: 8}}, Since: 1000}
	return all, err
}
