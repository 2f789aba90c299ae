package jobtracker

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/scheduler"
	"github.com/quernmr/quern/scheduler/menu"
	"github.com/quernmr/quern/wire"
)

// TestWhatIf: each scheduler gets a prediction, while jobs run under another one. A scheduler that takes too long gets
// none, and is not called again before its call has ended; it neither delays the others nor plans of the cluster.
func TestWhatIf(t *testing.T) {
	stuck := make(stuckPolicy)
	defer close(stuck)
	s := start(t, func(c *Config) {
		c.PolicyDeadline = 20 * time.Second // the others end on a loaded machine, too
		c.Policies = func(name string) (scheduler.Policy, error) {
			if name == "srpt" {
				return stuck, nil
			}
			return menu.Policy(name)
		}
	})
	f := attach(t, s, "t1", 1, 5)
	f.onMap = func(m *wire.Launch) bool { return m.Attempt.Task.N == 0 } // the others never end
	go f.run()
	ids, err := s.Submit(testContext(t), core.Caller{Name: "ann"}, submission("a", 2))
	if err != nil {
		t.Fatal(err)
	}
	waitFor(t, "a map to end", func() bool {
		jobs, _, err := s.Jobs(testContext(t), core.Query{})
		return err == nil && len(jobs) == 1 && jobs[0].Maps.Done == 1
	})
	for _, again := range []bool{false, true} {
		x, err := s.WhatIf(testContext(t))
		if err != nil || len(x.Schedulers) != len(menu.Names()) || len(x.State.Jobs) != 1 || x.State.Jobs[0].ID != ids[0] || x.Scheduling.Scheduler != "fifo" {
			t.Fatalf("%+v, %v", x, err)
		}
		for i, p := range x.Schedulers {
			if p.Name != menu.Names()[i] {
				t.Errorf("prediction %d is for %s", i, p.Name)
			}
			if p.Name == "srpt" {
				if p.Err == nil || errors.Is(p.Err, errPolicyBusy) != again {
					t.Errorf("the scheduler that takes too long: %v, again: %v", p.Err, again)
				}
				continue
			}
			if p.Err != nil || p.Prediction.Plans == 0 || p.Prediction.Ends[0] <= 0 || p.MeanResponse < p.LastEnd || p.Submissions != 1 || len(p.Values) != len(scheduler.Metrics()) {
				t.Errorf("%s: %+v %+v, %v", p.Name, p.Prediction, p.Summary, p.Err)
			}
		}
	}
	ctx, cancel := context.WithCancel(testContext(t))
	cancel()
	if _, err := s.WhatIf(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("without a client: %v", err)
	}
}
