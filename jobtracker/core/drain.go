package core

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/quernmr/quern/jobtracker/core/facts"
	"github.com/quernmr/quern/wire"
)

// The steps of a drain:
//   - The tracker gets no new attempts and homes. Running attempts end, and homes move away.
//   - It serves its map outputs until other homes have gathered them. Then it leaves.
//   - After Config.DrainServeTime other trackers recompute outputs that are still needed.
//   - After Config.DrainMaxTime its outputs and homes are given up, as if it were lost.
//
// The log has the idle time in steps, so that a new leader does not begin it from zero.

// ErrUnknownTracker refuses the Drain of an unknown task tracker.
var ErrUnknownTracker = errors.New("unknown task tracker")

// drainProgress is the progress of a tracker's drain.
type drainProgress struct {
	n           int           // number of the Drain in force; 0: none
	idleSince   time.Duration // when the last attempt ended, if idle
	idle        bool          // the tracker drains and runs nothing
	recomputing bool          // see recomputeOutputs
	givenUp     int           // 1 + tracker.outputsAdded at the last reassignRest; 0: none
	visits      *outputVisits // the last ones that change what becomes of its outputs
	needed      neededOutputs
}

// outOfService reports whether a tracker is excluded, drains, or is unhealthy. It then gets no tasks
// with slots.
func (t *tracker) outOfService() bool { return t.health.Excluded() || t.withdrawn() }

// drainKey is the key of all requests to drain and to end a drain.
const drainKey = "drain"

// drainTracker handles a request to drain a tracker or to end its drain.
func (l *leader) drainTracker(r Drain) {
	if _, drains := l.facts.Draining(r.Tracker); l.fleet.trackers[r.Tracker] == nil && !drains {
		l.reply(r, fmt.Errorf("%w %q", ErrUnknownTracker, r.Tracker))
		return
	}
	l.proposeInOrder(drainKey, r)
}

func (l *leader) drainApplied(x *facts.Drain, changed bool) {
	if t := l.fleet.trackers[x.Tracker]; changed && t != nil {
		l.drainChanged(t)
	}
	l.appliedInOrder(drainKey, x, changed)
}

// drainChanged begins or ends a tracker's drain, as Facts say.
func (l *leader) drainChanged(t *tracker) {
	before := t.drain.n
	d, _ := l.facts.Draining(t.Name)
	if t.drain.n = d.N; t.drain.n == before {
		return
	}
	t.drain.idle, t.drain.recomputing, t.drain.givenUp, t.drain.needed = false, false, 0, neededOutputs{}
	l.fleet.draining.Set(t.assign.Index(), t.drain.n != 0)
	if t.drain.n == 0 {
		l.cancelRecompute(t)
	}
	l.serviceChanged(t)
}

// checkDrains advances the drains of all draining trackers.
func (l *leader) checkDrains() {
	l.timers.drains = never
	for i := range l.fleet.draining.All() {
		if t := l.fleet.byIndex[i]; t.usable() && len(l.recovery.awaiting) == 0 {
			l.checkDrain(t)
		}
	}
}

func (l *leader) checkDrain(t *tracker) {
	d, _ := l.facts.Draining(t.Name)
	switch {
	case d.Process != 0 && d.Process != t.Process:
		return // the log records another process as drained; this one has restarted since
	case len(t.attempts) > 0:
		t.drain.idle, t.drain.recomputing = false, false
		return
	}
	step := l.c.cfg.DrainServeTime / idleSteps
	if !t.drain.idle {
		t.drain.idle, t.drain.idleSince = true, l.now-time.Duration(d.IdleSteps)*step
	}
	serveUntil, giveUpAt := t.drain.idleSince+l.c.cfg.DrainServeTime, t.drain.idleSince+l.c.cfg.DrainMaxTime
	switch {
	case l.now >= giveUpAt:
		l.reassignRest(t)
		return
	case !l.isNeeded(t):
		return
	case l.now >= serveUntil:
		l.recomputeOutputs(t)
	}
	steps := int((l.now - t.drain.idleSince) / step)
	if steps > d.IdleSteps {
		l.propose(&facts.DrainIdle{N: d.N, Tracker: t.Name, Steps: steps})
	}
	l.timers.drains = min(l.timers.drains, t.drain.idleSince+time.Duration(steps+1)*step, giveUpAt)
}

