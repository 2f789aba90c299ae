package main

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

func (f *fakeJobTracker) WhatIf(context.Context) (*jobtracker.WhatIf, error) {
	s := &whatif.State{Now: 9 * time.Second}
	for n := range 2 {
		s.Jobs = append(s.Jobs, whatif.Job{ID: wire.JobID{Start: 7, N: n + 1}, Arrived: 8 * time.Second})
	}
	return &jobtracker.WhatIf{
		OpenJobs: &core.OpenJobs{
			Wall: 2000, Scheduling: wire.Scheduling{Scheduler: "fair", Metric: "sum-response"}, State: s, Access: make([]wire.Access, 2),
			LeftOut: []core.LeftOut{{Job: wire.JobID{Start: 7, N: 3}, Reason: "it is susp\nended"}},
		},
		Schedulers: []jobtracker.WhatIfScheduler{
			{Name: "fifo", Prediction: &whatif.Prediction{Ends: []float64{3, 4}, Plans: 2}, Summary: whatif.Summary{
				Values: []whatif.Value{{Metric: scheduler.Metric{}, Value: 3}}, MeanResponse: 4, MeanStretch: 1.5, LastEnd: 3, Late: 2, Submissions: 2,
			}},
			{Name: "fair", Err: errors.New("it takes long")},
		},
	}, nil
}
