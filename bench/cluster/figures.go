package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/quernmr/quern/bench/testbed"
	"github.com/quernmr/quern/integration/processes"
	"github.com/quernmr/quern/jobtracker/web"
	"github.com/quernmr/quern/wire"
)

// leader finds the leading job tracker and its epoch.
func (b *bench) leader(c *testbed.Cluster) (leader *processes.Daemon, epoch uint64, err error) {
	err = b.await("leader", func() bool {
		d, status := c.Leader(b.Ctx, nil)
		if d != nil {
			leader, epoch = d, status.Epoch
		}
		return d != nil
	})
	return leader, epoch, err
}

// paced starts a job with one map for each line of input.
func (b *bench) paced(c *testbed.Cluster, in, out string, flags ...string) (wait func() error) {
	args := append([]string{"-D", "mapreduce.input.fileinputformat.split.maxsize=128", c.Program("paced"),
		"-input", in, "-output", out}, flags...)
	ended := make(chan error, 1)
	go func() {
		_, err := c.Run(b.Ctx, args...)
		ended <- err
	}()
	return func() error { return <-ended }
}

// runningJob waits until six maps of the running job have ended.
func (b *bench) runningJob(c *testbed.Cluster) (id wire.JobID, err error) {
	err = b.await("running job", func() bool {
		last, err := c.LastJob(b.Ctx)
		if err != nil || last.State != wire.Running.String() || last.Maps.Done < 6 {
			return false
		}
		id, err = wire.ParseJobID(last.ID)
		return err == nil
	})
	return id, err
}

// failover kills the leader during a job and measures the time to the next leader's first
// launch. Traces of the attempts show whether any was killed or ran twice.
func (b *bench) failover(c *testbed.Cluster) error {
	in, err := b.writeLines(60)
	if err != nil {
		return err
	}
	var gaps []time.Duration
	for i := range b.Runs {
		gap, err := b.oneFailover(c, in, c.NewPath("failover"))
		if err != nil {
			return fmt.Errorf("run %d: %w", i, err)
		}
		gaps = append(gaps, gap)
	}
	printTimes("leader killed under 60 tasks: assignments again", gaps, testbed.Millis, "p50 ≤ 1.5 s, worst of 10 ≤ 3 s")
	return nil
}

func (b *bench) oneFailover(c *testbed.Cluster, in, dir string) (time.Duration, error) {
	trace := filepath.Join(dir, "trace")
	if err := os.MkdirAll(trace, 0o777); err != nil {
		return 0, err
	}
	wait := b.paced(c, in, filepath.Join(dir, "out"), "-map-time", "400ms", "-trace", trace)
	id, err := b.runningJob(c)
	if err != nil {
		return 0, errors.Join(err, wait())
	}
	old, epoch, err := b.leader(c)
	if err != nil {
		return 0, err
	}
	killed := time.Now()
	if err := old.Kill(); err != nil {
		return 0, err
	}
	var first time.Time
	if err := b.await("launch by a new leader", func() bool {
		attempts, err := c.API.Attempts(b.Ctx, id)
		if err != nil {
			return false
		}
		first = firstLaunch(attempts.Items, epoch)
		return !first.IsZero()
	}); err != nil {
		return 0, err
	}
	if err := wait(); err != nil {
		return 0, err
	}
	if err := errors.Join(checkTraces(trace, 60), old.Start(), old.Ready(b.Ctx), b.awaitSameEpoch(c)); err != nil {
		return 0, err
	}
	return first.Sub(killed.Truncate(time.Millisecond)), nil
}

// awaitSameEpoch waits until all job trackers have the same epoch in the log. A restarted job
// tracker needs some seconds, and cannot be elected before.
func (b *bench) awaitSameEpoch(c *testbed.Cluster) error {
	return b.await("job trackers of one epoch", func() bool {
		epochs := make(map[uint64]bool)
		for _, d := range c.JobTrackers {
			s, err := d.Status(b.Ctx)
			if err != nil {
				return false
			}
			epochs[s.Epoch] = true
		}
		return len(epochs) == 1
	})
}

// firstLaunch returns the start of the first attempt from a later epoch.
func firstLaunch(attempts []web.Attempt, epoch uint64) (first time.Time) {
	for _, a := range attempts {
		id, err := wire.ParseAttemptID(a.ID)
		if err == nil && uint64(id.N/wire.EpochAttempts) > epoch && (first.IsZero() || a.Began.Before(first)) {
			first = a.Began
		}
	}
	return first
}

