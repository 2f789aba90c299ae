package admission

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/quernmr/quern/scheduler"
	"github.com/quernmr/quern/wire"
)

// TestCheckSettings checks each bound, and that settings at the bound pass.
func TestCheckSettings(t *testing.T) {
	const decade = 10 * 365 * 24 * time.Hour
	steps := func(n int) (all []wire.SLAStep) {
		for i := range n {
			all = append(all, wire.SLAStep{After: time.Duration(i), Cost: 1})
		}
		return all
	}
	for _, c := range []struct {
		settings wire.Settings
		want     string // in the error; empty: none
	}{
		{wire.Settings{}, ""},
		{wire.Settings{Priority: wire.VeryLow, Weight: 1e-6, Deadline: -decade, Batch: strings.Repeat("b", 200)}, ""},
		{wire.Settings{Priority: wire.VeryHigh, Weight: 1e6, Deadline: decade, Pool: strings.Repeat("p", 200), SLA: steps(100)}, ""},
		{wire.Settings{SLA: []wire.SLAStep{{After: -time.Minute}, {After: time.Minute, Cost: 1e12}}}, ""},
		{wire.Settings{Priority: wire.VeryLow - 1}, "priority -3"},
		{wire.Settings{Priority: wire.VeryHigh + 1}, "priority 3"},
		{wire.Settings{Weight: 0.9e-6}, "want a number from 1e-06 to 1e+06"},
		{wire.Settings{Weight: 1.1e6}, "want a number from 1e-06 to 1e+06"},
		{wire.Settings{Weight: -1}, "weight -1"},
		{wire.Settings{Weight: math.NaN()}, "weight NaN"},
		{wire.Settings{Deadline: decade + 1}, "the deadline is"},
		{wire.Settings{Deadline: -decade - 1}, "the deadline is"},
		{wire.Settings{Deadline: math.MinInt64}, "the deadline is"},
		{wire.Settings{SLA: steps(101)}, "an SLA of 101 steps, at most 100"},
		{wire.Settings{Batch: strings.Repeat("b", 201)}, "names of more than 200 bytes"},
		{wire.Settings{Pool: strings.Repeat("p", 201)}, "names of more than 200 bytes"},
		{wire.Settings{SLA: []wire.SLAStep{{Cost: -1}}}, "cost -1 after 0s"},
		{wire.Settings{SLA: []wire.SLAStep{{Cost: math.NaN()}}}, "cost NaN"},
		{wire.Settings{SLA: []wire.SLAStep{{Cost: 1.1e12}}}, "cost 1.1e+12"},
		{wire.Settings{SLA: []wire.SLAStep{{After: decade + 1}}}, "the SLA's step after"},
		{wire.Settings{SLA: []wire.SLAStep{{After: 2, Cost: 1}, {After: 2, Cost: 2}}}, "both must grow"},
		{wire.Settings{SLA: []wire.SLAStep{{After: 1, Cost: 2}, {After: 2, Cost: 1}}}, "both must grow"},
	} {
		err := checkSettings(c.settings)
		if c.want == "" && err != nil || c.want != "" && (!errors.Is(err, ErrBadSettings) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v: %v, want %q", c.settings, err, c.want)
		}
	}
}

