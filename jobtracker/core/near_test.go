package core

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/quernmr/quern/locality"
	"github.com/quernmr/quern/wire"
)

// simSplits places a job's splits, some nowhere. Node t9 is never there.
func (w *world) simSplits(c LoadSplits) []Split {
	splits := make([]Split, c.Maps)
	if c.Job.N%3 == 0 {
		return splits
	}
	racks := map[string]string{"t1": "/r1", "t2": "/r1", "t3": "/r2", "t4": "/r2", "t9": "/r2"}
	names := []string{"t1", "t2", "t3", "t4", "t9"}
	for m := range splits {
		for k := range (m + c.Job.N) % 3 {
			host := names[(m*3+k*2+c.Job.N)%len(names)]
			splits[m].Hosts = append(splits[m].Hosts, host)
			splits[m].Racks = append(splits[m].Racks, racks[host])
		}
	}
	return splits
}

// checkNear looks at every map and every slot, without an index: what is picked is
// the lowest that may be, and no slot is free that a map could use.
func (w *world) checkNear() {
	l := w.core.live
	if l == nil {
		return
	}
	for _, j := range l.order {
		if j.splits == nil {
			continue
		}
		w.checkWaits(l, j)
		for i := range l.free[mapPhase].All() {
			t := l.byIndex[i]
			for _, strict := range []bool{true, false} {
				w.checkPicks(j, t, strict)
			}
			if j.runnable() && j.standings[mapPhase].queued && (j.pickNear(t, false) >= 0 || j.pickRack(t, false) >= 0 || j.pickAny(t, false) >= 0) {
				w.fail("%s has a free map slot that %v could use", t.Name, j.id)
			}
		}
		refusable := j.standings[mapPhase].queued && l.free[mapPhase].Len() > 0
		if j.refuses != refusable {
			w.fail("%v refuses a slot: %v, and has one to refuse: %v", j.id, j.refuses, refusable)
		}
	}
}

// checkMatched: of the maps of a job that one Step launches away from their input,
// none could have had the slot of another such one on a node with its input.
func (w *world) checkMatched(commands []Command) {
	l := w.core.live
	if l == nil {
		return
	}
	var far []*attempt
	for _, c := range commands {
		send, _ := c.(Send)
		launch, ok := send.Message.(*wire.Launch)
		if !ok || launch.Attempt.Task.Kind != wire.Map {
			continue
		}
		if j := l.job(launch.Attempt.Task.Job); j != nil && j.attempts[launch.Attempt] != nil && j.attempts[launch.Attempt].level > wire.NodeLocal {
			far = append(far, j.attempts[launch.Attempt])
		}
	}
	for _, a := range far {
		for _, b := range far {
			if a.job == b.job && len(a.task.avoid) == 0 && slices.Contains(a.job.splits[a.id.Task.N].Hosts, b.tracker.host) {
				w.fail("%v runs on %s, away from its input, and %v, away from its own, on %s where that is", a.id, a.tracker.Name, b.id, b.tracker.Name)
			}
		}
	}
}

// checkPicks compares what the indexes find with what a look at every map does.
func (w *world) checkPicks(j *job, t *tracker, strict bool) {
	lowest := func(may func(m int) bool) int {
		for m := range j.maps {
			if j.pending.Has(m) && (!strict || !slices.Contains(j.maps[m].avoid, t.Name)) && may(m) {
				return m
			}
		}
		return -1
	}
	host, rack := locality.HostKey(t.Host), t.rack
	near := lowest(func(m int) bool { return slices.Contains(j.splits[m].Hosts, host) })
	inRack := lowest(func(m int) bool { return j.ripe[rackRipe].Has(m) && slices.Contains(j.splits[m].Racks, rack) })
	anywhere := lowest(func(m int) bool { return j.ripe[anyRipe].Has(m) })
	if a, b, c := j.pickNear(t, strict), j.pickRack(t, strict), j.pickAny(t, strict); a != near || b != inRack || c != anywhere {
		w.fail("%v on %s: maps %d, %d, %d are picked, not %d, %d, %d", j.id, t.Name, a, b, c, near, inRack, anywhere)
	}
}

