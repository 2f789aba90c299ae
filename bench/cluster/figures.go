package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/quernmr/quern/integration/processes"
	"github.com/quernmr/quern/jobtracker/web"
	"github.com/quernmr/quern/wire"
)

// client asks one job tracker, or all of them.
func client(addrs ...string) *web.Client { return web.NewClient(addrs) }

// poll is how often something is looked at that tells nobody when it changes.
const poll = time.Millisecond

// await polls until something holds.
func (b *bench) await(what string, holds func() bool) error {
	limit := time.NewTimer(time.Minute)
	defer limit.Stop()
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-limit.C:
			return fmt.Errorf("no %s within a minute", what)
		case <-b.ctx.Done():
			return b.ctx.Err()
		}
	}
	return nil
}

// leader finds the job tracker that leads, and its epoch.
func (b *bench) leader(c *processes.Cluster) (leader *processes.Daemon, epoch uint64, err error) {
	err = b.await("leader", func() bool {
		d, status := c.Leader(b.ctx, nil)
		if d != nil {
			leader, epoch = d, status.Epoch
		}
		return d != nil
	})
	return leader, epoch, err
}

// lines makes an input of one split a line.
func lines(name string, n int) error {
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, "%-127s\n", fmt.Sprintf("w%d w%d w%d", i%7, i%31, i))
	}
	return os.WriteFile(name, []byte(text.String()), 0o666)
}

// paced starts a job with one map a line of input.
func (b *bench) paced(c *processes.Cluster, in, out string, flags ...string) (wait func() error) {
	args := append([]string{"run", "-D", "mapreduce.input.fileinputformat.split.maxsize=128", c.Program("paced"),
		"-input", in, "-output", out}, flags...)
	cmd := c.Command(b.ctx, "mrsubmit", args...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	err := cmd.Start()
	return func() error {
		if err == nil {
			err = cmd.Wait()
		}
		if err != nil {
			return fmt.Errorf("%w\n%s", err, said.String())
		}
		return nil
	}
}

// live is the job that has not ended.
func (b *bench) live(c *web.Client) (id wire.JobID, err error) {
	err = b.await("running job", func() bool {
		jobs, err := c.Jobs(b.ctx)
		if err != nil || len(jobs) == 0 {
			return false
		}
		last := jobs[len(jobs)-1]
		if last.State != wire.Running.String() || last.Maps.Done < 6 {
			return false
		}
		id, err = wire.ParseJobID(last.ID)
		return err == nil
	})
	return id, err
}

// failover kills the leader while a job runs and takes the time until the next
// one launches an attempt. Traces of the attempts tell whether any was killed or
// ran twice.
func (b *bench) failover() ([]string, error) {
	c, err := b.cluster()
	if err != nil {
		return nil, err
	}
	defer c.Close()
	in := filepath.Join(b.dir, "lines60")
	if err := lines(in, 60); err != nil {
		return nil, err
	}
	var gaps []time.Duration
	for i := range b.runs {
		gap, err := b.oneFailover(c, in, filepath.Join(b.dir, fmt.Sprintf("failover%d", i)))
		if err != nil {
			return nil, fmt.Errorf("run %d: %w", i, err)
		}
		gaps = append(gaps, gap)
	}
	return []string{times("leader killed under 60 tasks: assignments again", gaps, "p50 ≤ 1.5 s, worst of 10 ≤ 3 s")}, nil
}

func (b *bench) oneFailover(c *processes.Cluster, in, dir string) (time.Duration, error) {
	trace := filepath.Join(dir, "trace")
	if err := os.MkdirAll(trace, 0o777); err != nil {
		return 0, err
	}
	wait := b.paced(c, in, filepath.Join(dir, "out"), "-map-time", "400ms", "-trace", trace)
	all := client(strings.Split(c.Addrs(), ",")...)
	id, err := b.live(all)
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
		attempts, err := all.Attempts(b.ctx, id)
		if err != nil {
			return false
		}
		first = firstOf(attempts.Attempts, epoch)
		return !first.IsZero()
	}); err != nil {
		return 0, err
	}
	if err := wait(); err != nil {
		return 0, err
	}
	if err := errors.Join(tracesOnce(trace, 60), old.Start(), old.Ready(b.ctx), b.level(c)); err != nil {
		return 0, err
	}
	return first.Sub(killed.Truncate(time.Millisecond)), nil
}

// level waits until all job trackers have followed the log to the same epoch: one
// that has just come back is behind for some seconds, and cannot be elected.
func (b *bench) level(c *processes.Cluster) error {
	return b.await("job trackers of one epoch", func() bool {
		epochs := make(map[uint64]bool)
		for _, d := range c.JobTrackers {
			s, err := d.Says(b.ctx)
			if err != nil {
				return false
			}
			epochs[s.Epoch] = true
		}
		return len(epochs) == 1
	})
}

// firstOf is when the first attempt of an epoch after the given one began.
func firstOf(attempts []web.Attempt, epoch uint64) (first time.Time) {
	for _, a := range attempts {
		id, err := wire.ParseAttemptID(a.ID)
		if err == nil && uint64(id.N/wire.EpochAttempts) > epoch && (first.IsZero() || a.Began.Before(first)) {
			first = a.Began
		}
	}
	return first
}

