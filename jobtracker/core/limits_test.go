package core

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/quernmr/quern/wire"
)

// setLimits sets Config.Limits.
func (s *scenario) setLimits(d *datadriven.TestData) {
	x := &s.core.cfg.Limits
	number := func(name string) int {
		n, err := strconv.Atoi(value(d, name, "0"))
		if err != nil {
			s.t.Fatal(err)
		}
		return n
	}
	x.Jobs.All, x.Jobs.User, x.Jobs.Pool = number("jobs"), number("user-jobs"), number("pool-jobs")
	x.Begun.All, x.Begun.User, x.Begun.Pool = number("running"), number("user-running"), number("pool-running")
	x.Setups, x.TrackerSetups, x.Effects = number("setups"), number("tracker-setups"), number("effects")
	x.Maximum.Memory, x.Maximum.Processes, x.Maximum.Tasks = int64(number("memory"))<<20, number("processes"), number("tasks")
	if text := value(d, "lifetime", ""); text != "" {
		x.Maximum.Lifetime = duration(text)
	}
}

// TestOutrunTrackers: three of four trackers were outrun lately. They get homes of jobs with one
// partition, too, when the fourth serves ten times as many jobs.
func TestOutrunTrackers(t *testing.T) {
	now := time.Minute
	c := New(Config{Lease: 24 * time.Hour})
	var launched []Send
	feed := feeder(c, &now, collectLaunches(&launched))
	feed(Elected{Term: 1, Wall: 1})
	for i := range 4 {
		feed(FromTracker{Stream: Stream(i + 1), Message: &wire.Hello{Version: wire.Version, Tracker: fmt.Sprint(i), Process: 1, MapSlots: 1, ReduceSlots: 1}})
		feed(FromTracker{Stream: Stream(i + 1), Message: &wire.Inventory{}})
		c.leader.fleet.trackers[fmt.Sprint(i)].services.outran = now
	}
	c.leader.fleet.trackers["2"].services.outran = 0
	homes := func(jobs, reduces int) (all []int) {
		for range jobs {
			key := fmt.Sprint(now)
			now++
			feed(Submit{Submission: &wire.Submission{Key: key, Staging: "mem://s", Plan: wire.Plan{Jobs: []wire.JobPlan{{Reduces: reduces}}}}})
			for ; len(launched) > 0; launched = launched[1:] {
				if id := launched[0].Message.(*wire.Launch).Attempt; id.Task.Kind == wire.Setup {
					result := &wire.Result{Splits: &wire.SplitsDone{Maps: 1}}
					feed(FromTracker{Stream: launched[0].Stream, Message: &wire.Report{Attempt: id, State: wire.AttemptSucceeded, Result: result}})
				}
			}
		}
		for i := range 4 {
			n := 0
			for _, set := range c.leader.fleet.byIndex[i].hosting.homes {
				n += set.Len()
			}
			all = append(all, n)
		}
		return all
	}
	for _, step := range []struct {
		jobs, reduces int
		want          []int
	}{
		{10, 1, []int{0, 0, 10, 0}}, // as long as the others have few, they get none
		{3, 1, []int{1, 1, 10, 1}},
		{10, 1, []int{1, 1, 20, 1}},
		{3, 1, []int{2, 2, 20, 2}},
	} {
		if got := homes(step.jobs, step.reduces); !slices.Equal(got, step.want) {
			t.Fatalf("after %d more jobs the trackers have %v homes, want %v", step.jobs, got, step.want)
		}
	}
}
