package core

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quernmr/quern/jobtracker/core/facts"
	"github.com/quernmr/quern/wire"
)

// The steps of a drain:
//   - The tracker gets no new attempts and no new homes, and its homes move. Its attempts end.
//   - It serves map outputs that other homes have yet to gather. When none is left, it may go.
//   - After Config.DrainServes other trackers recompute outputs that are still needed.
//   - After Config.DrainLasts the rest is given up as if the tracker were lost.
//
// The log notes its idle time in steps, so that a new leader does not start the waits again.

// ErrUnknownTracker answers a Drain of an unknown task tracker.
var ErrUnknownTracker = errors.New("unknown task tracker")

// drainProgress is the progress of a tracker's drain.
type drainProgress struct {
	n           int           // number of the Drain in force; 0: none
	idleSince   time.Duration // when its last attempt ended, if idle
	idle        bool          // it drains and runs nothing
	recomputing bool          // see recomputeOutputs
}

// outOfService says whether a tracker gets no new attempts: it is excluded, or drains.
func (t *tracker) outOfService() bool { return t.health.Excluded() || t.drain.n != 0 }

// drainTracker handles a request to drain a tracker or to undo that.
func (l *Live) drainTracker(r Drain) {
	if _, drains := l.facts.Draining(r.Tracker); l.fleet.trackers[r.Tracker] == nil && !drains {
		l.reply(r, fmt.Errorf("%w %q", ErrUnknownTracker, r.Tracker))
		return
	}
	l.proposeInOrder("drain", r)
}

func (l *Live) drainApplied(x *facts.Drain, fitted bool) {
	if t := l.fleet.trackers[x.Tracker]; fitted && t != nil {
		l.drainChanged(t)
	}
	l.appliedInOrder("drain", x, fitted)
}

// drainChanged applies a changed drain to its tracker.
func (l *Live) drainChanged(t *tracker) {
	was := t.drain.n
	d, _ := l.facts.Draining(t.Name)
	if t.drain.n = d.N; t.drain.n == was {
		return
	}
	t.drain.idle, t.drain.recomputing = false, false
	l.fleet.draining.Set(t.assign.Index(), t.drain.n != 0)
	if t.drain.n == 0 {
		l.cancelRecompute(t)
	}
	l.refresh(t)
	for p := range l.phases {
		l.phases[p].planSoon(l.now)
	}
	l.keepOneTracker()
	l.touchAll()
}

// checkDrains advances the drains of all draining trackers.
func (l *Live) checkDrains() {
	l.due.drains = never
	for i := range l.fleet.draining.All() {
		if t := l.fleet.byIndex[i]; t.usable() && len(l.recovery.awaiting) == 0 {
			l.checkDrain(t)
		}
	}
}

func (l *Live) checkDrain(t *tracker) {
	d, _ := l.facts.Draining(t.Name)
	switch {
	case d.Process != 0 && d.Process != t.Process:
		return // restarted since
	case len(t.attempts) > 0:
		t.drain.idle, t.drain.recomputing = false, false
		return
	}
	step := l.c.cfg.DrainServes / idleSteps
	if !t.drain.idle {
		t.drain.idle, t.drain.idleSince = true, l.now-time.Duration(d.IdleSteps)*step
	}
	serves, lasts := t.drain.idleSince+l.c.cfg.DrainServes, t.drain.idleSince+l.c.cfg.DrainLasts
	if l.now >= lasts {
		l.takeBackRest(t)
	}
	switch {
	case !l.hasNeeded(t):
		return
	case l.now >= serves:
		l.recomputeOutputs(t)
	}
	steps := int((l.now - t.drain.idleSince) / step)
	if steps > d.IdleSteps {
		l.propose(&facts.DrainIdle{N: d.N, Tracker: t.Name, Steps: steps})
	}
	l.due.drains = min(l.due.drains, t.drain.idleSince+time.Duration(steps+1)*step, lasts)
}

// idleSteps is how many steps Config.DrainServes has.
const idleSteps = 2

// dismissDrained dismisses trackers that the log records as drained, and proposes that record
// for others with nothing needed. Between the two a moved partition may need outputs again.
func (l *Live) dismissDrained() {
	for i := range l.fleet.draining.All() {
		t := l.fleet.byIndex[i]
		switch {
		case !t.drain.idle || !t.usable() || len(l.recovery.awaiting) > 0 || l.hasNeeded(t):
		case l.drained(t):
			l.dismiss(t)
		default:
			l.propose(&facts.Drained{N: t.drain.n, Tracker: t.Name, Incarnation: t.Incarnation})
		}
	}
}

