package core

import (
	"cmp"
	"slices"
	"time"

	"github.com/quernmr/quern/jobtracker/core/facts"
	"github.com/quernmr/quern/jobtracker/core/health"
)

// Package health decides when a tracker is excluded and readmitted. This file collects the
// input for health, and proposes and applies its decisions.

// suspectTracker counts a failed attempt against its tracker. It excludes the tracker if
// attempts fail there more than elsewhere.
func (l *leader) suspectTracker(a *attempt, took time.Duration) {
	t, phase := a.tracker, phaseOf(a.id.Task.Kind)
	l.countForJob(a.job, t)
	if l.failedOnProbation(a, l.now-took) {
		return
	}
	c := t.health.Failed(phase, health.Failure{Task: a.id.Task, Began: a.began, Took: took}, t.slots[phase], l.now)
	if c == nil {
		return
	}
	jobs := c.Jobs(func(n int) bool { return l.jobs[n] != nil })
	if !c.MayExclude(l.otherTrackers(t)) {
		return
	}
	for n := range jobs {
		l.addEvidence(c, l.jobs[n], phase)
	}
	if reason, ok := c.StandsOut(); ok {
		l.exclude(t, reason)
	}
}

// addEvidence adds a job's attempts on all trackers to the input of a decision.
func (l *leader) addEvidence(c *health.Comparison, j *job, phase int) {
	for p := range j.ended.Latest() {
		if p.Began+p.Took < c.Since() {
			break
		}
		if t := l.fleet.trackers[l.fleet.byNumber[p.Tracker].Name]; t != nil && p.Kind == kindOf(phase) {
			c.AddEnded(&t.health, p.Began, p.State)
		}
	}
	for a := range j.runningAttempts(phase) {
		c.AddRunning(&a.tracker.health, a.began, l.wall())
	}
}

// blameTrackers attributes earlier failures of a task to the trackers where it failed, since the
// task has now succeeded on t.
func (l *leader) blameTrackers(j *job, tk *task, t *tracker) {
	for _, f := range j.faults.TakeBlames(tk.key()) {
		failing := l.fleet.trackers[f.Tracker]
		if failing == nil || failing == t || !failing.health.Blame(f.Launched, l.now) {
			continue
		}
		if reason, worse := failing.health.MuchWorse(l.otherTrackers(failing), j.idOf(tk), l.now); worse {
			l.exclude(failing, reason)
		}
	}
}

// otherTrackers describes all trackers except t, for a comparison with t.
func (l *leader) otherTrackers(t *tracker) (others health.Others) {
	for _, o := range l.fleet.byIndex {
		if o != nil && o != t {
			out := o.outOfService() || l.exclusionProposed(o)
			others.Add(&o.health, out, o.usable() && o.slots != [2]int{}, l.now)
		}
	}
	return others
}

// exclude proposes to exclude a tracker, unless its loss is proposed.
func (l *leader) exclude(t *tracker, reason string) {
	if !t.contact.lossProposed {
		l.propose(&facts.TrackerExcluded{
			Tracker: t.Name, Incarnation: t.Incarnation, Reason: reason, Until: l.wall() + t.health.Length().Milliseconds(),
		})
	}
}

// exclusionProposed reports whether the log will exclude a tracker.
func (l *leader) exclusionProposed(t *tracker) bool {
	return l.c.pending.has(&facts.TrackerExcluded{Tracker: t.Name, Incarnation: t.Incarnation})
}

// exclusionChanged acts on an exclusion or readmission. changed is false if the fact changed
// nothing or the log refused it.
func (l *leader) exclusionChanged(name string, incarnation uint64, changed bool) {
	t := l.fleet.trackers[name]
	switch {
	case t == nil || t.Incarnation != incarnation:
		return
	case !changed:
		t.health.ExclusionDropped()
		l.updateHeld(t)
		return
	}
	l.fleet.exclusions = true
	l.copyExclusions(t)
	readmit := t.health.ExclusionChanged(t.Excluded != "", l.now)
	l.updateHeld(t)
	l.timers.readmits = l.now
	if readmit {
		l.readmit(t)
	}
	l.serviceChanged(t)
}

// diskDropped may end the exclusions of a tracker that has stopped using a bad disk: times is how
// often it has done so.
func (l *leader) diskDropped(t *tracker, times int) {
	t.faults.Disks = times
	if !t.health.DisksDropped(times, l.now) {
		return
	}
	if t.health.Pardon(l.exclusionProposed(t), l.now) {
		l.readmit(t)
	}
	l.forgetTracker(t)
}

// checkExclusions proposes the end of exclusions that are due.
func (l *leader) checkExclusions() {
	if l.now < l.timers.readmits {
		return
	}
	l.timers.readmits = never
	l.checkOperatorExclusions()
	for _, t := range l.fleet.byIndex {
		if t == nil || t.Excluded == "" {
			continue
		}
		remaining := health.Remaining(t.Until, l.wall())
		if remaining <= 0 {
			t.health.Expire()
			l.readmit(t)
			continue
		}
		l.timers.readmits = min(l.timers.readmits, l.now+remaining)
	}
}

// tryExcluded ends an exclusion early for a task that has failed on all trackers in service: of the
// exclusions of trackers where the task has not failed, the one that would end first. It leaves trackers
// that operators exclude too. It reports whether an exclusion ends.
func (l *leader) tryExcluded(j *job, tk *task) bool {
	var first *tracker
	for i := range l.fleet.outOfService.All() {
		t := l.fleet.byIndex[i]
		switch {
		case t.Excluded == "" || t.withdrawn() || !t.usable() || t.slots[phaseOf(tk.kind)] == 0 || !j.uses(t) || j.avoids(tk, t):
		case l.readmissionProposed(t):
			return true
		case first == nil || cmp.Or(cmp.Compare(t.Until, first.Until), cmp.Compare(t.Name, first.Name)) < 0:
			first = t
		}
	}
	if first == nil {
		return false
	}
	l.log("task tracker is tried before its exclusion ends", "tracker", first.Name, "why", j.idOf(tk).String()+" has failed on all task trackers in service")
	first.health.Expire()
	l.readmit(first)
	return true
}

// readmissionProposed reports whether the log will end the exclusion of a tracker.
func (l *leader) readmissionProposed(t *tracker) bool {
	return l.c.pending.has(&facts.TrackerReadmitted{Tracker: t.Name, Incarnation: t.Incarnation})
}

func (l *leader) readmit(t *tracker) {
	l.propose(&facts.TrackerReadmitted{Tracker: t.Name, Incarnation: t.Incarnation})
}

// keepOneTracker readmits all excluded trackers if no tracker with slots is in service.
func (l *leader) keepOneTracker() {
	l.keepPhases()
	if slices.ContainsFunc(l.fleet.byIndex, func(t *tracker) bool {
		return t != nil && !t.contact.lossProposed && !t.outOfService() && t.slots != [2]int{}
	}) {
		return
	}
	for _, t := range l.fleet.byIndex {
		if t != nil && t.Excluded != "" {
			l.readmit(t)
		}
	}
}
