package core

import (
	"slices"
	"time"

	"github.com/quernmr/quern/jobtracker/core/facts"
	"github.com/quernmr/quern/jobtracker/core/health"
)

// Package health decides when a tracker is excluded and readmitted. What is here finds what
// it compares, proposes what it decides and follows the log.

// suspect counts an attempt that failed after so long, and has its tracker excluded if that
// makes it stand out.
func (l *Live) suspect(a *attempt, took time.Duration) {
	t, phase := a.tracker, phaseOf(a.id.Task.Kind)
	c := t.health.Failed(phase, health.Failure{Task: a.id.Task, Began: a.began, Took: took}, t.slots[phase], l.now)
	if c == nil {
		return
	}
	jobs := c.Jobs(func(n int) bool { return l.jobs[n] != nil })
	if !c.Open(l.others(t)) {
		return
	}
	for n := range jobs {
		l.elsewhere(c, l.jobs[n], phase)
	}
	if why, does := c.StandsOut(); does {
		l.exclude(t, why)
	}
}

// elsewhere adds a job's attempts to a case.
func (l *Live) elsewhere(c *health.Case, j *job, phase int) {
	for p := range j.ended.Latest() {
		if p.Began+p.Took < c.Since() {
			break
		}
		if t := l.fleet.trackers[l.fleet.named[p.Tracker].Name]; t != nil && p.Kind == kindOf(phase) {
			c.Ended(&t.health, p.Began, p.State)
		}
	}
	for a := range j.running(phase) {
		c.Runs(&a.tracker.health, a.began, l.wall())
	}
}

// redeem has a task's failures count against the trackers on which it failed, now
// that it has succeeded on t.
func (l *Live) redeem(j *job, tk *task, t *tracker) {
	for _, f := range j.faults.TakeBlames(tk.key()) {
		bad := l.fleet.trackers[f.Tracker]
		if bad == nil || bad == t || !bad.health.Blame(f.Launched, l.now) {
			continue
		}
		if why, worse := bad.health.MuchWorse(l.others(bad), j.idOf(tk), l.now); worse {
			l.exclude(bad, why)
		}
	}
}

// others is what a tracker is compared with.
func (l *Live) others(t *tracker) (others health.Others) {
	for _, o := range l.fleet.byIndex {
		if o != nil && o != t {
			out := o.shut() || l.c.pending.has(l.exclusion(o, ""))
			others.Add(&o.health, out, o.usable() && o.slots != [2]int{}, l.now)
		}
	}
	return others
}

// exclude proposes to exclude a tracker that is not about to be lost.
func (l *Live) exclude(t *tracker, reason string) {
	if !t.contact.losing {
		l.propose(l.exclusion(t, reason))
	}
}

func (l *Live) exclusion(t *tracker, reason string) *facts.Excluded {
	return &facts.Excluded{
		Tracker: t.Name, Incarnation: t.Incarnation, Reason: reason, Until: l.wall() + t.health.Length().Milliseconds(),
	}
}

// excluded follows a fact that excludes a tracker or readmits it. An exclusion changed nothing
// if it did not fit, or the log has refused it.
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
		l.phases[p].completed(l.now)
	}
	l.due.readmits = l.now
	if readmit {
		l.readmit(t)
	}
	l.needTracker()
	l.touchAll()
}

// leftDisks pardons a tracker that has left a disk alone since it last said how often it has.
func (l *Live) leftDisks(t *tracker, times int) {
	if t.health.LeftDisks(times, l.now) && t.health.Pardon(l.c.pending.has(l.exclusion(t, "")), l.now) {
		l.readmit(t)
	}
}

// checkExclusions proposes the end of those exclusions that are due.
func (l *Live) checkExclusions() {
	if l.now < l.due.readmits {
		return
	}
	l.due.readmits = never
	for _, t := range l.fleet.byIndex {
		if t == nil || t.Excluded == "" {
			continue
		}
		left := health.Left(t.Until, l.wall())
		if left <= 0 {
			l.readmit(t)
			continue
		}
		l.due.readmits = min(l.due.readmits, l.now+left)
	}
}

func (l *Live) readmit(t *tracker) {
	l.propose(&facts.Readmitted{Tracker: t.Name, Incarnation: t.Incarnation})
}

// needTracker readmits all trackers when no other is left.
func (l *Live) needTracker() {
	if slices.ContainsFunc(l.fleet.byIndex, func(t *tracker) bool {
		return t != nil && !t.contact.losing && !t.shut() && t.slots != [2]int{}
	}) {
		return
	}
	for _, t := range l.fleet.byIndex {
		if t != nil && t.Excluded != "" {
			l.readmit(t)
		}
	}
}
