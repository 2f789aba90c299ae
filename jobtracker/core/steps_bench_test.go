package core

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quernmr/quern/jobtracker/core/facts"
	"github.com/quernmr/quern/scheduler"
	"github.com/quernmr/quern/scheduler/pool"
	"github.com/quernmr/quern/wire"
)

// largeCluster is a leader with 10,000 jobs of eight maps and a reduce, and 1,000 trackers without a
// free map slot.
type largeCluster struct {
	core     *Core
	index    uint64
	term     uint64
	now      time.Duration
	running  []Send // launched maps
	planned  []Allocate
	trackers int
	drained  int
	kills    int // attempts killed

	measuring bool
	steps     []stepCost // of the Steps while measuring
}

// stepCost is what a Step costs.
type stepCost struct {
	time    time.Duration // of the processor
	visited int           // jobs advanced, and entries of works
	bytes   int           // allocated
}

const (
	largeTrackers = 1000
	largeJobs     = 10_000
	largeMaps     = 8
)

// newLargeCluster makes the cluster. inPool jobs are in pool "p", the others in the default pool.
func newLargeCluster(trackers, jobs, inPool int, table ...pool.Pool) *largeCluster {
	c := &largeCluster{core: New(Config{ID: "jt", Lease: 24 * time.Hour, History: true, Scheduling: wire.Scheduling{Scheduler: "fair"}}), term: 1, trackers: trackers}
	c.commit(&facts.LeaderElected{Leader: "jt"}, &facts.Bootstrapped{Start: 1, Cluster: "c"})
	c.commit(&facts.PoolsChanged{N: 1, Table: pool.Table{From: "f", Pools: table}})
	for i := range trackers {
		c.commit(&facts.TrackerRegistered{Tracker: c.tracker(i, 1)})
	}
	for i := range jobs {
		settings := wire.Settings{}
		if i < inPool {
			settings.Pool = "p"
		}
		c.commit(
			&facts.Submitted{Submission: wire.Submission{Key: fmt.Sprint(i), Staging: "s", Settings: settings, Plan: wire.Plan{Jobs: []wire.JobPlan{{Name: "n", Reduces: 1}}}}},
			&facts.SplitsWritten{Job: i + 1, Maps: largeMaps},
		)
	}
	c.elect()
	return c
}

func (c *largeCluster) tracker(i int, process uint64) facts.Tracker {
	name := fmt.Sprintf("t%04d", i)
	return facts.Tracker{Name: name, Process: process, Host: name, Addr: name, MapSlots: largeMaps, ReduceSlots: 4}
}

func (c *largeCluster) commit(all ...facts.Fact) {
	for _, x := range all {
		c.step(Entry{Index: c.index + 1, Term: c.term, Data: facts.Encode(x)})
	}
}

// elect starts another term, in which all trackers reconnect.
func (c *largeCluster) elect() {
	c.term++
	c.running, c.planned = nil, nil
	c.step(Elected{Term: c.term, Wall: 1})
	for c.core.starting != nil {
		c.step(Tick{})
	}
	for i := range c.trackers {
		c.connect(i, 1)
	}
	c.settle()
}

// connect lets a tracker connect with an empty inventory.
func (c *largeCluster) connect(i int, process uint64) {
	f := c.tracker(i, process)
	c.step(FromTracker{Stream: c.stream(i, process), Message: &wire.Hello{
		Version: wire.Version, Tracker: f.Name, Process: f.Process, Host: f.Host, Addr: f.Addr, MapSlots: f.MapSlots, ReduceSlots: f.ReduceSlots,
	}})
	c.step(FromTracker{Stream: c.stream(i, process), Message: &wire.Inventory{}})
}

func (c *largeCluster) stream(i int, process uint64) Stream {
	return Stream(int(c.term)<<40 + int(process)<<20 + i + 1)
}

// settle passes Ticks until no works are left.
func (c *largeCluster) settle() {
	for c.core.leader.works.Len() > 0 {
		c.step(Tick{})
	}
}

// step feeds an event. The log commits at once, and splits are read at once. Plans have no answers.
func (c *largeCluster) step(ev Event) {
	if e, ok := ev.(Entry); ok {
		c.index = e.Index
	}
	for _, cmd := range c.measured(ev) {
		switch cmd := cmd.(type) {
		case Propose:
			c.step(Entry{Index: c.index + 1, Term: c.term, Data: cmd.Data})
		case LoadSplits:
			c.step(SplitsLoaded{Epoch: cmd.Epoch, Job: cmd.Job, Splits: make([]Split, cmd.Maps)})
		case Allocate:
			c.planned = append(c.planned, cmd)
		case Send:
			switch m := cmd.Message.(type) {
			case *wire.Launch:
				if m.Attempt.Task.Kind == wire.Map {
					c.running = append(c.running, cmd)
				}
			case *wire.Kill:
				c.kills++
			}
		case Halt:
			panic(cmd.Err)
		}
	}
}

