package core

import (
	"slices"
	"time"

	"github.com/quernmr/quern/jobtracker/core/health"
)

// A job does not use trackers where its attempts fail more than elsewhere, see health.OfJob. It is
// banned from them for maps, and its homes move. After an exclusion, from a job or from all, a tracker
// is on probation: it is held, or the job is banned from it, while one attempt runs there.

// countForJob counts a failed attempt against its tracker, for its job alone.
func (l *leader) countForJob(j *job, t *tracker) {
	limits := j.spec.TrackerLimits
	if !j.trackers.FailedOn(t.Name, limits, func() health.JobOthers { return l.othersForJob(j, t) }) {
		return
	}
	until := j.trackers.Exclude(t.Name, l.now)
	l.logJob(j.facts, "job does not use a task tracker", "tracker", t.Name, "for", until-l.now, "why", j.trackers.Why(t.Name, limits))
	l.alarm(j, until)
	l.updateUse(j, t)
	l.touch(j)
}

// othersForJob describes all usable trackers except t, for a comparison with t.
func (l *leader) othersForJob(j *job, t *tracker) (others health.JobOthers) {
	for _, o := range l.fleet.byIndex {
		switch {
		case o == nil || o == t || !o.takesWork() || o.slots == [2]int{}:
		case j.trackers.ExcludedUntil(o.Name) != 0:
			others.Excluded++
		default:
			others.Usable++
			others.Failures += j.trackers.Failures(o.Name)
		}
	}
	return others
}

// uses reports whether a job may have homes on a tracker.
func (j *job) uses(t *tracker) bool {
	return j.trackers.ExcludedUntil(t.Name) == 0 && !j.trackers.OnProbation(t.Name)
}

// updateUse updates whether the job's maps may run on a tracker.
func (l *leader) updateUse(j *job, t *tracker) {
	busy := func(a *attempt) bool { return a.job == j && a.id.Task.Kind.Slotted() }
	l.assign.SetBanned(&j.assign, &t.assign, j.trackers.ExcludedUntil(t.Name) != 0 ||
		j.trackers.OnProbation(t.Name) && slices.ContainsFunc(t.attempts, busy))
}

// updateProbation holds a tracker on probation while an attempt runs there, after one began or ended.
func (l *leader) updateProbation(j *job, t *tracker) {
	if l.fleet.exclusions && t.health.OnProbation() { // mostly none was excluded: then its health is not read
		l.updateHeld(t)
	}
	if !j.trackers.None() && j.trackers.OnProbation(t.Name) { // mostly none: then its name is not read
		l.updateUse(j, t)
	}
}

func (l *leader) updateHeld(t *tracker) {
	l.assign.SetHeld(&t.assign, t.health.OnProbation() &&
		slices.ContainsFunc(t.attempts, func(a *attempt) bool { return a.id.Task.Kind.Slotted() }))
}

// succeededOn counts a succeeded attempt for its tracker.
func (l *leader) succeededOn(a *attempt, launched time.Duration) {
	t := a.tracker
	if !a.job.trackers.None() {
		a.job.trackers.SucceededOn(t.Name)
	}
	if t.health.Succeeded(phaseOf(a.id.Task.Kind), launched) {
		l.updateHeld(t)
		l.serviceChanged(t)
	}
}

// reviewTrackers ends the exclusions from a job that are over. If too many trackers are excluded, all
// exclusions from the job end. It moves the job's homes away from the others.
func (l *leader) reviewTrackers(j *job) {
	for _, name := range j.trackers.EndDue(l.now) {
		if t := l.fleet.trackers[name]; t != nil {
			l.updateUse(j, t)
		}
	}
	names := j.trackers.Excluded()
	if len(names) == 0 {
		return
	}
	if !l.enoughForJob(j, names) {
		l.logJob(j.facts, "job uses all task trackers again", "trackers", names)
		for _, name := range names {
			j.trackers.Forget(name)
			if t := l.fleet.trackers[name]; t != nil {
				l.updateUse(j, t)
			}
		}
		return
	}
	for _, name := range names {
		if t := l.fleet.trackers[name]; t != nil {
			l.moveIdleHomes(j, t)
		}
	}
}

// enoughForJob reports whether enough trackers remain for a job without the named ones, for each phase.
// The cost must not depend on the number of trackers: advance calls it.
func (l *leader) enoughForJob(j *job, without []string) bool {
	excluded := 0
	var lacks [2]bool
	for _, name := range without {
		if t := l.fleet.trackers[name]; t != nil && t.services.preferred {
			excluded++
			for phase := range lacks {
				lacks[phase] = lacks[phase] || t.slots[phase] > 0
			}
		}
	}
	if excluded > 0 && !j.spec.TrackerLimits.Allow(excluded, l.services.preferred) {
		return false
	}
	for phase := range lacks {
		others := func(t *tracker) bool {
			return t != nil && t.services.preferred && t.slots[phase] > 0 && j.trackers.ExcludedUntil(t.Name) == 0
		}
		if lacks[phase] && !slices.ContainsFunc(l.fleet.byIndex, others) { // the first ones are usually such
			return false
		}
	}
	return true
}

// forgetTracker makes all jobs use a tracker again, which was repaired.
func (l *leader) forgetTracker(t *tracker) {
	t.health.EndProbation()
	l.updateHeld(t)
	for _, j := range l.order {
		if !j.trackers.None() {
			j.trackers.Forget(t.Name)
			l.updateUse(j, t)
		}
	}
	l.touchAll()
}

// failedOnProbation excludes a tracker on probation, after a failure there. The failure does not count
// if the task has failed elsewhere too.
func (l *leader) failedOnProbation(a *attempt, launched time.Duration) bool {
	t := a.tracker
	if !t.health.OnProbation() || !t.health.FailsProbation(launched, l.otherTrackers(t)) || a.job.faults.FailedElsewhere(a.task.key(), t.Name) {
		return false
	}
	l.exclude(t, "after an exclusion it was tried again, and "+a.id.Task.String()+" failed there")
	l.assign.SetHeld(&t.assign, true) // until the log has the exclusion
	return true
}

// keepPhases ends the probation of trackers if no others in service have slots of a phase: only one
// task at a time would run.
func (l *leader) keepPhases() {
	for phase := range l.phases {
		inService := func(t *tracker, probation bool) bool {
			return t != nil && !t.contact.lossProposed && !t.outOfService() && t.slots[phase] > 0 && t.health.OnProbation() == probation
		}
		if slices.ContainsFunc(l.fleet.byIndex, func(t *tracker) bool { return inService(t, false) }) {
			continue
		}
		for _, t := range l.fleet.byIndex {
			if inService(t, true) {
				t.health.EndProbation()
				l.updateHeld(t)
				l.touchAll()
			}
		}
	}
}