// drained says whether the log records the tracker as drained.
func (l *Live) drained(t *tracker) bool {
	d, drains := l.facts.Draining(t.Name)
	return drains && d.Process == t.Process
}

// hasNeeded says whether an idle tracker has homes or needed map outputs.
func (l *Live) hasNeeded(t *tracker) bool { return len(t.hosting.homes) > 0 || l.servesNeeded(t) }

// dismiss lets a drained tracker go. No lease has to pass, since it has nothing that is needed.
func (l *Live) dismiss(t *tracker) {
	l.send(t, &wire.Drained{Epoch: l.epoch})
	t.contact.lossProposed = true
	l.refresh(t)
	l.propose(&facts.TrackerLost{Tracker: t.Name, Incarnation: t.Incarnation})
}

// servesNeeded says whether a tracker has map outputs that some partition has yet to gather.
func (l *Live) servesNeeded(t *tracker) bool {
	return slices.ContainsFunc(t.outputs, func(o outputAt) bool {
		return l.stillOn(t, o) && l.jobs[int(o.job)].needsOutputs()
	})
}

// needsOutputs says whether partitions of a job are not gathered yet.
func (j *job) needsOutputs() bool {
	return (j.housing.open > 0 || j.outputs.recomputing) && j.facts.Running()
}

// recomputeOutputs reruns, on other trackers, maps whose outputs a draining tracker would have
// to serve for long. It serves them until then.
func (l *Live) recomputeOutputs(t *tracker) {
	if t.drain.recomputing {
		return
	}
	t.drain.recomputing = true
	outputs := l.outputsOn(t)
	for _, j := range l.order {
		if !j.needsOutputs() {
			continue
		}
		for _, m := range outputs[j.facts.N()] {
			j.maps[m].recompute = true
			l.updateMap(j, m)
		}
		l.touch(j)
	}
}

// cancelRecompute undoes recomputeOutputs.
func (l *Live) cancelRecompute(t *tracker) {
	outputs := l.outputsOn(t)
	for _, j := range l.order {
		for _, m := range outputs[j.facts.N()] {
			if !j.maps[m].recompute {
				continue
			}
			j.maps[m].recompute = false
			for a := range j.maps[m].all() {
				l.kill(a, "the output of the map stays where it is")
			}
			l.updateMap(j, m)
		}
	}
}

// takeBackRest takes back the homes and outputs of a tracker, as if it were lost.
func (l *Live) takeBackRest(t *tracker) {
	outputs := l.outputsOn(t)
	t.outputs = nil
	for _, j := range l.order {
		l.rehomeAll(j, t)
		l.dropOutputs(j, outputs[j.facts.N()])
	}
}

// drainStatuses lists all drains, by tracker name.
func (l *Live) drainStatuses() []wire.DrainStatus {
	var all []wire.DrainStatus
	for _, name := range l.facts.AllDraining() {
		d, _ := l.facts.Draining(name)
		t := l.fleet.trackers[name]
		s := wire.DrainStatus{Tracker: name, Drained: d.Process != 0, Registered: t != nil && !t.contact.lossProposed}
		if t != nil && !s.Drained {
			s.Needs = l.neededText(t)
		}
		all = append(all, s)
	}
	return all
}

// neededText lists what a draining tracker still has that is needed.
func (l *Live) neededText(t *tracker) string {
	var parts []string
	if n := len(t.attempts); n > 0 {
		parts = append(parts, count(n, "attempt"))
	}
	homes := 0
	for _, set := range t.hosting.homes {
		homes += set.Len()
	}
	if homes > 0 {
		parts = append(parts, count(homes, "partition")+" at home there")
	}
	outputs := l.outputsOn(t)
	for _, j := range l.order {
		if n := len(outputs[j.facts.N()]); n > 0 && j.needsOutputs() {
			parts = append(parts, count(n, "map output")+" of "+j.id.String())
		}
	}
	return strings.Join(parts, ", ")
}

// drainingNames lists the draining trackers for which match holds.
func (l *Live) drainingNames(which func(*tracker) bool) string {
	var names []string
	for i := range l.fleet.draining.All() {
		if t := l.fleet.byIndex[i]; which(t) {
			names = append(names, t.Name)
		}
	}
	slices.SortFunc(names, cmp.Compare)
	return strings.Join(names, ", ")
}

// allDraining says whether all usable trackers drain, so that no task can be assigned.
func (l *Live) allDraining() bool {
	return l.fleet.draining.Len() > 0 && !slices.ContainsFunc(l.fleet.byIndex, func(t *tracker) bool {
		return t != nil && t.usable() && t.drain.n == 0
	})
}