// measured feeds an event, and adds the cost of the Step to steps while measuring.
func (c *largeCluster) measured(ev Event) []Command {
	if !c.measuring {
		return c.core.Step(c.now, ev)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	begin := cpuTime(unix.CLOCK_THREAD_CPUTIME_ID)
	commands := c.core.Step(c.now, ev)
	took := cpuTime(unix.CLOCK_THREAD_CPUTIME_ID) - begin
	runtime.ReadMemStats(&after)
	cost := stepCost{time: took, bytes: int(after.TotalAlloc - before.TotalAlloc)}
	if l := c.core.leader; l != nil {
		cost.visited = l.works.visited
	}
	c.steps = append(c.steps, cost)
	return commands
}

// largest returns the largest costs of the Steps since the last call.
func (c *largeCluster) largest() (all stepCost, steps int) {
	for _, s := range c.steps {
		all = stepCost{max(all.time, s.time), max(all.visited, s.visited), max(all.bytes, s.bytes)}
	}
	steps, c.steps = len(c.steps), c.steps[:0]
	return all, steps
}

// measure calls do, settles, and returns the largest costs of a Step, with the number of Steps.
func (c *largeCluster) measure(do func()) (stepCost, int) {
	c.measuring = true
	do()
	c.settle()
	c.measuring = false
	return c.largest()
}

// endMap ends the map that was launched last.
func (c *largeCluster) endMap() {
	last := len(c.running) - 1
	s := c.running[last]
	c.running = c.running[:last]
	c.step(FromTracker{Stream: s.Stream, Message: &wire.Report{
		Attempt: s.Message.(*wire.Launch).Attempt, State: wire.AttemptSucceeded,
		Result: &wire.Result{Took: time.Second, Output: &wire.MapOutput{Digest: 1, Bytes: 1}},
	}})
}

// answerPlans answers the requests for plans: each job gets a slot.
func (c *largeCluster) answerPlans() {
	for len(c.planned) > 0 {
		p := c.planned[0]
		c.planned = c.planned[1:]
		var plan scheduler.Plan
		for i := range p.Snapshot.Jobs {
			plan.Targets = append(plan.Targets, scheduler.Target{Job: p.Snapshot.Jobs[len(p.Snapshot.Jobs)-1-i].ID, Slots: 1})
		}
		c.step(Allocated{Epoch: p.Epoch, Seq: p.Seq, Phase: p.Phase, Plan: plan})
	}
}

// largeEvents are events that must have short Steps, each with its reversal.
var largeEvents = []struct {
	name     string
	do, undo func(c *largeCluster, i int)
}{
	{"tracker lost", func(c *largeCluster, i int) {
		t := c.core.leader.fleet.trackers[fmt.Sprintf("t%04d", i%largeTrackers)]
		c.commit(&facts.TrackerLost{Tracker: t.Name, Incarnation: t.Incarnation})
	}, func(c *largeCluster, i int) { c.connect(i%largeTrackers, uint64(2+i)) }},
	{"tracker restarted", func(c *largeCluster, i int) {
		t := c.core.leader.fleet.trackers[fmt.Sprintf("t%04d", i%largeTrackers)]
		c.step(StreamClosed{t.contact.stream})
		c.connect(i%largeTrackers, uint64(2+i))
	}, nil},
	{"tracker drained", func(c *largeCluster, i int) {
		c.commit(&facts.Drain{N: c.drains(), Tracker: fmt.Sprintf("t%04d", i%largeTrackers)})
	}, func(c *largeCluster, i int) {
		c.commit(&facts.Drain{N: c.drains(), Tracker: fmt.Sprintf("t%04d", i%largeTrackers), Undo: true})
	}},
	{"tracker excluded", func(c *largeCluster, i int) {
		t := c.core.leader.fleet.trackers[fmt.Sprintf("t%04d", i%largeTrackers)]
		c.commit(&facts.TrackerExcluded{Tracker: t.Name, Incarnation: t.Incarnation, Until: 1 << 40, Reason: "r"})
	}, func(c *largeCluster, i int) {
		t := c.core.leader.fleet.trackers[fmt.Sprintf("t%04d", i%largeTrackers)]
		c.commit(&facts.TrackerReadmitted{Tracker: t.Name, Incarnation: t.Incarnation})
	}},
	{"capacity", func(c *largeCluster, i int) {
		t := c.core.leader.fleet.byIndex[i%largeTrackers]
		c.step(FromTracker{Stream: t.contact.stream, Message: &wire.Capacity{MapSlots: largeMaps - 1 + i/largeTrackers%2, ReduceSlots: 4}})
	}, nil},
	{"plan", func(c *largeCluster, i int) {
		c.now += time.Second
		c.step(Tick{})
		c.answerPlans()
	}, nil},
	{"forecast", func(c *largeCluster, i int) {
		c.now += time.Second
		c.core.leader.recentForecast(c.now, 0)
	}, nil},
	{"census", func(c *largeCluster, i int) { c.step(TakeCensus{Token: Token(i + 1)}) }, nil},
	{"recent attempts", func(c *largeCluster, i int) { c.step(TakeRecent{Token: Token(i + 1)}) }, nil},
	{"all jobs advanced", func(c *largeCluster, i int) {
		c.core.leader.touchAll()
		c.step(Tick{})
	}, nil},
	{"map ended", func(c *largeCluster, i int) { c.endMap() }, nil},
	{"limit of a pool", func(c *largeCluster, i int) {
		n, _ := c.core.facts.Pools()
		c.commit(&facts.PoolsChanged{N: n + 1, Table: pool.Table{From: "f", Pools: []pool.Pool{largePool("p", 100+i%2)}}})
	}, nil},
	{"weight of a pool", func(c *largeCluster, i int) {
		n, table := c.core.facts.Pools()
		p := slices.Clone(table.Pools)
		for k := range p {
			p[k].Weight = float64(1 + i)
		}
		c.commit(&facts.PoolsChanged{N: n + 1, Table: pool.Table{From: "f", Pools: p}})
	}, nil},
}

// largePool is a pool with a maximum of slots of each phase.
func largePool(name string, slots int) pool.Pool {
	return pool.Pool{Name: name, Max: [2]int{slots, slots}, MaxRunning: pool.Unlimited}
}

// drains returns the number of the next drain.
func (c *largeCluster) drains() int {
	c.drained++
	return c.drained
}

// loseOutputs loses a tracker. Before, without being measured, it gets an output of each map of each job.
func loseOutputs(c *largeCluster, i int) {
	c.measuring = false
	l := c.core.leader
	t := l.fleet.trackers["t0000"]
	for _, j := range l.order {
		for m := range j.maps {
			if !j.maps[m].atHand() {
				l.chooseOutput(j, t, &wire.MapOutput{Map: m, Attempt: 1, Digest: 1, Bytes: 1})
				l.updateMap(j, m)
			}
		}
	}
	c.step(Tick{}) // jobs are touched
	c.settle()
	c.measuring = true
	c.commit(&facts.TrackerLost{Tracker: t.Name, Incarnation: t.Incarnation})
}

// BenchmarkSteps measures events that concern all jobs or a whole tracker, with 10,000 jobs and 1,000
// trackers; 5,000 jobs are in a pool at its maximum. An op is one event with the Steps that follow. It
// reports the mean over the ops of the longest Step's processor time, and of the largest counts.
func BenchmarkSteps(b *testing.B) {
	for _, ev := range largeEvents {
		b.Run(ev.name, func(b *testing.B) {
			c := newLargeCluster(largeTrackers, largeJobs, largeJobs/2, largePool("p", 100))
			benchmarkSteps(b, c, ev.do, ev.undo)
		})
	}
	b.Run("map ended, pool with a maximum of jobs", func(b *testing.B) {
		p := largePool("p", pool.Unlimited)
		p.MaxRunning = 50
		c := newLargeCluster(largeTrackers, largeJobs, largeJobs/2, p)
		benchmarkSteps(b, c, func(c *largeCluster, i int) { c.endMap() }, nil)
	})
	b.Run("tracker with many outputs lost", func(b *testing.B) {
		c := newLargeCluster(largeTrackers, largeJobs, 0)
		benchmarkSteps(b, c, loseOutputs, func(c *largeCluster, i int) { c.connect(0, uint64(2+i)) })
	})
	b.Run("new term", func(b *testing.B) {
		c := newLargeCluster(largeTrackers, largeJobs, largeJobs/2, largePool("p", 100))
		benchmarkSteps(b, c, func(c *largeCluster, i int) { c.elect() }, nil)
	})
}

func benchmarkSteps(b *testing.B, c *largeCluster, do, undo func(*largeCluster, int)) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var sum stepCost
	var times []time.Duration
	steps := 0
	for i := 0; b.Loop(); i++ {
		largest, n := c.measure(func() { do(c, i) })
		sum.visited, sum.bytes, steps = sum.visited+largest.visited, sum.bytes+largest.bytes, steps+n
		times = append(times, largest.time)
		if undo != nil {
			undo(c, i)
			c.settle()
		}
	}
	slices.Sort(times)
	n := float64(b.N)
	b.ReportMetric(times[len(times)/2].Seconds()*1000, "cpu-ms/step")
	b.ReportMetric(float64(sum.visited)/n, "visited/step")
	b.ReportMetric(float64(sum.bytes)/1024/n, "KiB/step")
	b.ReportMetric(float64(steps)/n, "steps/op")
	b.ReportMetric(0, "ns/op")
}