// tracesOnce checks that each of n maps began once and came to its end.
func tracesOnce(dir string, n int) error {
	began, _ := filepath.Glob(filepath.Join(dir, "*_m_*.began")) // the patterns are well-formed
	ended, _ := filepath.Glob(filepath.Join(dir, "*_m_*.ended"))
	if len(began) != n || len(ended) != n {
		return fmt.Errorf("%d map attempts began and %d ended, want %d each", len(began), len(ended), n)
	}
	return nil
}

// small measures a whole small job, program start to _SUCCESS and to its end.
func (b *bench) small() ([]string, error) {
	c, err := b.cluster()
	if err != nil {
		return nil, err
	}
	defer c.Close()
	in := filepath.Join(b.dir, "lines8") // 1 KB
	if err := lines(in, 8); err != nil {
		return nil, err
	}
	var success, whole []time.Duration
	for i := range b.runs + 1 {
		out := filepath.Join(b.dir, fmt.Sprintf("small%d", i))
		cmd := c.Command(b.ctx, "mrsubmit", "run", c.Program("wordcount"), "-input", in, "-output", out)
		began := time.Now()
		if err := cmd.Start(); err != nil {
			return nil, err
		}
		if err := b.await("_SUCCESS", func() bool {
			_, err := os.Stat(filepath.Join(out, "_SUCCESS"))
			return err == nil
		}); err != nil {
			return nil, err
		}
		there := time.Since(began)
		if err := cmd.Wait(); err != nil {
			return nil, err
		}
		if i > 0 { // the first one warms the cluster up
			success, whole = append(success, there), append(whole, time.Since(began))
		}
	}
	return []string{
		times("word count of 1 KB, mrsubmit's start to _SUCCESS", success, "p50 ≤ 150 ms"),
		times("the same to mrsubmit's end", whole, "–"),
	}, nil
}

// log measures what the job trackers store of a job of many tasks, and of nothing
// but time and running tasks.
func (b *bench) log() ([]string, error) {
	c, err := b.cluster()
	if err != nil {
		return nil, err
	}
	defer c.Close()
	const tasks = 10_000
	in := filepath.Join(b.dir, "lines10000")
	idle := filepath.Join(b.dir, "lines6")
	if err := errors.Join(lines(in, tasks), lines(idle, 6)); err != nil {
		return nil, err
	}
	before, err := b.stored(c)
	if err != nil {
		return nil, err
	}
	if err := b.paced(c, in, filepath.Join(b.dir, "maponly"), "-map-only")(); err != nil {
		return nil, err
	}
	after, err := b.stored(c)
	if err != nil {
		return nil, err
	}
	perTask := float64(after-before) / tasks

	// Tasks that run, and leases that are renewed.
	wait := b.paced(c, idle, filepath.Join(b.dir, "idle"), "-map-time", "8s")
	all := client(strings.Split(c.Addrs(), ",")...)
	if err := b.await("six running maps", func() bool {
		s, err := all.Cluster(b.ctx)
		running := 0
		for i := 0; err == nil && i < len(s.Trackers); i++ {
			running += s.Trackers[i].Maps
		}
		return running == 6
	}); err != nil {
		return nil, err
	}
	before, err = b.stored(c)
	if err != nil {
		return nil, err
	}
	pause := time.NewTimer(6 * time.Second)
	defer pause.Stop()
	select {
	case <-pause.C:
	case <-b.ctx.Done():
		return nil, b.ctx.Err()
	}
	after, err = b.stored(c)
	if err := errors.Join(err, wait()); err != nil {
		return nil, err
	}
	return []string{
		row("map-only job of 10,000 tasks: log bytes a task, on one voter", fmt.Sprintf("%.1f", perTask), "", "≤ 100"),
		row("6 s of running tasks and renewed leases: log bytes", fmt.Sprint(after-before), "", "0"),
	}, nil
}

// stored is what the first job tracker has given to its log's disk.
func (b *bench) stored(c *processes.Cluster) (int64, error) {
	s, err := c.JobTrackers[0].Says(b.ctx)
	if err != nil {
		return 0, err
	}
	return s.Log.Bytes, nil
}

// join measures how long a tracker that knows one gossip address takes until it
// can be given tasks.
func (b *bench) join() ([]string, error) {
	c, err := b.cluster()
	if err != nil {
		return nil, err
	}
	defer c.Close()
	all := client(strings.Split(c.Addrs(), ",")...)
	var took []time.Duration
	for i := range b.runs {
		d, err := c.AddTaskTracker(fmt.Sprintf("new%d", i))
		if err != nil {
			return nil, err
		}
		began := time.Now()
		if err := d.Start(); err != nil {
			return nil, err
		}
		if err := b.await("new tracker", func() bool {
			s, err := all.Cluster(b.ctx)
			return err == nil && slices.ContainsFunc(s.Trackers, func(t web.Tracker) bool { return t.ID == d.ID && t.Connected })
		}); err != nil {
			return nil, err
		}
		took = append(took, time.Since(began))
		if err := d.Terminate(); err != nil {
			return nil, err
		}
	}
	return []string{times("a tracker given one gossip address: start to its first slot", took, "≤ 2 s")}, nil
}

// times makes a row of durations.
func times(name string, list []time.Duration, reach string) string {
	slices.Sort(list)
	ms := func(d time.Duration) string { return fmt.Sprintf("%d ms", d.Milliseconds()) }
	return row(name, ms(list[len(list)/2]), ms(list[len(list)-1]), reach)
}
