package cluster_test

import (
	"errors"
	"flag"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/quernmr/quern/integration/processes"
	"github.com/quernmr/quern/integration/trial"
)

var (
	chaosTime = flag.Duration("chaos", 2*time.Minute, "how long TestChaos kills and stops daemons")
	chaosSeed = flag.Uint64("chaos-seed", 1, "seed of TestChaos's faults")
)

// TestChaos kills and stops daemons at random while jobs are submitted. Every
// acknowledged job ends with the right output.
func TestChaos(t *testing.T) {
	t.Parallel()
	c := startWithLimit(t, *chaosTime+2*trial.Deadline, shortLease)
	t.Logf("seed %d: repeat with -chaos=%v -chaos-seed=%d", *chaosSeed, *chaosTime, *chaosSeed)
	r := rand.New(rand.NewPCG(*chaosSeed, 0))
	end := time.NewTimer(*chaosTime)
	defer end.Stop()
	step := time.NewTicker(500 * time.Millisecond)
	defer step.Stop()
	var running []*job
	ended, faults := 0, 0
	for over := false; !over; {
		select {
		case <-end.C:
			over = true
		case <-step.C:
		}
		for len(running) < 3 && !over {
			running = append(running, c.paced(4+r.IntN(12), "-map-time", "150ms", "-reduce-time", "150ms", "-D", "mapreduce.job.reduces=2"))
		}
		unfinished := running[:0]
		for _, j := range running {
			select {
			case <-j.Ended:
				j.checkSuccess()
				ended++
			default:
				unfinished = append(unfinished, j)
			}
		}
		running = unfinished
		if !over && c.disturb(r) {
			faults++
		}
	}
	c.repairAll()
	for _, j := range running {
		j.checkSuccess()
		ended++
	}
	t.Logf("%d jobs, %d faults", ended, faults)
}

// disturb kills, stops or repairs one daemon. A majority of the job trackers and one task tracker
// always run. It reports whether it injected a fault.
func (c *cluster) disturb(r *rand.Rand) bool {
	c.t.Helper()
	group, minimum := c.JobTrackers, len(c.JobTrackers)/2+1
	if r.IntN(2) == 0 {
		group, minimum = c.TaskTrackers, 1
	}
	d := group[r.IntN(len(group))]
	if !d.Healthy() {
		c.repair(d)
		return false
	}
	healthy := 0
	for _, other := range group {
		if other.Healthy() {
			healthy++
		}
	}
	if healthy <= minimum {
		return false
	}
	var err error
	if r.IntN(2) == 0 {
		err = d.Stop()
	} else {
		err = d.Kill()
	}
	if err != nil {
		c.t.Error(err)
	}
	return true
}

// repair starts or continues a daemon.
func (c *cluster) repair(d *processes.Daemon) {
	c.t.Helper()
	if d.Crashed() {
		c.t.Errorf("%s has crashed:\n%s", d.ID, d.LastLines())
	}
	var err error
	if d.Running() {
		err = d.Continue()
	} else {
		err = d.Start()
	}
	if err != nil {
		c.t.Error(err)
	}
}

// repairAll repairs every daemon and waits until it is ready.
func (c *cluster) repairAll() {
	c.t.Helper()
	for _, d := range c.All() {
		if !d.Healthy() {
			c.repair(d)
		}
	}
	var errs []error
	for _, d := range c.All() {
		errs = append(errs, d.Ready(c.ctx))
	}
	if err := errors.Join(errs...); err != nil {
		c.t.Error(err)
	}
}
