package web

import (
	"context"

	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/wire"
)

// Recent has one attempt of each job.
func (f *fake) Recent(ctx context.Context) (all []wire.JobAttempts, since int64, err error) {
	jobs, _, err := f.Jobs(ctx, core.Query{Oldest: true})
	for _, s := range jobs {
		id := wire.AttemptID{Task: wire.TaskID{Job: s.ID, Kind: wire.Map}, N: 1000}
		all = append(all, wire.JobAttempts{Owner: s.Owner, Access: s.Access, Attempts: []wire.AttemptStatus{{Attempt: id, State: wire.AttemptRunning}}})
	}
	return all, 1000, err
}
