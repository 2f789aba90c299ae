package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/jobtracker/core/admission"
	"github.com/quernmr/quern/wire"
)

// Drain begins a drain. The fourth call of Cluster ends it.
func (f *fakeJobTracker) Drain(_ context.Context, tracker string, undo bool) error {
	if tracker == "t9" {
		return fmt.Errorf("drain: %w %q", core.ErrUnknownTracker, tracker)
	}
	f.clusterCalls, f.drains = 0, nil
	if !undo {
		f.drains = []wire.DrainStatus{{Tracker: tracker, Registered: true, Needs: "2 attempts"}}
	}
	return nil
}

func (f *fakeJobTracker) EndAttempt(_ context.Context, _ core.Caller, id wire.AttemptID, fail bool, reason string) error {
	if id.Task.N > 0 {
		return fmt.Errorf("%v: %w", id, admission.ErrAttemptCommitting)
	}
	f.changed = append(f.changed, fmt.Sprintf("%v %v %s", id, fail, reason))
	return nil
}

func (f *fakeJobTracker) Exclude(_ context.Context, x core.Exclude) error {
	if x.Tracker == "t9" {
		return fmt.Errorf("%w %q", core.ErrUnknownTracker, x.Tracker)
	}
	f.exclusions = slices.DeleteFunc(f.exclusions, func(e wire.ExclusionStatus) bool { return e.Tracker == x.Tracker })
	if !x.Undo {
		e := wire.ExclusionStatus{Tracker: x.Tracker, Operator: true, By: x.By, Reason: x.Reason, Since: 60_000, Registered: x.Tracker != "t7"}
		if x.For > 0 {
			e.Until = e.Since + x.For.Milliseconds()
		}
		f.exclusions = append(f.exclusions, e)
	}
	return nil
}

// tokenOf returns the token of a job.
func tokenOf(job string) string { return "token of " + job }
