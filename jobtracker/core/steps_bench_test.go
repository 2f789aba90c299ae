package core

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/quernmr/quern/jobtracker/core/facts"
	"github.com/quernmr/quern/scheduler/pool"
	"github.com/quernmr/quern/wire"
)

// largeWorld is a cluster with events that must have short Steps there.
type largeWorld struct {
	name   string
	make   func() *largeCluster
	events []largeEvent
}

// largeEvent is an event with its reversal, which may be nil. before prepares it and is not measured.
type largeEvent struct {
	name             string
	do, undo, before func(c *largeCluster, i int)
	placesAll        bool // in the lines, at once: their pool enters or leaves the table
}

// largeWorlds are the clusters with their events.
var largeWorlds = []largeWorld{
	{"a pool at its maximum", func() *largeCluster {
		return newLargeCluster(largeTrackers, largeJobs, largeJobs/2, largePool("p", 100))
	}, plainEvents},
	{"a pool with a maximum of jobs", func() *largeCluster {
		p := largePool("p", pool.Unlimited)
		p.MaxRunning = 50
		return newLargeCluster(largeTrackers, largeJobs, largeJobs/2, p)
	}, []largeEvent{mapEnded, plan}},
	{"a pool without slots", func() *largeCluster {
		return newLargeCluster(largeTrackers, largeJobs, largeJobs, largePool("p", 0))
	}, []largeEvent{
		{name: "first slots for all jobs", do: func(c *largeCluster, i int) {
			c.changePools(func(p *pool.Pool) { p.Max = [2]int{9000, 9000} })
		}},
		{name: "last limit removed", do: func(c *largeCluster, i int) {
			c.changePools(func(p *pool.Pool) { p.Max = [2]int{pool.Unlimited, pool.Unlimited} })
		}, undo: func(c *largeCluster, i int) { c.changePools(func(p *pool.Pool) { p.Max = [2]int{9000, 9000} }) }},
		{name: "first limit", before: func(c *largeCluster, i int) {
			c.changePools(func(p *pool.Pool) { p.Max = [2]int{pool.Unlimited, pool.Unlimited} })
		}, do: func(c *largeCluster, i int) { c.changePools(func(p *pool.Pool) { p.Max = [2]int{9000, 9000} }) }},
		{name: "pool leaves the table", placesAll: true, do: func(c *largeCluster, i int) {
			c.changePools(func(p *pool.Pool) { p.Name = "another" })
		}, undo: func(c *largeCluster, i int) { c.changePools(func(p *pool.Pool) { p.Name = "p" }) }},
		{name: "pool enters the table", placesAll: true, before: func(c *largeCluster, i int) {
			c.changePools(func(p *pool.Pool) { p.Name = "another" })
		}, do: func(c *largeCluster, i int) { c.changePools(func(p *pool.Pool) { p.Name = "p" }) }},
	}},
	{"limits of users and outer pools", newLimitedCluster, limitEvents},
	{"tasks measured", newMeasuredCluster, policyEvents},
	{"outputs on a tracker", func() *largeCluster { return newLargeCluster(largeTrackers, largeJobs, 0) }, outputEvents},
	{"few trackers", func() *largeCluster { return newLargeCluster(4, largeJobs, 0) }, []largeEvent{
		{name: "the only trackers return", before: func(c *largeCluster, i int) {
			for k := range c.trackers {
				c.lose(k)
			}
			c.settle()
		}, do: func(c *largeCluster, i int) {
			for k := range c.trackers {
				c.restart(k)
			}
		}},
	}},
}

var mapEnded = largeEvent{name: "map ended", do: func(c *largeCluster, i int) { c.endMap() }}

var plan = largeEvent{name: "plan", do: func(c *largeCluster, i int) {
	c.now += time.Second
	c.step(Tick{})
	c.settle()
	c.answerPlans()
}}

