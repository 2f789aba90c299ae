package cluster_test

import (
	"testing"

	"github.com/quernmr/quern/integration/trial"
	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/wire"
)

// Row 49. One of three trackers is slower by ten: its last tasks get second attempts elsewhere, which
// win. The output is right. Maps take 3 s, so that delays of a busy machine do not hide the factor.
func TestSpeculative(t *testing.T) {
	c := start(t, oneJobTracker)
	slow := c.TaskTrackers[0]
	j := c.paced(12, trial.Speculate, "-map-time", "3s", "-reduce-time", "1s", "-slow-dir", slow.Data(), "-D", "mapreduce.job.reduces=6")
	j.checkSuccess()
	jobs, err := c.client.Jobs(c.ctx, core.Query{})
	if err != nil || len(jobs) != 1 {
		t.Fatalf("jobs: %v %v", jobs, err)
	}
	id, err := wire.ParseJobID(jobs[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	attempts, err := c.client.Attempts(c.ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	won := 0
	for _, a := range attempts.Items {
		if a.Speculative && a.State == "succeeded" {
			won++
			if a.Tracker == slow.ID {
				t.Errorf("%v is speculative and won on the slow tracker", a.ID)
			}
		}
	}
	if won == 0 {
		t.Errorf("no speculative attempt has succeeded: %+v", attempts.Items)
	}
}