// checkWaits: a map is ripe, or waits, and has not waited for too long.
func (w *world) checkWaits(l *Live, j *job) {
	for m := range j.maps {
		pending := j.pending.Has(m)
		for level := range j.ripe {
			ripe := j.ripe[level].Has(m)
			waits := slices.ContainsFunc(j.delays[level], func(d delayed) bool { return d.m == m && j.isWaiting(level, d) })
			if ripe && !pending || pending && ripe == waits {
				w.fail("%v map %d: to be launched %v, ripe %v, waits %v", j.id, m, pending, ripe, waits)
			}
		}
		if t := &j.maps[m]; pending && j.waitClock(l.now)-t.since > worldDelay || t.waited > worldDelay+stormy {
			w.fail("%v map %d has waited for %v", j.id, m, j.waitClock(l.now)-t.since)
		}
	}
}

// worldDelay is how long maps of the random worlds wait for near slots.
const worldDelay = 700 * time.Millisecond

// TestWaitIsBounded: while a slot is refused the whole time, a map waits for as
// long as the rule says, over all its attempts, and no longer.
func TestWaitIsBounded(t *testing.T) {
	c := New(Config{Scheduling: wire.Scheduling{Delay: "fixed=1s"}})
	l := newLive(c)
	j := &job{splits: []Split{{Hosts: []string{"a"}}}, maps: make([]mapTask, 1), near: true}
	l.indexSplits(j)
	j.near, j.nearAsOf = true, l.workers
	for _, at := range []time.Duration{0, 400 * time.Millisecond} {
		l.now = at
		j.pending.Add(0)
		l.enter(j, 0)
		j.refuses, j.refused, j.refusesSince = true, j.waitClock(l.now), l.now
		l.now += 400 * time.Millisecond
		if l.ripen(j); j.ripe[anyRipe].Has(0) {
			t.Fatalf("at %v its wait is over", l.now)
		}
		j.pending.Remove(0)
		l.leave(j, 0)
	}
	j.pending.Add(0)
	l.enter(j, 0)
	if d, ok := j.longest(anyRipe); !ok || j.waitClock(l.now)-d.since != 800*time.Millisecond {
		t.Errorf("after two attempts it has waited for %v", j.waitClock(l.now)-d.since)
	}
	l.now += 200 * time.Millisecond
	if l.ripen(j); !j.ripe[anyRipe].Has(0) || !j.ripe[rackRipe].Has(0) {
		t.Error("it waits on")
	}
	if got := levelOfRipe(anyRipe); got != wire.Remote {
		t.Errorf("any is %v", got)
	}
}

// BenchmarkNear gives 4,000 maps, each on three of a thousand nodes, away, and takes
// each back: what it costs does not grow with the maps that wait.
func BenchmarkNear(b *testing.B) {
	const nodes, maps = 1000, 4000
	c := New(Config{Scheduling: wire.Scheduling{Delay: "fixed=3s"}})
	l := newLive(c)
	for i := range nodes {
		t := l.addTracker(&trackerFacts{Name: fmt.Sprintf("t%d", i), Host: fmt.Sprintf("t%d", i), MapSlots: 1})
		t.inventoried = true
		l.refresh(t)
	}
	j := &job{splits: make([]Split, maps), maps: make([]mapTask, maps)}
	for m := range j.splits {
		for k := range 3 {
			j.splits[m].Hosts = append(j.splits[m].Hosts, fmt.Sprintf("t%d", (m*7+k*331)%nodes))
		}
		j.pending.Add(m)
	}
	l.indexSplits(j)
	given := 0
	for b.Loop() {
		l.pass++
		t, m := l.find(func(t *tracker) int { return j.pickNear(t, true) })
		if t == nil {
			b.Fatal("no map is near any node")
		}
		l.cursor = t.index + 1
		j.pending.Remove(m)
		l.leave(j, m)
		if given++; given == maps-nodes {
			given = 0
			for m := range j.maps {
				if j.pending.Add(m) {
					l.enter(j, m)
				}
			}
		}
	}
}