// checkTraces checks that each of n maps began and ended once.
func checkTraces(dir string, n int) error {
	began, _ := filepath.Glob(filepath.Join(dir, "*_m_*.began")) // the patterns are well-formed
	ended, _ := filepath.Glob(filepath.Join(dir, "*_m_*.ended"))
	if len(began) != n || len(ended) != n {
		return fmt.Errorf("%d map attempts began and %d ended, want %d each", len(began), len(ended), n)
	}
	return nil
}

// smallJob measures a small job from mrsubmit's start to _SUCCESS, and to mrsubmit's end.
func (b *bench) smallJob(c *testbed.Cluster) error {
	in, err := b.writeLines(8) // 1 KB
	if err != nil {
		return err
	}
	var success, whole []time.Duration
	for i := range b.Runs + 1 {
		out := c.NewPath("small")
		cmd := c.Command(b.Ctx, "mrsubmit", "run", c.Program("wordcount"), "-input", in, "-output", out)
		began := time.Now()
		if err := cmd.Start(); err != nil {
			return err
		}
		if err := b.await("_SUCCESS", func() bool {
			_, err := os.Stat(filepath.Join(out, "_SUCCESS"))
			return err == nil
		}); err != nil {
			return err
		}
		committed := time.Since(began)
		if err := cmd.Wait(); err != nil {
			return err
		}
		if i > 0 { // the first job warms the cluster up
			success, whole = append(success, committed), append(whole, time.Since(began))
		}
	}
	printTimes("word count of 1 KB, mrsubmit's start to _SUCCESS", success, testbed.Millis, "p50 ≤ 150 ms")
	printTimes("the same to mrsubmit's end", whole, testbed.Millis, "–")
	return nil
}

// log measures the log bytes of a job with many tasks, and of tasks that only run.
func (b *bench) log(c *testbed.Cluster) error {
	const tasks = 10_000
	in, err := b.writeLines(tasks)
	if err != nil {
		return err
	}
	idle, err := b.writeLines(6)
	if err != nil {
		return err
	}
	before, err := b.logBytes(c)
	if err != nil {
		return err
	}
	if err := b.paced(c, in, c.NewPath("maponly"), "-map-only")(); err != nil {
		return err
	}
	after, err := b.logBytes(c)
	if err != nil {
		return err
	}
	perTask := float64(after-before) / tasks

	// Meanwhile, tasks only run and trackers renew their leases.
	wait := b.paced(c, idle, c.NewPath("idle"), "-map-time", "8s")
	if err := b.await("six running maps", func() bool {
		s, err := c.API.Cluster(b.Ctx)
		running := 0
		for i := 0; err == nil && i < len(s.Trackers); i++ {
			running += s.Trackers[i].Maps
		}
		return running == 6
	}); err != nil {
		return err
	}
	before, err = b.logBytes(c)
	if err != nil {
		return err
	}
	select {
	case <-time.After(6 * time.Second):
	case <-b.Ctx.Done():
		return b.Ctx.Err()
	}
	after, err = b.logBytes(c)
	if err := errors.Join(err, wait()); err != nil {
		return err
	}
	testbed.Row("map-only job of 10,000 tasks: log bytes a task, on one voter", fmt.Sprintf("%.1f", perTask), "", "≤ 100")
	testbed.Row("6 s of running tasks and renewed leases: log bytes", fmt.Sprint(after-before), "", "0")
	return nil
}

// logBytes returns the size of the first job tracker's log.
func (b *bench) logBytes(c *testbed.Cluster) (int64, error) {
	s, err := c.JobTrackers[0].Status(b.Ctx)
	if err != nil {
		return 0, err
	}
	return s.Log.Bytes, nil
}

// join measures the time from the start of a tracker with one gossip address to its first slot.
func (b *bench) join(c *testbed.Cluster) error {
	var took []time.Duration
	for i := range b.Runs {
		d, err := c.AddTaskTracker(fmt.Sprintf("new%d", i))
		if err != nil {
			return err
		}
		began := time.Now()
		if err := d.Start(); err != nil {
			return err
		}
		if err := b.await("new tracker", func() bool {
			s, err := c.API.Cluster(b.Ctx)
			return err == nil && slices.ContainsFunc(s.Trackers, func(t web.Tracker) bool { return t.ID == d.ID && t.Connected })
		}); err != nil {
			return err
		}
		took = append(took, time.Since(began))
		if err := d.Terminate(); err != nil {
			return err
		}
	}
	printTimes("a tracker given one gossip address: start to its first slot", took, testbed.Millis, "≤ 2 s")
	return nil
}
