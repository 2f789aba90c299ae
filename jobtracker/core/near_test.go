package core

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/quernmr/quern/jobtracker/core/facts"
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
// the lowest that may be, and no slot is free that a map could use, unless the delay
// rule holds it back, and then until a time at which the core wakes up.
func (w *world) checkNear() {
	l := w.core.live
	if l == nil {
		return
	}
	free, p := &l.free[mapPhase], &l.phases[mapPhase]
	if line := &p.line; free.Len() > 0 && line.Len() > 0 {
		w.fail("%d map slots are free, and %v is in line for one", free.Len(), line.at(0).id)
	}
	for _, j := range l.order {
		if j.in == nil {
			continue
		}
		w.checkHeld(l, j)
		for _, t := range l.byIndex {
			for _, strict := range []bool{true, false} {
				if t != nil && t.works {
					w.checkPicks(j, t, strict)
				}
			}
		}
		for i := range free.All() {
			if t := l.byIndex[i]; j.may[mapPhase] && p.standingOf(j).queued && j.pickNear(t, false) >= 0 {
				w.fail("%s has a free map slot that is near %v", t.Name, j.id)
			}
		}
	}
	w.checkIdle(l)
	w.checkSlots(l)
}

// checkSlots counts the slots of all trackers that may be given work.
func (w *world) checkSlots(l *Live) {
	slots := [2]int{}
	for _, t := range l.byIndex {
		if t != nil && !t.losing && !t.shut() {
			slots[mapPhase] += t.slots[mapPhase]
			slots[reducePhase] += t.slots[reducePhase]
		}
	}
	if l.slots != slots {
		w.fail("there are %d slots, not %d", slots, l.slots)
	}
}

// checkReduces: no reduce slot is free where a partition is ready, unless its job may
// have no more; and elsewhere only if the partition is to be looked at again, is on its
// way for the last time, or could not be gathered anew.
func checkReduces(c *Core, fail func(string, ...any)) {
	l := c.live
	if l == nil {
		return
	}
	free := &l.free[reducePhase]
	wake, wakes := c.Wake()
	for _, j := range l.order {
		for p := range j.homes {
			h := &j.homes[p]
			if h.tracker == nil || h.slot || !j.may[reducePhase] || !l.canReduce(j, p) {
				continue
			}
			if free.Has(h.tracker.index) {
				fail("%s has a free reduce slot, and partition %d of %v is ready there", h.tracker.Name, p, j.id)
			}
			if free.Len() > 0 && !j.remaking && (!wakes || wake > j.movesDue || j.movesDue == never) {
				fail("partition %d of %v waits for a slot of %s until %v, and others have some", p, j.id, h.tracker.Name, j.movesDue)
			}
		}
		for m := range j.maps {
			if t := &j.maps[m]; j.remaking && !t.output.atHand() && !t.runs() && !t.expected && !j.pending.Has(m) &&
				!j.aside.Has(m) && j.mishaps(&t.task).retryAt == 0 {
				fail("output %d of %v is to be made again, and nobody does", m, j.id)
			}
		}
		for i := range free.All() {
			if p := j.toGatherAt(l.byIndex[i]); p >= 0 && j.may[reducePhase] {
				fail("partition %d of %v waits to be gathered, and a reduce slot of %s is free", p, j.id, l.byIndex[i].Name)
			}
		}
	}
}

// checkHolds: where a task waits and a slot is free, something is said to hold it, and
// nothing is said to hold it until a time that has passed.
func checkHolds(c *Core, fail func(string, ...any)) {
	l := c.live
	if l == nil {
		return
	}
	for _, j := range l.order {
		if j.in == nil || j.stopping || !j.facts.Running() {
			continue
		}
		holds := l.holds(j)
		for i := range l.phases {
			n := j.toLaunch(i)
			if i == mapPhase {
				n += j.aside.Len()
			}
			if n > 0 && l.free[i].Len() > 0 && len(holds) == 0 {
				fail("%d %vs of %v wait while slots are free, and nothing holds them", n, l.phases[i].kind, j.id)
			}
		}
		checkAvoids(c, j, fail)
		for _, h := range holds {
			if h.Until != 0 && h.Until < l.wall() {
				fail("%v is held until %d ms ago: %s", j.id, l.wall()-h.Until, h.What)
			}
		}
	}
}

