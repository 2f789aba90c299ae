package web

import (
	"context"
	"time"

	"github.com/quernmr/quern/jobtracker"
	"github.com/quernmr/quern/wire"
)

// viewAge is how long values are kept that change all the time.
const viewAge = time.Second

// endedAge is how long a value of an ended job is kept, which never changes.
const endedAge = 10 * time.Minute

// sharedViews has the values that clients share.
type sharedViews struct {
	predictions *view[*jobtracker.WhatIf]
	breakdowns  *views[wire.JobID, *jobtracker.JobBreakdown]
}

func newSharedViews(cfg *Config) sharedViews {
	server := cfg.Server // nil in some tests, which do not use it
	return sharedViews{
		predictions: &view[*jobtracker.WhatIf]{
			make: func(ctx context.Context) (*jobtracker.WhatIf, error) { return server.WhatIf(ctx) }, now: time.Now,
			keep: keepFor[*jobtracker.WhatIf](whatIfKept),
		},
		breakdowns: &views[wire.JobID, *jobtracker.JobBreakdown]{view: func(id wire.JobID) *view[*jobtracker.JobBreakdown] {
			return &view[*jobtracker.JobBreakdown]{
				make: func(ctx context.Context) (*jobtracker.JobBreakdown, error) { return server.Breakdown(ctx, id) }, now: time.Now,
				keep: func(b *jobtracker.JobBreakdown, took time.Duration) time.Duration {
					if b.Ended {
						return endedAge
					}
					return max(viewAge, viewPart*took)
				},
			}
		}},
	}
}
