package core

import (
	"fmt"
	"runtime"
	"slices"
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
	restarts map[int]int // by tracker
	drained  int
	kills    int // attempts killed
	events   int // that were measured in benchmarks

	measuring bool
	steps     []stepCost // of the Steps while measuring
}

// stepCost is what a Step costs.
type stepCost struct {
	time    time.Duration // of the processor
	visited int           // entries of works and of all other loops, see charge
	placed  int           // jobs placed in lines
	bytes   int           // allocated
}

const (
	largeTrackers = 1000
	largeJobs     = 10_000
	largeMaps     = 8
)

// newLargeCluster makes the cluster. inPool jobs are in pool "p", the others in the default pool.
func newLargeCluster(trackers, jobs, inPool int, table ...pool.Pool) *largeCluster {
	return newOwnedCluster(trackers, jobs, pool.Table{From: "f", Pools: table}, func(i int) (owner, pool string) {
		if i < inPool {
			return "", "p"
		}
		return "", ""
	})
}

// newOwnedCluster makes the cluster with any owners and pools of its jobs.
func newOwnedCluster(trackers, jobs int, table pool.Table, of func(i int) (owner, pool string)) *largeCluster {
	c := &largeCluster{core: New(Config{ID: "jt", Lease: 24 * time.Hour, History: true, Scheduling: wire.Scheduling{Scheduler: "fair"}}), term: 1, trackers: trackers, restarts: make(map[int]int)}
	c.commit(&facts.LeaderElected{Leader: "jt"}, &facts.Bootstrapped{Start: 1, Cluster: "c"})
	c.commit(&facts.PoolsChanged{N: 1, Table: table})
	for i := range trackers {
		c.commit(&facts.TrackerRegistered{Tracker: c.tracker(i)})
	}
	for i := range jobs {
		owner, pool := of(i)
		c.submit(i, owner, pool)
	}
	c.elect()
	return c
}

// submit submits job i, and writes its splits.
func (c *largeCluster) submit(i int, owner, pool string) {
	c.commit(
		&facts.Submitted{Submission: wire.Submission{
			Key: fmt.Sprint(i), Staging: "s", Owner: owner, Settings: wire.Settings{Pool: pool}, Plan: wire.Plan{Jobs: []wire.JobPlan{{Name: "n", Reduces: 1}}},
		}},
		&facts.SplitsWritten{Job: i + 1, Maps: largeMaps},
	)
}

// process is the number of a tracker's process.
func (c *largeCluster) process(i int) uint64 { return uint64(1 + c.restarts[i%c.trackers]) }

// tracker describes tracker i; i may be more than their number.
func (c *largeCluster) tracker(i int) facts.Tracker {
	name := fmt.Sprintf("t%04d", i%c.trackers)
	return facts.Tracker{Name: name, Process: c.process(i), Host: name, Addr: name, MapSlots: largeMaps, ReduceSlots: 4}
}

func (c *largeCluster) commit(all ...facts.Fact) {
	for _, x := range all {
		c.step(Entry{Index: c.index + 1, Term: c.term, Data: facts.Encode(x)})
	}
}

// elect starts another term, in which all trackers reconnect.
func (c *largeCluster) elect() {
	c.beginTerm()
	c.continueTerm()
}

func (c *largeCluster) beginTerm() {
	c.term++
	c.running, c.planned = nil, nil
	c.step(Elected{Term: c.term, Wall: 1})
}

func (c *largeCluster) continueTerm() {
	for c.core.starting != nil {
		c.step(Tick{})
	}
	for i := range c.trackers {
		c.connect(i)
	}
	c.settle()
}

// connect lets a tracker connect with an empty inventory.
func (c *largeCluster) connect(i int) {
	c.hello(i)
	c.step(FromTracker{Stream: c.stream(i), Message: &wire.Inventory{}})
}

func (c *largeCluster) hello(i int) {
	f := c.tracker(i)
	c.step(FromTracker{Stream: c.stream(i), Message: &wire.Hello{
		Version: wire.Version, Tracker: f.Name, Process: f.Process, Host: f.Host, Addr: f.Addr, MapSlots: f.MapSlots, ReduceSlots: f.ReduceSlots,
	}})
}

func (c *largeCluster) stream(i int) Stream {
	return Stream(int(c.term)<<40 + int(c.process(i))<<20 + i + 1)
}

// at returns the leader's state of tracker i, without those of an earlier process.
func (c *largeCluster) at(i int) *tracker {
	return c.core.leader.fleet.trackers[c.tracker(i).Name]
}

// lose loses a tracker.
func (c *largeCluster) lose(i int) {
	t := c.at(i)
	c.commit(&facts.TrackerLost{Tracker: t.Name, Incarnation: t.Incarnation})
}

// restart connects the next process of a tracker.
func (c *largeCluster) restart(i int) {
	if t := c.at(i); t != nil {
		c.step(StreamClosed{t.contact.stream})
	}
	c.restarts[i%c.trackers]++
	c.connect(i % c.trackers)
}