// checkAvoids: a map that has failed is launched, or waits for its time, or for a tracker
// other than those that have free slots; and the core wakes up when its wait ends.
func checkAvoids(c *Core, j *job, fail func(string, ...any)) {
	l := c.live
	wake, wakes := c.Wake()
	for tk, bad := range j.bad {
		m := int(tk.n)
		if tk.kind != wire.Map || tk != &j.maps[m].task {
			continue
		}
		wanted := !tk.runs() && !j.maps[m].expected && (!j.maps[m].output.atHand() || j.maps[m].leaving) && j.awaits(&j.maps[m])
		if _, grant := j.facts.Grant(m); j.facts.Reduces() == 0 {
			wanted = !tk.runs() && !grant && !j.facts.Committed(m)
		}
		if j.maps[m].expected && j.pending.Has(m) {
			continue // its tracker drained before its restart
		}
		waits := bad.retryAt > 0 || j.aside.Has(m)
		if wanted && !waits && !j.pending.Has(m) || j.pending.Has(m) && (waits || !wanted) || j.aside.Has(m) && !wanted {
			fail("%v has failed and is wanted %v: pending %v, set aside %v, to wait until %v", j.idOf(tk), wanted, j.pending.Has(m), j.aside.Has(m), bad.retryAt)
		}
		for _, until := range []time.Duration{bad.retryAt, bad.elsewhere} {
			if waits && j.runnable() && until > 0 && (!wakes || wake > until) {
				fail("%v waits until %v, and the core wakes up at %v", j.idOf(tk), until, wake)
			}
		}
		for i := range l.free[mapPhase].All() {
			if t := l.byIndex[i]; j.aside.Has(m) && j.may[mapPhase] && !j.waitsFor(tk, t) {
				fail("%v waits for a tracker other than %s, which has a free slot", j.idOf(tk), t.Name)
			}
		}
	}
}

// checkIdle: a free map slot is known to be near nothing that is to launch, or not.
func (w *world) checkIdle(l *Live) {
	for _, t := range l.byIndex {
		if t == nil {
			continue
		}
		wanted := false
		for _, j := range l.order {
			for m := range j.pending.All() {
				wanted = wanted || j.in != nil && slices.Contains(w.splitsOf(j)[m].Hosts, t.host)
			}
		}
		if idle := l.free[mapPhase].Has(t.index) && !wanted; l.idle.Has(t.index) != idle {
			w.fail("%s is idle: %v", t.Name, idle)
		}
	}
}

// checkMatched: of the maps of a job that one Step launches away from their input,
// none could have had the slot of another such one on a node with its input.
func (w *world) checkMatched(commands []Command) {
	l := w.core.live
	if l == nil || l.phases[mapPhase].queued { // then the policy says what runs where
		return
	}
	var far []*attempt
	for _, c := range commands {
		send, _ := c.(Send)
		launch, ok := send.Message.(*wire.Launch)
		if !ok || launch.Attempt.Task.Kind != wire.Map {
			continue
		}
		if j := l.job(launch.Attempt.Task.Job); j != nil && j.attempt(launch.Attempt) != nil && j.attempt(launch.Attempt).level > wire.NodeLocal {
			far = append(far, j.attempt(launch.Attempt))
		}
	}
	for _, a := range far {
		for _, b := range far {
			if a.job == b.job && len(a.job.mishaps(a.task).avoid) == 0 && slices.Contains(w.splitsOf(a.job)[a.id.Task.N].Hosts, b.tracker.host) {
				w.fail("%v runs on %s, away from its input, and %v, away from its own, on %s where that is", a.id, a.tracker.Name, b.id, b.tracker.Name)
			}
		}
	}
}

// splitsOf is a job's splits as they were loaded.
func (w *world) splitsOf(j *job) []Split {
	if w.splits[j.id] == nil {
		w.splits[j.id] = w.simSplits(LoadSplits{Job: j.id, Maps: len(j.maps)})
	}
	return w.splits[j.id]
}