// plainEvents are events in a cluster with limits of pools alone.
var plainEvents = []largeEvent{
	{name: "tracker lost", do: func(c *largeCluster, i int) { c.lose(i) }, undo: func(c *largeCluster, i int) { c.restart(i) }},
	{name: "tracker restarted", do: func(c *largeCluster, i int) { c.restart(i) }},
	{name: "tracker drained", do: func(c *largeCluster, i int) { c.drain(i, false) }, undo: func(c *largeCluster, i int) { c.drain(i, true) }},
	{name: "tracker excluded", do: func(c *largeCluster, i int) {
		t := c.at(i)
		c.commit(&facts.TrackerExcluded{Tracker: t.Name, Incarnation: t.Incarnation, Until: 1 << 40, Reason: "r"})
	}, undo: func(c *largeCluster, i int) {
		t := c.at(i)
		c.commit(&facts.TrackerReadmitted{Tracker: t.Name, Incarnation: t.Incarnation})
	}},
	{name: "capacity", do: func(c *largeCluster, i int) {
		c.step(FromTracker{Stream: c.at(i).contact.stream, Message: &wire.Capacity{MapSlots: largeMaps - 1 + i/largeTrackers%2, ReduceSlots: 4}})
	}},
	plan,
	{name: "forecast", do: func(c *largeCluster, i int) {
		c.now += time.Second
		c.core.leader.recentForecast(c.now, 0)
	}},
	{name: "census", do: func(c *largeCluster, i int) { c.step(TakeCensus{Token: Token(i + 1)}) }},
	{name: "recent attempts", do: func(c *largeCluster, i int) { c.step(TakeRecent{Token: Token(i + 1)}) }},
	{name: "all jobs advanced", do: func(c *largeCluster, i int) {
		c.core.leader.touchAll()
		c.step(Tick{})
	}},
	mapEnded,
	{name: "limit of a pool", do: func(c *largeCluster, i int) {
		c.changePools(func(p *pool.Pool) { p.Max = [2]int{100 + i%2, 100 + i%2} })
	}},
	{name: "weight of a pool", do: func(c *largeCluster, i int) { c.changePools(func(p *pool.Pool) { p.Weight = float64(1 + i) }) }},
	{name: "delay rule", do: func(c *largeCluster, i int) {
		c.schedule(wire.Scheduling{Scheduler: "fair", Metric: "sum-response", Delay: []string{"dynamic", "none"}[i%2]})
	}},
	{name: "new term", do: func(c *largeCluster, i int) { c.elect() }},
	{name: "new term, an entry at its start", do: func(c *largeCluster, i int) {
		c.beginTerm()
		c.drain(i, false)
		c.continueTerm()
	}, undo: func(c *largeCluster, i int) { c.drain(i, true) }},
}

// newLimitedCluster makes a cluster in which all jobs have limits of their user and of an outer pool.
func newLimitedCluster() *largeCluster {
	table := pool.Table{From: "f", Users: []pool.UserLimit{{MaxRunning: 30}}}
	outer := largePool("a", 4000)
	outer.Inner, outer.MaxRunning = true, 2000
	table.Pools = append(table.Pools, outer)
	for i := range 20 {
		table.Pools = append(table.Pools, largePool(fmt.Sprintf("a.%02d", i), pool.Unlimited))
	}
	return newOwnedCluster(largeTrackers, largeJobs, table, func(i int) (owner, pool string) {
		return fmt.Sprint("u", i%200), fmt.Sprintf("a.%02d", i%20)
	})
}

var limitEvents = []largeEvent{
	plan, mapEnded,
	{name: "limit of an outer pool", do: func(c *largeCluster, i int) { c.changePools(func(p *pool.Pool) { p.MaxRunning = 2000 + i }) }},
	{name: "weight of a pool with limits around it", do: func(c *largeCluster, i int) { c.changePools(func(p *pool.Pool) { p.Weight = float64(1 + i) }) }},
	{name: "job submitted", do: func(c *largeCluster, i int) { c.submit(largeJobs+i, "u1", "a.00") }},
	{name: "tracker lost", do: func(c *largeCluster, i int) { c.lose(i) }, undo: func(c *largeCluster, i int) { c.restart(i) }},
}

// newMeasuredCluster makes a cluster in which each job has two map outputs, and measured maps on two trackers.
func newMeasuredCluster() *largeCluster {
	c := newLargeCluster(largeTrackers, largeJobs, largeJobs/2, largePool("p", 100))
	l := c.core.leader
	for i, j := range l.order {
		for k := range 2 {
			t := c.at(i*7 + k)
			l.chooseOutput(j, t, &wire.MapOutput{Map: largeMaps - 1 - k, Attempt: 1, Digest: 1, Bytes: 1 << 20})
			l.recordTime(j, &j.maps[largeMaps-1-k].task, t, time.Duration(1+i%5)*time.Second, wire.Reads{}, false)
			l.updateMap(j, largeMaps-1-k)
		}
	}
	c.step(Tick{})
	c.settle()
	return c
}

