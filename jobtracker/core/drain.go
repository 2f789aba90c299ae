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

// A tracker that drains is launched nothing on and is no new home; the homes that it
// has move. What runs there ends by itself. Then it serves the map outputs that homes
// of other trackers have not gathered yet, until nobody needs them, and is told that
// it may go. For a job whose maps go on for long that would be long too, since it is
// not known before the last map whose output is needed: after Config.DrainServes such
// maps run again on other trackers, which costs slots and hardly time, for what homes
// have gathered they keep. What was not made anew by Config.DrainLasts, as of a job that
// is suspended or has no other tracker to go to, is given up like that of a tracker
// that is lost: it is made when the job goes on. How long it has run nothing is noted in
// the log by steps, so that leaders who come and go make both waits hardly longer.

// ErrUnknownTracker answers a Drain of a task tracker that is not known.
var ErrUnknownTracker = errors.New("unknown task tracker")

// drainProgress is how far a tracker is that drains.
type drainProgress struct {
	n           int           // number of the Drain that is in force; 0: it does not drain
	idleSince   time.Duration // when it began to run nothing, if it is resting
	idle        bool          // it drains and runs nothing
	recomputing bool          // see remake
}

// shut says whether a tracker is given no work: it is excluded, or drains.
func (t *tracker) outOfService() bool { return t.health.Excluded() || t.drain.n != 0 }

// drainTracker has a tracker drain, or drain no more.
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

// drainChanged brings a tracker into line with the Drain of its name that is in force.
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

// checkDrains looks how far the trackers are that drain.
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
		return // started again since
	case len(t.attempts) > 0:
		t.drain.idle, t.drain.recomputing = false, false
		return
	}
	step := l.c.cfg.DrainServes / idleSteps
	if !t.drain.idle {
		t.drain.idle, t.drain.idleSince = true, l.now-time.Duration(d.Rested)*step
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
	if steps > d.Rested {
		l.propose(&facts.Rested{N: d.N, Tracker: t.Name, Steps: steps})
	}
	l.due.drains = min(l.due.drains, t.drain.idleSince+time.Duration(steps+1)*step, lasts)
}

// restSteps is how many steps Config.DrainServes has.
const idleSteps = 2

// sendAway has the log say which trackers are drained, and sends those away of which it
// does. Partitions that have moved in this Step, or since the log was told, may need
// something of them again.
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

// drained says whether the log says that a tracker has nothing left that is needed.
func (l *Live) drained(t *tracker) bool {
	d, drains := l.facts.Draining(t.Name)
	return drains && d.Process == t.Process
}

// needed says whether a tracker that runs nothing has something that is needed.
func (l *Live) hasNeeded(t *tracker) bool { return len(t.hosting.homes) > 0 || l.servesNeeded(t) }

// dismiss lets a tracker go that is drained. What it had is nobody's any more, so that
// it need not be waited for as for one that is lost.
func (l *Live) dismiss(t *tracker) {
	l.send(t, &wire.Drained{Epoch: l.epoch})
	t.contact.lossProposed = true
	l.refresh(t)
	l.propose(&facts.TrackerLost{Tracker: t.Name, Incarnation: t.Incarnation})
}

// serves says whether a tracker has map outputs that somebody has yet to gather.
func (l *Live) servesNeeded(t *tracker) bool {
	return slices.ContainsFunc(t.outputs, func(o outputAt) bool {
		return l.stillOn(t, o) && l.jobs[int(o.job)].needsOutputs()
	})
}

// gathers says whether some of a job's partitions are not gathered yet.
func (j *job) needsOutputs() bool {
	return (j.housing.open > 0 || j.outputs.recomputing) && j.facts.Running()
}

// remake has those maps run again on other trackers whose outputs a tracker would have
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

// keepOutputs ends that.
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

// giveUpRest takes back what a tracker still has, as if it were lost.
func (l *Live) takeBackRest(t *tracker) {
	outputs := l.outputsOn(t)
	t.outputs = nil
	for _, j := range l.order {
		l.rehomeAll(j, t)
		l.dropOutputs(j, outputs[j.facts.N()])
	}
}

// drains tells of all trackers that are to drain, by name.
func (l *Live) drainStatuses() []wire.DrainStatus {
	var all []wire.DrainStatus
	for _, name := range l.facts.AllDraining() {
		d, _ := l.facts.Draining(name)
		t := l.fleet.trackers[name]
		s := wire.DrainStatus{Tracker: name, Drained: d.Process != 0, Here: t != nil && !t.contact.lossProposed}
		if t != nil && !s.Drained {
			s.Needs = l.neededText(t)
		}
		all = append(all, s)
	}
	return all
}

// keepsFromGoing says what a tracker that drains still has that is needed.
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

// drainingNames names trackers that drain.
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

// allDrain says whether nobody can be given anything since all who could drain.
func (l *Live) allDraining() bool {
	return l.fleet.draining.Len() > 0 && !slices.ContainsFunc(l.fleet.byIndex, func(t *tracker) bool {
		return t != nil && t.usable() && t.drain.n == 0
	})
}
