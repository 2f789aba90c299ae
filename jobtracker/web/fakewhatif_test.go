package web

import (
	"context"
	"errors"
	"time"

	"github.com/quernmr/quern/jobtracker"
	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/scheduler"
	"github.com/quernmr/quern/scheduler/whatif"
	"github.com/quernmr/quern/wire"
)

// WhatIf predicts that the first job ends in three seconds under fifo. It was submitted a second ago.
func (f *fake) WhatIf(context.Context) (*jobtracker.WhatIf, error) {
	f.log.mu.Lock()
	defer f.log.mu.Unlock()
	j := &f.log.jobs[0]
	s := &whatif.State{Now: 9 * time.Second, Jobs: []whatif.Job{{ID: j.ID, User: j.Owner, Arrived: 8 * time.Second}}}
	return &jobtracker.WhatIf{
		OpenJobs: &core.OpenJobs{
			Wall: 2000, Scheduling: wire.Scheduling{Scheduler: "fair"}, State: s, Access: []wire.Access{j.Access},
			LeftOut: []core.LeftOut{{Job: j.ID, Owner: j.Owner, Access: j.Access, Reason: "it is suspended"}},
		},
		Took: 70 * time.Millisecond,
		Schedulers: []jobtracker.WhatIfScheduler{
			{Name: "fifo", Prediction: &whatif.Prediction{Ends: []float64{3}, Plans: 2}, Summary: whatif.Summary{
				Values: []whatif.Value{{Metric: scheduler.Metric{}, Value: 3}}, MeanResponse: 4, LastEnd: 3, Submissions: 1,
			}},
			{Name: "fair", Err: errors.New("it takes long")},
		},
	}, nil
}
