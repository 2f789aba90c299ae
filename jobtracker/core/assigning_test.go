package core

import (
	"slices"
	"time"

	"github.com/quernmr/quern/locality"
	"github.com/quernmr/quern/wire"
)

// simSplits returns a job's splits. Some have no location, others are on t9, which never exists.
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

// checkFreeSlots checks that no map slot is free while a job is in line for one, unless the Step has launched as many
// tasks as it may.
func (w *world) checkFreeSlots() {
	l := w.core.leader
	if l == nil {
		return
	}
	for _, j := range l.assign.InLine(mapPhase) {
		if j.FreeFor(mapPhase).Len() > 0 && !l.assign.Exhausted() {
			w.fail("map slots are free, and %v is in line for one", jobOf(j).id)
		}
	}
	if at, ok := w.core.Wake(); l.assign.Exhausted() && (!ok || at > w.now) {
		w.fail("the Step has launched as many tasks as it may, and the core wakes up at %v, not at once", at)
	}
	for _, j := range l.order {
		w.checkDeferred(j)
		w.checkLevels(j)
	}
	w.checkSlots(l)
}

// checkSlots compares the leader's sum of slots with the slots of all trackers that take work.
func (w *world) checkSlots(l *leader) {
	slots := [2]int{}
	for _, t := range l.fleet.byIndex {
		if t != nil && !t.contact.lossProposed && !t.outOfService() {
			slots[mapPhase] += t.slots[mapPhase]
			slots[reducePhase] += t.slots[reducePhase]
		}
	}
	if l.fleet.slots != slots {
		w.fail("the leader counts %d slots, want %d", l.fleet.slots, slots)
	}
}

// checkReduces checks that no reduce slot is free at the home of a ready partition if its job
// may have more slots. A slot on another tracker may be free if the partition will be checked
// again, has moved for the last time, or cannot be gathered again.
func checkReduces(c *Core, fail func(string, ...any)) {
	l := c.leader
	if l == nil || l.assign.Exhausted() {
		return
	}
	wake, wakes := c.Wake()
	for _, j := range l.order {
		free := j.assign.FreeFor(reducePhase)
		for p := range j.partitions.homes {
			h := &j.partitions.homes[p]
			if h.tracker == nil || h.reserved || !j.assign.MayTake(reducePhase) || !l.canReduce(j, p) {
				continue
			}
			if free.Has(h.tracker.assign.Index()) {
				fail("%s has a free reduce slot, and partition %d of %v is ready there", h.tracker.Name, p, j.id)
			}
			if free.Len() > 0 && !j.outputs.recomputing && !j.outputs.recomputeFailed && (!wakes || wake > j.partitions.nextMoveCheck || j.partitions.nextMoveCheck == never) {
				fail("partition %d of %v waits for a slot on %s until %v while other trackers have free slots", p, j.id, h.tracker.Name, j.partitions.nextMoveCheck)
			}
		}
		for m := range j.maps {
			if t := &j.maps[m]; j.outputs.recomputing && !t.output.atHand() && !t.runs() && !t.expected && !j.assign.IsPending(m) &&
				!j.assign.IsAside(m) && j.faults.RetryAt(t.key()) == 0 && !j.bad.holds(t.key()) {
				fail("output %d of %v must be recomputed, and no map of it runs or waits", m, j.id)
			}
		}
		for i := range free.All() {
			if p := l.nextToGather(j, l.fleet.byIndex[i]); p >= 0 && j.assign.MayTake(reducePhase) {
				fail("partition %d of %v waits to be gathered, and a reduce slot of %s is free", p, j.id, l.fleet.byIndex[i].Name)
			}
		}
	}
}

// checkHolds checks that a hold explains each wait while slots are free, and that none has ended.
func checkHolds(c *Core, fail func(string, ...any)) {
	checkUses(c, fail)
	l := c.leader
	if l == nil {
		return
	}
	for _, j := range l.order {
		if !j.assign.HasSplits() || j.finish.stopProposed || !j.facts.Running() {
			continue
		}
		holds := l.holds(j)
		for i := range l.phases {
			n := l.toLaunch(j, i)
			if i == mapPhase {
				n += j.assign.Aside()
			}
			if n > 0 && l.assign.FreeTrackers(i).Len() > 0 && len(holds) == 0 && !l.assign.Exhausted() {
				fail("%d %vs of %v wait while slots are free, without a hold", n, l.phases[i].kind, j.id)
			}
		}
		checkAvoids(c, j, fail)
		for _, h := range holds {
			if h.Until != 0 && h.Until < l.wall() {
				fail("%v is held until %d ms ago: %s", j.id, l.wall()-h.Until, h.Reason)
			}
		}
	}
}