var policyEvents = func() (events []largeEvent) {
	for _, name := range []string{"fair", "flex", "flowflex", "hmhs", "srpt"} {
		x := plan
		x.name = "plan of " + name
		x.before = func(c *largeCluster, i int) {
			if c.core.leader.sharing.Policy != name {
				c.schedule(wire.Scheduling{Scheduler: name, Metric: "sum-response", Delay: "none"})
			}
		}
		events = append(events, x)
	}
	return append(events, largeEvent{name: "other scheduler", do: func(c *largeCluster, i int) {
		c.schedule(wire.Scheduling{Scheduler: []string{"hmhs", "srpt"}[i%2], Metric: "sum-response", Delay: "none"})
	}})
}()

var outputEvents = []largeEvent{
	{name: "tracker with many outputs lost", before: (*largeCluster).giveOutputs, do: func(c *largeCluster, i int) { c.lose(0) }, undo: func(c *largeCluster, i int) { c.restart(0) }},
	{name: "tracker with many outputs restarted", before: (*largeCluster).giveOutputs, do: func(c *largeCluster, i int) {
		c.step(StreamClosed{c.at(0).contact.stream})
		c.restarts[0]++
		c.hello(0)
		c.step(FromTracker{Stream: c.at(0).contact.stream, Message: c.outputsReport(0, largeJobs/16, true)})
		c.step(FromTracker{Stream: c.at(0).contact.stream, Message: c.outputsReport(largeJobs/16, largeJobs/8, false)})
	}},
	{name: "tracker with many outputs drained", before: (*largeCluster).giveOutputs, do: func(c *largeCluster, i int) {
		c.drain(0, false)
		c.endMapsOn(0)
		c.settle()
		c.waitFor(c.core.cfg.DrainServeTime) // its outputs are recomputed
		c.settle()
		c.drain(0, true)
		c.settle()
		c.drain(0, false)
		c.endMapsOn(0)
		c.waitFor(c.core.cfg.DrainMaxTime) // they are given up
	}, undo: func(c *largeCluster, i int) {
		c.drain(0, true)
		c.restart(0)
	}},
	{name: "tracker serves the last needed output", before: func(c *largeCluster, i int) {
		c.giveOutputs(i)
		c.gatherAll()
		c.drain(0, false)
		c.endMapsOn(0)
	}, do: func(c *largeCluster, i int) {
		c.step(Tick{})
		c.core.ClusterView(c.now)
		c.settle()
	}, undo: func(c *largeCluster, i int) { c.drain(0, true) }},
	{name: "most trackers cannot read from one with many outputs", before: (*largeCluster).giveOutputs, do: func(c *largeCluster, i int) {
		c.core.leader.dropUnread(c.at(0), "unread")
		c.step(Tick{})
	}},
}

// BenchmarkSteps measures events that concern all jobs or a whole tracker, with 10,000 jobs and 1,000
// trackers. An op is one event with the Steps that follow. It reports the median over the ops of the longest
// Step's processor time, and the mean of the largest counts.
func BenchmarkSteps(b *testing.B) {
	for _, w := range largeWorlds {
		b.Run(w.name, func(b *testing.B) {
			c := w.make()
			for _, ev := range w.events {
				b.Run(ev.name, func(b *testing.B) { benchmarkSteps(b, c, &ev) })
			}
		})
	}
}

func benchmarkSteps(b *testing.B, c *largeCluster, ev *largeEvent) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var sum stepCost
	var times []time.Duration
	steps := 0
	for b.Loop() {
		c.events++
		largest, n := c.measure(ev, c.events)
		sum.visited, sum.placed, sum.bytes, steps = sum.visited+largest.visited, sum.placed+largest.placed, sum.bytes+largest.bytes, steps+n
		times = append(times, largest.time)
	}
	slices.Sort(times)
	n := float64(b.N)
	b.ReportMetric(times[len(times)/2].Seconds()*1000, "cpu-ms/step")
	b.ReportMetric(float64(sum.visited)/n, "visited/step")
	b.ReportMetric(float64(sum.placed)/n, "placed/step")
	b.ReportMetric(float64(sum.bytes)/1024/n, "KiB/step")
	b.ReportMetric(float64(steps)/n, "steps/op")
	b.ReportMetric(0, "ns/op")
}
