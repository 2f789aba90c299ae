package sim

import (
	"testing"
	"time"

	"github.com/quernmr/quern/wire"
)

// TestOverload: the simulation shows a leader that cannot follow. Heartbeats wait longer than a
// lease, and trackers leave the leader because they hear nothing for a lease. The leader loses none:
// its leases pause. With Steps as fast as measured the same fleet has no such trouble.
func TestOverload(t *testing.T) {
	withoutRace(t)
	f := Fleet{Seed: 1, Trackers: 100, Slots: [2]int{2, 1}, Jobs: 1, Maps: 400, Reduces: 2, AttemptTime: 5 * time.Second}
	r := RunFleet(f)
	if r.Violation != "" || r.Outcomes[wire.Succeeded] != 1 || r.Waited > 10*time.Millisecond || r.Silences+r.Lost > 0 {
		t.Errorf("as measured: %.300s; outcomes %v; an event waits for %v; %d silences, %d losses", r.Violation, r.Outcomes, r.Waited, r.Silences, r.Lost)
	}
	f.Slowness, f.End = 20_000, time.Minute
	r = RunFleet(f)
	t.Logf("slow: %d events, busy for %v of %v, longest wait %v, %d silences", r.Steps, r.Busy, r.Elapsed, r.Waited, r.Silences)
	if r.Violation != "" || r.Busy < r.Elapsed*9/10 || r.Waited < lease || r.Silences == 0 || r.Lost > 0 {
		t.Errorf("slow: %.300s; busy for %v of %v; an event waits for %v; %d silences, %d losses", r.Violation, r.Busy, r.Elapsed, r.Waited, r.Silences, r.Lost)
	}
}
