package core

import (
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/quernmr/quern/jobtracker/core/facts"
	"github.com/quernmr/quern/wire"
)

// drainTrackers drains trackers and undoes some of the drains later.
func (w *world) drainTrackers(seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 9))
	w.after(faultTime, func() { // undo all drains before the world is calm
		for _, t := range w.trackers {
			w.requestDrain(t.name, true)
		}
	})
	if rnd.IntN(2) == 0 {
		return
	}
	for range 1 + rnd.IntN(4) {
		name := w.trackers[rnd.IntN(len(w.trackers))].name
		at := time.Duration(rnd.Int64N(int64(faultTime)))
		for undo := range 2 {
			w.after(at, func() { w.requestDrain(name, undo == 1) })
			at = min(at+time.Duration(rnd.Int64N(int64(20*time.Second))), faultTime)
		}
	}
}

// requestDrain requests a drain, or its end. In a calm world it only undoes drains.
func (w *world) requestDrain(name string, undo bool) {
	undo = undo || w.calm
	w.request(func(token Token) Event { return Drain{Token: token, Tracker: name, Undo: undo} }, func(r Reply) {
		w.note("drain of %s, undo %v: %v", name, undo, r.Err)
		if r.Err != nil && !errors.Is(r.Err, ErrUnknownTracker) {
			w.fail("drain of %s, undo %v: %v", name, undo, r.Err)
		}
		if w.calm && !undo {
			w.requestDrain(name, true)
		}
	})
}

// excludeTrackers lets an operator exclude trackers, and readmit some of them before their time.
func (w *world) excludeTrackers(seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 11))
	for range rnd.IntN(3) {
		name := w.trackers[rnd.IntN(len(w.trackers))].name
		at, lasts := time.Duration(rnd.Int64N(int64(faultTime))), time.Duration(1+rnd.Int64N(int64(20*time.Second)))
		w.after(at, func() { w.requestExclusion(Exclude{Tracker: name, By: "ann", For: lasts}) })
		if rnd.IntN(2) == 0 {
			w.after(at+lasts/2, func() { w.requestExclusion(Exclude{Tracker: name, Undo: true}) })
		}
	}
}

func (w *world) requestExclusion(x Exclude) {
	w.request(func(token Token) Event { x.Token, x.Wall = token, scenarioStart+w.now.Milliseconds(); return x }, func(r Reply) {
		w.note("exclusion of %s, undo %v: %v", x.Tracker, x.Undo, r.Err)
		if r.Err != nil && !errors.Is(r.Err, ErrUnknownTracker) {
			w.fail("exclusion of %s, undo %v: %v", x.Tracker, x.Undo, r.Err)
		}
	})
}

// assignedHome is a home with the tracker that it was set on.
type assignedHome struct {
	tracker string
	home    homeKey
}

// checkDrained checks messages to trackers that drain or that an operator excludes.
func (w *world) checkDrained(c Send) {
	if w.core.leader == nil {
		return
	}
	t := w.core.leader.fleet.byStream[c.Stream]
	if t == nil {
		return
	}
	_, withdrawn := w.core.facts.OperatorExclusion(t.Name)
	if _, drains := w.core.facts.Draining(t.Name); drains {
		withdrawn = true
	}
	switch m := c.Message.(type) {
	case *wire.Launch:
		if withdrawn {
			w.fail("%v is launched on %s, which drains or is excluded", m.Attempt, t.Name)
		}
	case *wire.SetHome:
		home := assignedHome{t.Name, homeKey{m.Job, m.Partition, m.Generation}}
		if !w.assignedHomes[home] && withdrawn {
			w.fail("partition %d of %v gets a home on %s, which drains or is excluded", m.Partition, m.Job, t.Name)
		}
		w.assignedHomes[home] = true
	case *wire.Drained:
		w.checkUnneeded(t)
		for _, a := range w.tracker(t.Name).sorted() {
			f := w.core.facts.Find(a.report.Attempt.Task.Job)
			if !a.report.State.Final() && f != nil && !f.Ended() && w.tracker(t.Name).process == t.Process {
				w.fail("%s is told to exit, but runs %v", t.Name, a.report.Attempt)
			}
		}
	}
}

func (w *world) tracker(name string) *simTracker {
	return w.trackers[slices.IndexFunc(w.trackers, func(x *simTracker) bool { return x.name == name })]
}

// checkProposal checks the first proposal that a tracker is drained. A later one may be refused,
// since the tracker is needed again.
func (w *world) checkProposal(c Propose) {
	if c.Key == w.undecidedKey {
		return
	}
	x, err := facts.Decode(c.Data)
	if err != nil {
		w.fail("%v", err)
	}
	if x, ok := x.(*facts.Drained); ok {
		w.checkUnneeded(w.core.leader.fleet.trackers[x.Tracker])
	}
}

// checkUnneeded checks that every uncommitted partition has gathered the outputs of a drained
// tracker, unless it was idle for DrainLasts.
func (w *world) checkUnneeded(t *tracker) {
	if w.now >= t.drain.idleSince+worldConfig.DrainMaxTime {
		return
	}
	for _, j := range w.core.leader.order {
		if !j.facts.Running() {
			continue
		}
		for p := range j.partitions.homes {
			if !j.facts.Committed(p) {
				w.checkHasOutputs(j, p, t)
			}
		}
	}
}

// checkHasOutputs checks that the home of a partition has all outputs of a drained tracker.
func (w *world) checkHasOutputs(j *job, p int, t *tracker) {
	var at *simHome
	if h := j.partitions.homes[p].tracker; h != nil {
		x := w.tracker(h.Name)
		if x.down || x.process != h.Process || x.incarnation != h.Incarnation || x.slots != x.configured || x.link == nil || x.link.lastAtLeader >= w.now {
			return // the leader may not know its state yet
		}
		at = x.homes[homeName{j.id, p}]
	}
	for m := range j.maps {
		if x := &j.maps[m]; !x.output.atHand() || w.core.leader.outputOf(j, m).Tracker != t.Name {
			continue
		}
		if at == nil || at.outputs[m].Digest != j.maps[m].digest {
			w.fail("%s is drained, but partition %d of %v lacks its output of map %d", t.Name, p, j.id, m)
		}
	}
}

// exitDrained ends the process of a drained tracker, which restarts later.
func (t *simTracker) exitDrained() {
	t.w.note("%s has drained", t.name)
	t.crash()
}

// checkRetry checks that a failed map waits for other trackers before it returns to a tracker.
func (w *world) checkRetry(id wire.TaskID, t *tracker) {
	j := w.core.leader.job(id.Job)
	if j.trackers.ExcludedUntil(t.Name) != 0 {
		w.fail("%v is launched on %s, which its job does not use", id, t.Name)
	}
	if tk := j.task(id); j.avoids(tk, t) && j.faults.AvoidUntil(tk.key()) != 0 {
		w.fail("%v still waits for another tracker, and is relaunched on %s, where it failed", id, t.Name)
	}
}
