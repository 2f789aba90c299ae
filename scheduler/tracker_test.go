package scheduler_test

import (
	"math"
	"testing"

	"github.com/quernmr/quern/scheduler"
	"github.com/quernmr/quern/wire"
)

func TestTrackersRefused(t *testing.T) {
	job := wire.JobID{Start: 1, N: 1}
	tracker := func(free ...float64) scheduler.Tracker { return scheduler.Tracker{ID: "a", Free: free} }
	measured := func(tasks int, seconds float64) []scheduler.Measured {
		return []scheduler.Measured{{Job: job, Tracker: "a", Tasks: tasks, Seconds: seconds}}
	}
	for want, s := range map[string]scheduler.Snapshot{
		"tracker a: field ID is given twice":                       {Slots: 2, Trackers: []scheduler.Tracker{tracker(0), tracker(0)}},
		"tracker a: field Free has -1":                             {Slots: 1, Trackers: []scheduler.Tracker{tracker(-1)}},
		"tracker a: field Free has NaN":                            {Slots: 1, Trackers: []scheduler.Tracker{tracker(math.NaN())}},
		"tracker a: field Free has +Inf":                           {Slots: 1, Trackers: []scheduler.Tracker{tracker(math.Inf(1))}},
		"snapshot: field Trackers has 1 slots, field Slots is 3":   {Slots: 3, Trackers: []scheduler.Tracker{tracker(0)}},
		"job_1_0001: field Measured has -1 tasks on tracker a":     {Measured: measured(-1, 1)},
		"job_1_0001: field Measured has -2 seconds on tracker a":   {Measured: measured(1, -2)},
		"job_1_0001: field Measured has NaN seconds on tracker a":  {Measured: measured(1, math.NaN())},
		"job_1_0001: field Measured has +Inf seconds on tracker a": {Measured: measured(1, math.Inf(1))},
		"job_1_0001: field Measured has tracker a twice":           {Measured: append(measured(1, 1), measured(2, 2)...)},
	} {
		if _, err := s.Normal(); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// TestTrackersNormal: trackers are sorted; entries without information are dropped.
func TestTrackersNormal(t *testing.T) {
	job := wire.JobID{Start: 1, N: 1}
	s, err := scheduler.Snapshot{
		Slots:    2,
		Trackers: []scheduler.Tracker{{ID: "b", Free: []float64{0}}, {ID: "c"}, {ID: "a", Free: []float64{1}}},
		Measured: []scheduler.Measured{{job, "b", 1, 2}, {job, "c", 1, 0}, {job, "d", 0, 3}, {job, "a", 1, 2}},
	}.Normal()
	if err != nil || len(s.Trackers) != 2 || s.Trackers[0].ID != "a" || len(s.Measured) != 2 || s.Measured[0].Tracker != "a" {
		t.Errorf("%+v: %v", s, err)
	}
}

func TestQueuesValidated(t *testing.T) {
	job, other, limited := wire.JobID{Start: 1, N: 1}, wire.JobID{Start: 1, N: 2}, wire.JobID{Start: 1, N: 3}
	s := scheduler.Snapshot{
		Slots: 1, Trackers: []scheduler.Tracker{{ID: "a", Free: []float64{0}}},
		Jobs: []scheduler.Job{{ID: job, Max: 2}, {ID: limited, Max: 1, Tasks: 3}},
	}
	for _, c := range []struct {
		queues []scheduler.Queue
		want   string
	}{
		{nil, ""},
		{[]scheduler.Queue{{Tracker: "a", Runs: []scheduler.Run{{job, 1}, {job, 1}}}}, ""},
		{[]scheduler.Queue{{Tracker: "a", Runs: []scheduler.Run{{limited, 3}}}}, ""}, // Max bounds slots, not tasks
		{[]scheduler.Queue{{Tracker: "a", Runs: []scheduler.Run{{limited, 4}}}}, "plan has tracker a run 4 tasks of job_1_0003, which has too few"},
		{[]scheduler.Queue{{Tracker: "b"}}, "plan names tracker b, unknown or for the second time"},
		{[]scheduler.Queue{{Tracker: "a"}, {Tracker: "a"}}, "plan names tracker a, unknown or for the second time"},
		{[]scheduler.Queue{{Tracker: "a", Runs: []scheduler.Run{{job, 3}}}}, "plan has tracker a run 3 tasks of job_1_0001, which has too few"},
		{[]scheduler.Queue{{Tracker: "a", Runs: []scheduler.Run{{job, 0}}}}, "plan has tracker a run 0 tasks of job_1_0001, which has too few"},
		{[]scheduler.Queue{{Tracker: "a", Runs: []scheduler.Run{{other, 1}}}}, "plan has tracker a run 1 tasks of job_1_0002, which has too few"},
	} {
		got := ""
		if err := (scheduler.Plan{Queues: c.queues}).Validate(s); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}
