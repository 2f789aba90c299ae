package sim

import (
	"flag"
	"testing"
	"time"
)

var fleet = flag.Int("fleet", 50, "number of task trackers of TestFailover; it has twice as many jobs")

// TestFailover: a leader dies while each task tracker runs tasks. All of them take part again within
// 10 s of the election, keep their tasks, and none leaves the leader or is lost. They dial the job
// trackers a few times each. Row 48 of docs/promises.md; -fleet 5000 is its size.
func TestFailover(t *testing.T) {
	withoutRace(t)
	jobs := 2 * *fleet
	f := Fleet{
		Seed: 1, Trackers: *fleet, Slots: [2]int{2, 1}, Jobs: jobs, Every: 10 * time.Second / time.Duration(jobs), Maps: 1, Reduces: 1,
		AttemptTime: time.Hour, Failover: 40 * time.Second, End: time.Minute,
	}
	r := RunFleet(f)
	t.Logf("%d events, busy for %v of %v, longest wait %v; all take part again %v after the election, with %d dials",
		r.Steps, r.Busy, r.Elapsed, r.Waited, r.Rejoined, r.Dials)
	if r.Violation != "" || r.Rejoined > 10*time.Second || r.Lost+r.Silences > 0 || r.Dials > 15*f.Trackers {
		t.Errorf("%.500s; all take part again after %v; %d losses, %d silences, %d dials", r.Violation, r.Rejoined, r.Lost, r.Silences, r.Dials)
	}
}