// TestChangedSettings checks that other settings stay, and that a new deadline counts from now.
func TestChangedSettings(t *testing.T) {
	const age = 10 * time.Minute
	before := wire.Settings{Priority: wire.High, Weight: 2, Deadline: time.Hour, SLA: []wire.SLAStep{{After: 1, Cost: 1}}, Batch: "b", Pool: "p"}
	with := func(change func(*wire.Settings)) wire.Settings { after := before; change(&after); return after }
	for name, c := range map[string]struct {
		change wire.Change
		want   wire.Settings
	}{
		"nothing":             {wire.Change{}, before},
		"a priority":          {wire.Change{Priority: new(wire.Low)}, with(func(s *wire.Settings) { s.Priority = wire.Low })},
		"the default weight":  {wire.Change{Weight: new(0.0)}, with(func(s *wire.Settings) { s.Weight = 0 })},
		"a pool and batch":    {wire.Change{Pool: new(""), Batch: new("c")}, with(func(s *wire.Settings) { s.Pool, s.Batch = "", "c" })},
		"no SLA":              {wire.Change{SLA: new([]wire.SLAStep{})}, with(func(s *wire.Settings) { s.SLA = nil })},
		"a deadline from now": {wire.Change{Deadline: new(time.Minute)}, with(func(s *wire.Settings) { s.Deadline = 11 * time.Minute })},
		"a missed deadline":   {wire.Change{Deadline: new(-time.Hour)}, with(func(s *wire.Settings) { s.Deadline = -50 * time.Minute })},
		"the submission":      {wire.Change{Deadline: new(-age)}, with(func(s *wire.Settings) { s.Deadline = -1 })},
		"no deadline":         {wire.Change{Deadline: new(time.Duration(0))}, with(func(s *wire.Settings) { s.Deadline = 0 })},
	} {
		if got := settings(before, c.change, age); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// TestGoal checks that the priority multiplies the weight, and times count from the submission.
func TestGoal(t *testing.T) {
	const submitted = time.Hour
	for _, c := range []struct {
		settings wire.Settings
		want     scheduler.Goal
	}{
		{wire.Settings{}, scheduler.Goal{Weight: 1}},
		{wire.Settings{Priority: wire.VeryHigh, Weight: 3}, scheduler.Goal{Weight: 12}},
		{wire.Settings{Priority: wire.VeryLow}, scheduler.Goal{Weight: 0.25}},
		{wire.Settings{Deadline: time.Minute}, scheduler.Goal{Weight: 1, Deadline: submitted + time.Minute}},
		{wire.Settings{Deadline: -submitted}, scheduler.Goal{Weight: 1, Deadline: -1}}, // 0 would be none
		{wire.Settings{SLA: []wire.SLAStep{{After: time.Minute, Cost: 2}}}, scheduler.Goal{Weight: 1, Steps: []scheduler.Step{{By: submitted + time.Minute, Cost: 2}}}},
	} {
		c.want.Submitted = submitted
		if got := Goal(c.settings, submitted); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%+v: %+v, want %+v", c.settings, got, c.want)
		}
	}
}

// TestScheduling checks that the error names an unknown name. If the log has such a name, the
// default is in force, and Unknown gives the reason.
func TestScheduling(t *testing.T) {
	for _, c := range []struct {
		requested wire.Scheduling
		bad       string // the unknown name; empty: none
		want      string // in force
	}{
		{wire.Scheduling{}, "", "fifo"},
		{wire.Scheduling{Scheduler: "flex", Metric: "max-stretch", Delay: "fixed=3s"}, "", "flex"},
		{wire.Scheduling{Scheduler: "fastest"}, `"fastest"`, "fifo"},
		{wire.Scheduling{Scheduler: "flex", Metric: "sum-joy"}, `"sum-joy"`, "fifo"},
		{wire.Scheduling{Scheduler: "flex", Delay: "long"}, `"long"`, "fifo"},
	} {
		err := CheckScheduling(c.requested)
		if (err != nil) != (c.bad != "") || err != nil && (!errors.Is(err, ErrBadScheduling) || !strings.Contains(err.Error(), c.bad)) {
			t.Errorf("%+v: %v, want %q", c.requested, err, c.bad)
		}
		found := LookUp(c.requested)
		if found.Policy != c.want || found.Requested != c.requested.WithDefaults(defaultScheduling) || (found.Unknown == "") != (err == nil) || found.Metric == (scheduler.Metric{}) {
			t.Errorf("%+v: in force is %+v", c.requested, found)
		}
	}
}