// idleSteps is the number of steps in Config.DrainServeTime.
const idleSteps = 2

// dismissDrained proposes to record idle trackers with nothing needed as drained. It dismisses
// a recorded one, if no partition has come to need its map outputs again.
func (l *leader) dismissDrained() {
	for i := range l.fleet.draining.All() {
		t := l.fleet.byIndex[i]
		switch {
		case !t.drain.idle || !t.usable() || len(l.recovery.awaiting) > 0 || l.isNeeded(t):
		case l.drained(t):
			l.dismiss(t)
		default:
			l.propose(&facts.Drained{N: t.drain.n, Tracker: t.Name, Incarnation: t.Incarnation})
		}
	}
}

// drained reports whether the log records the tracker as drained.
func (l *leader) drained(t *tracker) bool {
	d, drains := l.facts.Draining(t.Name)
	return drains && d.Process == t.Process
}

// isNeeded reports whether an idle tracker has homes or needed map outputs, or may have some.
func (l *leader) isNeeded(t *tracker) bool { return len(t.hosting.homes) > 0 || l.servesNeeded(t) }

// dismiss tells a drained tracker to leave, and proposes its loss without waiting for a lease.
func (l *leader) dismiss(t *tracker) {
	l.send(t, &wire.Drained{Epoch: l.epoch})
	t.contact.lossProposed = true
	l.refresh(t)
	l.propose(&facts.TrackerLost{Tracker: t.Name, Incarnation: t.Incarnation})
}

// visitDrained visits the outputs of a draining tracker, in place of earlier visits.
func (l *leader) visitDrained(t *tracker, v *outputVisits) {
	t.drain.visits = v
	v.stops = func() bool { return t.drain.visits != v }
	l.visitOutputs(t, v)
}

// recomputeOutputs reruns maps on other trackers, to replace the outputs that a draining tracker
// serves. Until then it continues to serve them.
func (l *leader) recomputeOutputs(t *tracker) {
	if t.drain.recomputing {
		return
	}
	t.drain.recomputing = true
	l.visitDrained(t, &outputVisits{visit: func(j *job, m int) {
		if j.needsOutputs() {
			j.maps[m].recompute = true
			l.updateMap(j, m)
			l.touch(j)
		}
	}})
}

// cancelRecompute undoes recomputeOutputs.
func (l *leader) cancelRecompute(t *tracker) {
	l.visitDrained(t, &outputVisits{visit: func(j *job, m int) {
		if !j.maps[m].recompute {
			return
		}
		j.maps[m].recompute = false
		for a := range j.maps[m].all() {
			l.killAttempt(a, "the output of the map stays on its tracker")
		}
		l.updateMap(j, m)
	}})
}

// reassignRest gives up a tracker's homes and outputs, as if the tracker were lost.
func (l *leader) reassignRest(t *tracker) {
	for _, j := range sortedJobs(t.hosting.homes) {
		l.rehomeAll(j, t)
	}
	if t.drain.givenUp == 1+t.outputsAdded {
		return
	}
	t.drain.givenUp = 1 + t.outputsAdded
	l.visitDrained(t, &outputVisits{visit: func(j *job, m int) {
		l.dropOutput(j, m)
		l.updateMap(j, m)
	}})
}

// drainStatuses lists all drains, by tracker name.
func (l *leader) drainStatuses() []wire.DrainStatus {
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

// neededText describes the attempts, homes and needed outputs of a draining tracker.
func (l *leader) neededText(t *tracker) string {
	var parts []string
	if n := len(t.attempts); n > 0 {
		parts = append(parts, plural(n, "attempt"))
	}
	homes := 0
	for _, set := range t.hosting.homes {
		homes += set.Len()
	}
	if homes > 0 {
		parts = append(parts, "home of "+plural(homes, "partition"))
	}
	parts = append(parts, l.neededOutputs(t)...)
	return strings.Join(parts, ", ")
}

func (l *leader) drainingNames(match func(*tracker) bool) string {
	return l.trackerNames(func(t *tracker) bool { return t.drain.n != 0 && match(t) })
}