// checkPicks compares what the indexes find with what a look at every map does.
func (w *world) checkPicks(j *job, t *tracker, strict bool) {
	splits := w.splitsOf(j)
	lowest := func(may func(m int) bool) int {
		for m := range j.maps {
			bad := j.mishaps(&j.maps[m].task)
			if j.pending.Has(m) && (!strict && bad.elsewhere == 0 || !slices.Contains(bad.avoid, t.Name)) && may(m) {
				return m
			}
		}
		return -1
	}
	host, rack := locality.HostKey(t.Host), t.rack
	near := lowest(func(m int) bool { return slices.Contains(splits[m].Hosts, host) })
	inRack := lowest(func(m int) bool { return slices.Contains(splits[m].Racks, rack) })
	loose := lowest(func(m int) bool { return j.loose.Has(m) && slices.Contains(splits[m].Racks, rack) })
	a, b, c := j.pickNear(t, strict), j.pickInRack(amongPending, t, strict), j.pickInRack(amongLoose, t, strict)
	if a != near || b != inRack || c != loose {
		w.fail("%v on %s: maps %d, %d, %d are picked, not %d, %d, %d", j.id, t.Name, a, b, c, near, inRack, loose)
	}
	for m := range splits {
		if level := locality.Level(splits[m].Hosts, splits[m].Racks, host, rack); !j.in.closed && j.levelOf(m, t) != level {
			w.fail("map %d of %v is at level %v on %s, not %v", m, j.id, j.levelOf(m, t), t.Name, level)
		}
	}
}

// checkHeld: who refuses slots has maps to launch, all of which have to wait, and is
// asked again when that ends.
func (w *world) checkHeld(l *Live, j *job) {
	for m := range j.maps {
		if j.pending.Has(m) && !j.loose.Has(m) && j.in.live[m] == 0 || j.loose.Has(m) && !j.pending.Has(m) {
			w.fail("%v map %d: to be launched %v, loose %v", j.id, m, j.pending.Has(m), j.loose.Has(m))
		}
		if at := j.refusedAt[int32(m)]; at > j.wait.Total(l.now) {
			w.fail("%v map %d was first refused after %v of %v", j.id, m, at, j.wait.Total(l.now))
		}
	}
	if !j.refuses {
		return
	}
	wake, _ := w.core.Wake()
	if j.loose.Len() > 0 || j.pending.Len() == 0 || j.refusesUntil < w.now || wake > j.refusesUntil || j.refusesUntil > l.now+locality.Start+worldDelay {
		w.fail("%v refuses slots until %v, has %d maps to launch, %d of them loose; it is %v", j.id, j.refusesUntil, j.pending.Len(), j.loose.Len(), w.now)
	}
}

// worldDelay is how long maps of some of the random worlds wait for near slots.
const worldDelay = 700 * time.Millisecond

// BenchmarkNear gives 4,000 maps, each on three of a thousand nodes, away, and takes
// each back: what it costs does not grow with the maps that wait.
func BenchmarkNear(b *testing.B) {
	const nodes, maps = 1000, 4000
	c := New(Config{Scheduling: wire.Scheduling{Delay: "fixed=3s"}})
	l := newLive(c)
	for i := range nodes {
		t := l.addTracker(facts.Tracker{Name: fmt.Sprintf("t%d", i), Host: fmt.Sprintf("t%d", i), MapSlots: 1})
		t.inventoried = true
		l.refresh(t)
		l.fresh.Add(t.index)
	}
	j, splits := &job{facts: new(facts.Job), maps: make([]mapTask, maps)}, make([]Split, maps)
	for m := range splits {
		for k := range 3 {
			splits[m].Hosts = append(splits[m].Hosts, fmt.Sprintf("t%d", (m*7+k*331)%nodes))
		}
		j.pending.Add(m)
	}
	l.indexSplits(j, splits)
	given := 0
	for b.Loop() {
		l.pass++
		t, m := l.find(&l.fresh, func(t *tracker) int { return j.pickNear(t, true) })
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