// checkAvoids checks that each failed map is pending, or waits until a time at which the core
// wakes up, or waits for other trackers than those with free slots.
func checkAvoids(c *Core, j *job, fail func(string, ...any)) {
	l := c.leader
	wake, wakes := c.Wake()
	for m := range j.maps {
		tk := &j.maps[m].task
		if !j.faults.AvoidsAny(tk.key()) {
			continue
		}
		retryAt, elsewhere := j.faults.RetryAt(tk.key()), j.faults.AvoidUntil(tk.key())
		needed := !tk.runs() && !j.maps[m].expected && (!j.maps[m].output.atHand() || j.maps[m].recompute) && j.needsOutput(&j.maps[m])
		if _, grant := j.facts.Grant(m); j.facts.Reduces() == 0 {
			needed = !tk.runs() && !grant && !j.facts.Settled(m)
		}
		if j.maps[m].expected && j.assign.IsPending(m) {
			continue // the tracker with its output drained and restarted
		}
		if j.bad.holds(tk.key()) {
			if j.assign.IsPending(m) || j.assign.IsAside(m) {
				fail("%v waits for the log, and is to be launched", j.idOf(tk))
			}
			continue
		}
		waits := retryAt > 0 || j.assign.IsAside(m)
		if needed && !waits && !j.assign.IsPending(m) || j.assign.IsPending(m) && (waits || !needed) || j.assign.IsAside(m) && !needed {
			fail("failed %v: needed %v, pending %v, set aside %v, waits until %v", j.idOf(tk), needed, j.assign.IsPending(m), j.assign.IsAside(m), retryAt)
		}
		for _, until := range []time.Duration{retryAt, elsewhere} {
			if waits && j.runnable() && until > 0 && (!wakes || wake > until) {
				fail("%v waits until %v, and the core wakes up at %v", j.idOf(tk), until, wake)
			}
		}
		for i := range l.assign.FreeTrackers(mapPhase).All() {
			if t := l.fleet.byIndex[i]; j.assign.IsAside(m) && j.assign.MayTake(mapPhase) && !j.mustAvoid(tk, t) {
				fail("%v waits for a tracker other than %s, which has a free slot", j.idOf(tk), t.Name)
			}
		}
	}
}

// checkMatching checks two maps of a job that one Step launches without local slots: neither
// could have used the slot of the other as a local one.
func (w *world) checkMatching(commands []Command) {
	l := w.core.leader
	if l == nil || len(l.phases[mapPhase].plan.Queues) > 0 { // the queues assign maps then
		return
	}
	var notLocal []*attempt
	for _, c := range commands {
		send, _ := c.(Send)
		launch, ok := send.Message.(*wire.Launch)
		if !ok || launch.Attempt.Task.Kind != wire.Map {
			continue
		}
		if j := l.job(launch.Attempt.Task.Job); j != nil && j.attempt(launch.Attempt) != nil && !j.attempt(launch.Attempt).second && j.attempt(launch.Attempt).level > wire.NodeLocal {
			notLocal = append(notLocal, j.attempt(launch.Attempt))
		}
	}
	for _, a := range notLocal {
		for _, b := range notLocal {
			if a.job == b.job && !a.job.faults.AvoidsAny(a.task.key()) && slices.Contains(w.splitsOf(a.job)[a.id.Task.N].Hosts, b.tracker.host) {
				w.fail("neither %v on %s nor %v on %s is local, but %v would be local on %s", a.id, a.tracker.Name, b.id, b.tracker.Name, a.id, b.tracker.Name)
			}
		}
	}
}

// splitsOf returns a job's splits as they were loaded.
func (w *world) splitsOf(j *job) []Split {
	if w.splits[j.id] == nil {
		w.splits[j.id] = w.simSplits(LoadSplits{Job: j.id, Maps: len(j.maps)})
	}
	return w.splits[j.id]
}

// checkLevels compares the locality levels of the index with those computed from host names.
func (w *world) checkLevels(j *job) {
	if !j.assign.Indexed() {
		return
	}
	for _, t := range w.core.leader.fleet.trackers {
		for m, s := range w.splitsOf(j) {
			want, level := locality.Level(s.Hosts, s.Racks, locality.HostKey(t.Host), t.rack), j.assign.LevelOf(m, &t.assign)
			if level != want {
				w.fail("map %d of %v is at level %v on %s, want %v", m, j.id, level, t.Name, want)
			}
		}
	}
}

// checkDeferred checks that a deferred job has maps to launch, and that the core wakes in time.
func (w *world) checkDeferred(j *job) {
	until, deferred := j.assign.Deferred()
	wake, _ := w.core.Wake()
	if deferred && (j.assign.Pending() == 0 || until < w.now || wake > until || until > w.now+locality.Start+worldDelay) {
		w.fail("%v is deferred until %v with %d maps to launch; it is %v", j.id, until, j.assign.Pending(), w.now)
	}
}

// worldDelay is how long maps of some random worlds wait for local slots.
const worldDelay = 700 * time.Millisecond
