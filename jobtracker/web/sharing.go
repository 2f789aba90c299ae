package web

import (
	"context"
	"time"

	"github.com/quernmr/quern/jobtracker"
	"github.com/quernmr/quern/jobtracker/glance"
	"github.com/quernmr/quern/wire"
)

// viewAge is how long values are kept that change all the time, whatIfAge how long predictions for schedulers are, and endedAge
// a value of an ended job, which never changes.
const (
	viewAge   = time.Second
	whatIfAge = 5 * time.Second
	endedAge  = 10 * time.Minute
)

// maxShared is how many jobs have shared values.
const maxShared = 64

// shared has the values that clients share. It is below permissions: handlers leave out what a user may not see.
type shared struct {
	predictions *glance.Value[*jobtracker.WhatIf]
	breakdowns  *glance.Table[wire.JobID, *jobtracker.JobBreakdown]
}

func newShared(cfg *Config) shared {
	server := cfg.Server // nil in some tests, which do not use it
	return shared{
		predictions: glance.New(func(ctx context.Context) (*jobtracker.WhatIf, error) { return server.WhatIf(ctx) }, glance.For[*jobtracker.WhatIf](whatIfAge)),
		breakdowns: glance.NewTable(maxShared, func(ctx context.Context, id wire.JobID) (*jobtracker.JobBreakdown, error) {
			return server.Breakdown(ctx, id)
		},
			func(b *jobtracker.JobBreakdown, took time.Duration) time.Duration {
				if b.Ended {
					return endedAge
				}
				return glance.For[*jobtracker.JobBreakdown](viewAge)(b, took)
			}),
	}
}
