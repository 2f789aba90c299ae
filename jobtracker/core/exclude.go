package core

import (
	"slices"
	"time"

	"github.com/quernmr/quern/jobtracker/core/facts"
	"github.com/quernmr/quern/jobtracker/core/health"
)

// Package health decides when a tracker is excluded and readmitted. This file collects its
// input, proposes its decisions and applies them when they are in the log.

// suspect counts a failed attempt against its tracker, and excludes the tracker if it stands
// out.
func (l *Live) suspect(a *attempt, took time.Duration) {
	t, phase := a.tracker, phaseOf(a.id.Task.Kind)
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
	if why, does := c.StandsOut(); does {
		l.exclude(t, why)
	}
}

// addEvidence adds a job's attempts on all trackers to a case.
func (l *Live) addEvidence(c *health.Comparison, j *job, phase int) {
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

// blameTrackers blames earlier failures of a task on the trackers where it failed, now that it
// has succeeded on t.
func (l *Live) blameTrackers(j *job, tk *task, t *tracker) {
	for _, f := range j.faults.TakeBlames(tk.key()) {
		bad := l.fleet.trackers[f.Tracker]
		if bad == nil || bad == t || !bad.health.Blame(f.Launched, l.now) {
			continue
		}
		if why, worse := bad.health.MuchWorse(l.otherTrackers(bad), j.idOf(tk), l.now); worse {
			l.exclude(bad, why)
		}
	}
}

// otherTrackers describes the trackers with which t is compared.
func (l *Live) otherTrackers(t *tracker) (others health.Others) {
	for _, o := range l.fleet.byIndex {
		if o != nil && o != t {
			out := o.outOfService() || l.c.pending.has(l.exclusion(o, ""))
			others.Add(&o.health, out, o.usable() && o.slots != [2]int{}, l.now)
		}
	}
	return others
}

// exclude proposes to exclude a tracker, unless its loss is proposed.
func (l *Live) exclude(t *tracker, reason string) {
	if !t.contact.lossProposed {
		l.propose(l.exclusion(t, reason))
	}
}

func (l *Live) exclusion(t *tracker, reason string) *facts.TrackerExcluded {
	return &facts.TrackerExcluded{
		Tracker: t.Name, Incarnation: t.Incarnation, Reason: reason, Until: l.wall() + t.health.Length().Milliseconds(),
	}
}

// excluded acts on an exclusion or readmission. fitted is false if the fact changed nothing or
// the log refused it.
func (l *Live) excluded(name string, incarnation uint64, fitted bool) {
	t := l.fleet.trackers[name]
	switch {
	case t == nil || t.Incarnation != incarnation:
		return
	case !fitted:
		t.health.ExclusionDropped()
		return
	}
	t.Tracker, _ = l.facts.Tracker(name)
	readmit := t.health.ExclusionChanged(t.Excluded != "", l.now)
	l.refresh(t)
	for p := range l.phases {
		l.phases[p].planSoon(l.now)
	}
	l.due.readmits = l.now
	if readmit {
		l.readmit(t)
	}
	l.keepOneTracker()
	l.touchAll()
}

// diskDropped ends a tracker's exclusion if it has stopped using a disk since its last report.
func (l *Live) diskDropped(t *tracker, times int) {
	if t.health.DisksDropped(times, l.now) && t.health.Pardon(l.c.pending.has(l.exclusion(t, "")), l.now) {
		l.readmit(t)
	}
}

// checkExclusions proposes the end of exclusions that are due.
func (l *Live) checkExclusions() {
	if l.now < l.due.readmits {
		return
	}
	l.due.readmits = never
	for _, t := range l.fleet.byIndex {
		if t == nil || t.Excluded == "" {
			continue
		}
		left := health.Remaining(t.Until, l.wall())
		if left <= 0 {
			l.readmit(t)
			continue
		}
		l.due.readmits = min(l.due.readmits, l.now+left)
	}
}

func (l *Live) readmit(t *tracker) {
	l.propose(&facts.TrackerReadmitted{Tracker: t.Name, Incarnation: t.Incarnation})
}

// keepOneTracker readmits all trackers if no other usable one is left.
func (l *Live) keepOneTracker() {
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
