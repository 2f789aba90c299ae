package jobtracker

import (
	"context"
	"errors"
	"testing"

	"github.com/quernmr/quern/dfs/mem"
	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/jobtracker/core/admission"
	"github.com/quernmr/quern/wire"
)

// TestBreakdown: while a job runs, and from its history, the breakdown has all of its attempts, and its bytes over time.
func TestBreakdown(t *testing.T) {
	s := start(t, func(c *Config) { c.FS, c.History = mem.New(1<<20), true })
	f := attach(t, s, "t1", 1, 5)
	held := make(chan struct{})
	f.onMap = func(m *wire.Launch) bool {
		select {
		case <-held:
			return true
		default:
			return m.Attempt.Task.N < 2
		}
	}
	go f.run()
	sub := submission("a", 1)
	sub.Plan.Jobs[0].Properties = map[string]string{wire.ViewACL: "bob"}
	ids, err := s.Submit(testContext(t), core.Caller{Name: "ann"}, sub)
	if err != nil {
		t.Fatal(err)
	}
	get := func() *JobBreakdown {
		ctx, cancel := context.WithCancel(testContext(t))
		defer cancel()
		x, err := s.Breakdown(ctx, ids[0])
		if err != nil {
			t.Fatal(err)
		}
		if x.Owner != "ann" || x.Access.View != "bob" || x.Unlisted != 0 {
			t.Errorf("%+v", x)
		}
		return x
	}
	waitFor(t, "two maps to run, after two", func() bool { x := get(); return x.Phases[0].Tasks == 2 && x.Phases[0].Running == 2 })
	if x := get(); x.Ended || len(x.Curve) == 0 {
		t.Errorf("while it runs: %+v", x)
	}
	if err := s.Kill(testContext(t), core.Caller{Name: "ann"}, ids[0], "enough"); err != nil {
		t.Fatal(err)
	}
	finish(t, s, ids)
	x := get()
	if !x.Ended || x.Phases[0].Tasks != 2 || x.Phases[0].Running != 0 || len(x.Curve) == 0 || x.Curve[len(x.Curve)-1].Read == 0 {
		t.Errorf("once it has ended: %+v %+v", x, x.Breakdown)
	}
	if _, err := s.Breakdown(testContext(t), wire.JobID{Start: 1, N: 1}); !errors.Is(err, admission.ErrUnknownJob) {
		t.Errorf("an unknown job: %v", err)
	}
}
