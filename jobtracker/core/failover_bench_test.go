package core

import (
	"fmt"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/quernmr/quern/jobtracker/core/facts"
	"github.com/quernmr/quern/wire"
)

// bigCluster is a job tracker with many jobs and trackers in its log.
type bigCluster struct {
	core   *Core
	index  uint64
	term   uint64
	setups []Send // launches of setups

	longest time.Duration // the longest Step
}

func newBigCluster(trackers, jobs int) *bigCluster {
	c := &bigCluster{core: New(Config{ID: "jt", Lease: 24 * time.Hour}), term: 1}
	c.commit(&facts.LeaderElected{Leader: "jt"}, &facts.Bootstrapped{Start: 1, Cluster: "c"})
	for i := range trackers {
		name := fmt.Sprintf("t%d", i)
		c.commit(&facts.TrackerRegistered{Tracker: facts.Tracker{Name: name, Process: 1, Host: name, Addr: name, MapSlots: 8, ReduceSlots: 4}})
	}
	for i := range jobs {
		c.commit(
			&facts.Submitted{Submission: wire.Submission{Key: fmt.Sprint(i), Staging: "s", Plan: wire.Plan{Jobs: []wire.JobPlan{{Name: "n", Reduces: 1}}}}},
			&facts.SplitsWritten{Job: i + 1, Maps: 8},
		)
	}
	return c
}

func (c *bigCluster) commit(all ...facts.Fact) {
	for _, x := range all {
		c.step(Entry{Index: c.index + 1, Term: c.term, Data: facts.Encode(x)})
	}
}

// step feeds an event. The log commits at once; effects get no answers.
func (c *bigCluster) step(ev Event) {
	if e, ok := ev.(Entry); ok {
		c.index = e.Index
	}
	begin := time.Now()
	commands := c.core.Step(0, ev)
	c.longest = max(c.longest, time.Since(begin))
	for _, cmd := range commands {
		switch cmd := cmd.(type) {
		case Propose:
			c.step(Entry{Index: c.index + 1, Term: c.term, Data: cmd.Data})
		case Send:
			if m, ok := cmd.Message.(*wire.Launch); ok && m.Attempt.Task.Kind == wire.Setup {
				c.setups = append(c.setups, cmd)
			}
		}
	}
}

// elect starts another term, in which all trackers reconnect.
func (c *bigCluster) elect() {
	c.term++
	c.step(Elected{Term: c.term, Wall: 1})
	for c.core.starting != nil {
		c.step(Tick{})
	}
	for i, t := range c.core.leader.fleet.byIndex {
		c.step(FromTracker{Stream: c.stream(i), Message: &wire.Hello{
			Version: wire.Version, Tracker: t.Name, Process: 1, Host: t.Host, Addr: t.Addr, MapSlots: 8, ReduceSlots: 4,
		}})
	}
}

// settle passes Ticks until no works are left.
func (c *bigCluster) settle() {
	for c.core.leader.hasWork() {
		c.step(Tick{})
	}
}

func (c *bigCluster) stream(i int) Stream { return Stream(int(c.term)<<20 + i) }

// BenchmarkInventories measures how a new leader with 10,000 running jobs handles inventories of
// 1,500 trackers. An op is one inventory, which is empty or lists eight running maps.
func BenchmarkInventories(b *testing.B) {
	const trackers, jobs = 1500, 10_000
	for _, running := range []int{0, 8} {
		b.Run(fmt.Sprintf("running=%d", running), func(b *testing.B) {
			c := newBigCluster(trackers, jobs)
			for i := trackers; b.Loop(); i++ {
				if i >= trackers-1 { // leave out the last inventory, which lets all jobs go on
					b.StopTimer()
					c.elect()
					i = 0
					b.StartTimer()
				}
				page := &wire.Inventory{}
				for m := range running {
					id := wire.TaskID{Job: wire.JobID{Start: 1, N: i + 1}, Kind: wire.Map, N: m}
					page.Attempts = append(page.Attempts, wire.Report{Attempt: wire.AttemptID{Task: id, N: wire.EpochAttempts}, State: wire.AttemptRunning})
				}
				c.step(FromTracker{Stream: c.stream(i), Message: page})
			}
		})
	}
}