// settle passes Ticks until no works are left.
func (c *largeCluster) settle() {
	for c.core.leader.hasWork() {
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
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	placed := c.placed()
	begin := cpuTime(unix.CLOCK_THREAD_CPUTIME_ID)
	commands := c.core.Step(c.now, ev)
	took := cpuTime(unix.CLOCK_THREAD_CPUTIME_ID) - begin
	runtime.ReadMemStats(&after)
	cost := stepCost{time: took, placed: c.placed() - placed, bytes: int(after.TotalAlloc - before.TotalAlloc)}
	if l := c.core.leader; l != nil {
		cost.visited = l.works.visited
	}
	c.steps = append(c.steps, cost)
	return commands
}

// placed counts how often jobs were placed in lines so far.
func (c *largeCluster) placed() int {
	switch {
	case c.core.leader != nil:
		return c.core.leader.assign.Placed()
	case c.core.starting != nil:
		return c.core.starting.l.assign.Placed()
	}
	return 0
}

// largest returns the largest costs of the Steps since the last call.
func (c *largeCluster) largest() (all stepCost, steps int) {
	for _, s := range c.steps {
		all = stepCost{max(all.time, s.time), max(all.visited, s.visited), max(all.placed, s.placed), max(all.bytes, s.bytes)}
	}
	steps, c.steps = len(c.steps), c.steps[:0]
	return all, steps
}

// measure measures the Steps of an event, until no works are left. It returns the largest costs of a Step, and the
// number of Steps.
func (c *largeCluster) measure(ev *largeEvent, i int) (stepCost, int) {
	if ev.before != nil {
		ev.before(c, i)
		c.settle()
	}
	c.measuring = true
	ev.do(c, i)
	c.settle()
	c.measuring = false
	if ev.undo != nil {
		ev.undo(c, i)
		c.settle()
	}
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

// largePool is a pool with a maximum of slots of each phase.
func largePool(name string, slots int) pool.Pool {
	return pool.Pool{Name: name, Max: [2]int{slots, slots}, MaxRunning: pool.Unlimited}
}

// changePools changes the first pool of the table.
func (c *largeCluster) changePools(change func(*pool.Pool)) {
	n, inForce := c.core.facts.Pools()
	table := *inForce
	table.Pools = slices.Clone(table.Pools)
	change(&table.Pools[0])
	c.commit(&facts.PoolsChanged{N: n + 1, Table: table})
}

// suspend suspends or resumes job i.
func (c *largeCluster) suspend(i int, suspended bool) {
	n := c.core.facts.Submission(fmt.Sprint(i)).Changes() + 1
	c.commit(&facts.SettingsChanged{Key: fmt.Sprint(i), N: n, Suspended: suspended})
}

// schedule changes the scheduling.
func (c *largeCluster) schedule(s wire.Scheduling) {
	c.commit(&facts.SchedulingChanged{N: c.core.facts.Scheduled().N + 1, Scheduling: s})
}

// drains returns the number of the next drain.
func (c *largeCluster) drains() int {
	c.drained++
	return c.drained
}

func (c *largeCluster) drain(i int, undo bool) {
	c.commit(&facts.Drain{N: c.drains(), Tracker: c.tracker(i).Name, Undo: undo})
}

// waitFor passes the Ticks of a time.
func (c *largeCluster) waitFor(d time.Duration) {
	for end := c.now + d; c.now < end; c.step(Tick{}) {
		at, ok := c.core.Wake()
		if c.now = max(c.now, min(at, end)); !ok {
			c.now = end
		}
	}
}

// giveOutputs gives the first tracker an output of each map without one.
func (c *largeCluster) giveOutputs(int) {
	l := c.core.leader
	for _, j := range l.order {
		for m := range j.maps {
			if !j.maps[m].atHand() {
				l.chooseOutput(j, c.at(0), &wire.MapOutput{Map: m, Attempt: 1, Digest: 1, Bytes: 1})
				l.updateMap(j, m)
			}
		}
	}
	c.step(Tick{}) // jobs are touched
}

// outputsReport is a page of an inventory with outputs of some jobs, by index.
func (c *largeCluster) outputsReport(from, to int, more bool) *wire.Inventory {
	page := &wire.Inventory{More: more}
	for _, j := range c.core.leader.order[from:to] {
		for m := range j.maps {
			page.Attempts = append(page.Attempts, wire.Report{
				Attempt: wire.AttemptID{Task: j.idOf(&j.maps[m].task), N: 1}, State: wire.AttemptSucceeded,
				Result: &wire.Result{Took: time.Second, Output: &wire.MapOutput{Digest: 1, Bytes: 1}},
			})
		}
	}
	return page
}

// gatherAll lets the homes of all jobs but the last one report that they have gathered all outputs.
func (c *largeCluster) gatherAll() {
	l := c.core.leader
	for _, j := range l.order[:len(l.order)-1] {
		if h := &j.partitions.homes[0]; h.tracker != nil && !h.complete {
			c.step(FromTracker{Stream: h.tracker.contact.stream, Message: &wire.HomeReport{
				Job: j.id, Partition: 0, Generation: h.generation, Maps: len(j.maps), Complete: true, Digest: j.outputs.digestSum,
			}})
		}
	}
}

// endMapsOn ends the maps of a tracker, as killed ones.
func (c *largeCluster) endMapsOn(i int) {
	t := c.at(i)
	for _, a := range slices.Clone(t.attempts) {
		c.step(FromTracker{Stream: t.contact.stream, Message: &wire.Report{Attempt: a.id, State: wire.AttemptKilled, Result: &wire.Result{}}})
	}
}
