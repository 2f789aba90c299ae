package cluster_test

import (
	"errors"
	"flag"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/quernmr/quern/integration/processes"
	"github.com/quernmr/quern/integration/trial"
)

var (
	chaosTime = flag.Duration("chaos", 2*time.Minute, "how long TestChaos kills and stops daemons")
	chaosSeed = flag.Uint64("chaos-seed", 1, "seed of TestChaos's faults")

	chaosReportFile = flag.String("chaos-report", "", "file for the report of TestChaos, in Markdown")
)

// TestChaos kills and stops daemons at random while jobs are submitted, and keeps up to half of
// the task trackers sick, see sickness. Every acknowledged job ends with the output of a word count
// in one process.
func TestChaos(t *testing.T) {
	t.Parallel()
	c := startWithLimit(t, *chaosTime+commandLimit, shortLease, func(cfg *processes.Config) {
		cfg.TaskTrackers, cfg.Proxied = 6, true
		cfg.TaskTrackerFlags = append(cfg.TaskTrackerFlags, "-pass-env", "PACED_*")
	})
	t.Logf("seed %d: repeat with -chaos=%v -chaos-seed=%d", *chaosSeed, *chaosTime, *chaosSeed)
	r := rand.New(rand.NewPCG(*chaosSeed, 0))
	end := time.NewTimer(*chaosTime)
	defer end.Stop()
	step := time.NewTicker(500 * time.Millisecond)
	defer step.Stop()
	s := &sickness{c: c, r: r, sick: make(map[*processes.Daemon]*ailment), report: newChaosReport(*chaosSeed)}
	var running []*job
	for over := false; !over; {
		select {
		case <-end.C:
			over = true
		case <-step.C:
		}
		for len(running) < 3 && !over {
			running = append(running, c.paced(4+r.IntN(12), trial.Speculate, "-map-time", "150ms", "-reduce-time", "150ms", "-D", "mapreduce.job.reduces=2"))
		}
		unfinished := running[:0]
		for _, j := range running {
			select {
			case <-j.Ended:
				j.checkSuccess()
				s.report.ended(j)
			default:
				unfinished = append(unfinished, j)
			}
		}
		running = unfinished
		if !over {
			s.step()
			s.report.watch(c)
		}
	}
	s.healAll()
	c.repairAll()
	for _, j := range running {
		j.checkSuccess()
		s.report.ended(j)
	}
	text := s.report.text(*chaosTime)
	t.Log("\n" + text)
	if *chaosReportFile != "" {
		if err := os.WriteFile(*chaosReportFile, []byte(text), 0o666); err != nil {
			t.Error(err)
		}
	}
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
