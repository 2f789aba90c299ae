package health

import (
	"fmt"
	"slices"
	"time"
)

// OfJob counts the failures of one job's attempts by tracker, and decides which trackers the job does
// not use for a time: those where enough attempts failed, and more than twice as many as on the
// average of the others. So a job that fails everywhere keeps all trackers. The first exclusion from
// the job lasts firstExclusion, each further one twice as long. Then the tracker is on probation: one
// attempt at a time. A success ends the probation, and a failure excludes the tracker again.
//
// The zero value has no failures. It is not replicated: a new leader counts from zero.
type OfJob struct {
	trackers map[string]*use
	excluded int // trackers that are excluded; mostly 0: a job looks at them whenever it advances
}

// use is what a job knows of a tracker where attempts failed.
type use struct {
	failures   int           // since the last exclusion
	exclusions int           // since the last success on probation
	until      time.Duration // end of the exclusion; 0: not excluded
	probation  bool          // the exclusion has ended, and no attempt has succeeded since
}

// JobLimits are the properties of a job about its use of trackers.
type JobLimits struct {
	MaxFailures int // failed attempts on a tracker after which it may be excluded from the job
	MaxPercent  int // of the trackers: if so many were excluded from the job, none is; -1: no limit
}

// Allow reports whether a number of trackers may be excluded from a job, of all usable ones.
func (l JobLimits) Allow(excluded, usable int) bool {
	return excluded < usable && (l.MaxPercent < 0 || 100*excluded/usable < l.MaxPercent)
}

// JobOthers summarizes the usable trackers with which one tracker is compared.
type JobOthers struct {
	Usable   int // not excluded from the job
	Failures int // of the job there
	Excluded int // excluded from the job
}

// FailedOn counts a failed attempt of the job. It reports whether the tracker must be excluded from
// the job. It calls summarize, which is expensive, only if the tracker may be.
func (o *OfJob) FailedOn(tracker string, limits JobLimits, summarize func() JobOthers) (exclude bool) {
	if o.trackers == nil {
		o.trackers = make(map[string]*use)
	}
	u := o.trackers[tracker]
	if u == nil {
		u = new(use)
		o.trackers[tracker] = u
	}
	u.failures++
	if u.until != 0 || !u.probation && u.failures < limits.MaxFailures {
		return false
	}
	others := summarize()
	return limits.Allow(others.Excluded+1, others.Excluded+1+others.Usable) &&
		(u.probation || u.failures*others.Usable > 2*others.Failures)
}

// Excuse takes back a failure on a tracker: the tracker was not at fault. An exclusion stays.
func (o *OfJob) Excuse(tracker string) {
	if u := o.trackers[tracker]; u != nil && u.failures > 0 {
		u.failures--
	}
}

// None reports whether no failure is known.
func (o *OfJob) None() bool { return len(o.trackers) == 0 }

// Failures counts the failures on a tracker since its last exclusion from the job.
func (o *OfJob) Failures(tracker string) int {
	if u := o.trackers[tracker]; u != nil {
		return u.failures
	}
	return 0
}

// SucceededOn ends the probation of a tracker.
func (o *OfJob) SucceededOn(tracker string) {
	if u := o.trackers[tracker]; u != nil && u.probation {
		delete(o.trackers, tracker)
	}
}

// Exclude excludes a tracker from the job, and returns the end of the exclusion.
func (o *OfJob) Exclude(tracker string, now time.Duration) time.Duration {
	u := o.trackers[tracker]
	if u.until == 0 {
		o.excluded++
	}
	u.until = now + min(firstExclusion<<min(u.exclusions, 8), longestExclusion)
	u.exclusions++
	u.probation, u.failures = false, 0
	return u.until
}

// EndDue ends the exclusions that are over, and returns the trackers. They are on probation now.
func (o *OfJob) EndDue(now time.Duration) (ended []string) {
	for _, name := range o.Excluded() {
		if u := o.trackers[name]; u.until <= now {
			u.until, u.probation = 0, true
			o.excluded--
			ended = append(ended, name)
		}
	}
	return ended
}

// Forget forgets the failures on a tracker, and ends its exclusion.
func (o *OfJob) Forget(tracker string) {
	if u := o.trackers[tracker]; u != nil && u.until != 0 {
		o.excluded--
	}
	delete(o.trackers, tracker)
}

// ExcludedUntil returns the end of a tracker's exclusion from the job; 0: it is not excluded.
func (o *OfJob) ExcludedUntil(tracker string) time.Duration {
	if u := o.trackers[tracker]; u != nil {
		return u.until
	}
	return 0
}

// OnProbation reports whether the job may run only one attempt at a time on a tracker.
func (o *OfJob) OnProbation(tracker string) bool {
	u := o.trackers[tracker]
	return u != nil && u.probation
}

// Excluded lists the trackers that are excluded from the job, by name.
func (o *OfJob) Excluded() []string {
	if o.excluded == 0 {
		return nil
	}
	return o.list(func(u *use) bool { return u.until != 0 })
}

// Probation lists the trackers that are on probation, by name.
func (o *OfJob) Probation() []string { return o.list(func(u *use) bool { return u.probation }) }

func (o *OfJob) list(match func(*use) bool) (names []string) {
	for name, u := range o.trackers {
		if match(u) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Why says why the job does not use a tracker.
func (o *OfJob) Why(tracker string, limits JobLimits) string {
	if o.trackers[tracker].exclusions > 1 {
		return "an attempt failed there again when the tracker was tried after an exclusion"
	}
	return fmt.Sprintf("at least %d of its attempts failed there, more than twice as many as on the others", limits.MaxFailures)
}