// BenchmarkFailover measures the processor time of a new leader with 10,000 running jobs, until 5,000
// task trackers take part again: their hellos, their inventories, and the release of the jobs by the
// last one. A tracker lists eight running maps, eight outputs and two homes. An op is all of this.
func BenchmarkFailover(b *testing.B) {
	const trackers, jobs = 5000, 10_000
	c := newBigCluster(trackers, jobs)
	for b.Loop() {
		b.StopTimer()
		runtime.GC()
		b.StartTimer()
		c.longest = 0
		used := processorTime()
		c.elect()
		b.ReportMetric(float64(c.longest.Microseconds())/1000, "ms/hello-max")
		c.longest = 0
		for i := range trackers {
			c.step(FromTracker{Stream: c.stream(i), Message: fullInventory(i, jobs)})
			if i == trackers-2 {
				b.ReportMetric(float64(c.longest.Microseconds())/1000, "ms/inventory-max")
				c.longest = 0
			}
		}
		b.ReportMetric(float64(c.longest.Microseconds())/1000, "ms/release")
		b.ReportMetric((processorTime() - used).Seconds(), "processor-s/op")
		if n := c.core.leader.usableTrackers(); n != trackers {
			b.Fatalf("%d trackers take part", n)
		}
	}
}

// processorTime is the processor time of this process, with that of the garbage collector.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// fullInventory is the inventory of the i-th tracker, with maps and homes of two jobs.
func fullInventory(i, jobs int) *wire.Inventory {
	page := &wire.Inventory{}
	for k := range 2 {
		id := wire.JobID{Start: 1, N: 1 + (2*i+k)%jobs}
		page.Jobs = append(page.Jobs, id)
		page.Homes = append(page.Homes, wire.HomeReport{Job: id, Generation: wire.Generation{Epoch: 1, N: 1}, Maps: 4})
		for m := range 8 {
			r := wire.Report{Attempt: wire.AttemptID{Task: wire.TaskID{Job: id, Kind: wire.Map, N: m}, N: wire.EpochAttempts}, State: wire.AttemptRunning}
			if m < 4 {
				r.State = wire.AttemptSucceeded
				r.Result = &wire.Result{Output: &wire.MapOutput{Map: m, Bytes: 1 << 20, Digest: 7}}
			}
			page.Attempts = append(page.Attempts, r)
		}
	}
	return page
}

// BenchmarkSubmissions measures 10,000 jobs that are submitted at once to a cluster of 100
// trackers. Their setups end one by one. An op is all of this.
func BenchmarkSubmissions(b *testing.B) {
	const trackers, jobs = 100, 10_000
	for b.Loop() {
		c := newBigCluster(trackers, 0)
		c.elect()
		for i := range trackers {
			c.step(FromTracker{Stream: c.stream(i), Message: &wire.Inventory{}})
		}
		begin := time.Now()
		for i := range jobs {
			c.step(Submit{Submission: &wire.Submission{Key: fmt.Sprint(i), Staging: "s", Plan: wire.Plan{Jobs: []wire.JobPlan{{Name: "n"}}}}})
		}
		b.ReportMetric(float64(time.Since(begin).Microseconds())/jobs, "µs/submission")
		mostRunning, ended := 0, 0
		begin = time.Now()
		for ; len(c.setups) > 0; ended++ {
			mostRunning = max(mostRunning, len(c.setups))
			s := c.setups[0]
			c.setups = slices.Delete(c.setups, 0, 1)
			c.step(FromTracker{Stream: s.Stream, Message: &wire.Report{
				Attempt: s.Message.(*wire.Launch).Attempt, State: wire.AttemptSucceeded, Result: &wire.Result{Splits: &wire.SplitsDone{}},
			}})
		}
		b.ReportMetric(float64(time.Since(begin).Microseconds())/jobs, "µs/setup")
		b.ReportMetric(float64(mostRunning), "setups-at-once")
		if ended != jobs {
			b.Fatalf("%d setups have ended, want one per job", ended)
		}
	}
}
