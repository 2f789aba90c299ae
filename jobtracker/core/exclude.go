package core

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/quernmr/quern/jobtracker/core/facts"
	"github.com/quernmr/quern/wire"
)

// A failure counts against a tracker when the same task then succeeds on another
// one. A tracker with maxBlame of these within blameWindow, and with more than
// twice what the others have on average, is given no work for exclusion: a job
// that fails at random everywhere excludes nobody. At least half of the trackers
// always remain, and never is the last usable one left out. One that is excluded again
// before anything that was launched since has succeeded stays so for twice as long each time.
//
// A tracker that leaves a disk alone is pardoned: what was launched before may have failed
// for that disk, so it counts no more, and an exclusion ends. This happens once in
// blameWindow: disks that fail again and again are the tracker's fault.
const (
	maxBlame         = 3
	blameWindow      = 10 * time.Minute
	exclusion        = 10 * time.Minute
	longestExclusion = 8 * exclusion
)

// health is what counts against a tracker, and for it.
type health struct {
	excluded  bool            // as facts.Tracker has it
	blame     []time.Duration // see blamed
	streaks   [2]streak       // by phase
	banned    int             // times excluded since it last succeeded in a task with a slot
	switched  time.Duration   // when it was excluded or readmitted last
	pardoned  time.Duration   // when it was last, see leftDisks
	spared    bool            // an exclusion that is not in the log yet is to end at once
	disksLeft int             // how often its process has left a disk alone
}

func newHealth(f facts.Tracker) health {
	return health{excluded: f.Excluded != "", switched: -never, pardoned: -never}
}

// A tracker is suspect that has failed minStreak different tasks of a phase without one
// success between, and more than twice as many as it has slots, so that they were not
// given to it all at once. It stands out, and is excluded at once, when attempts of the
// same jobs that were launched since on trackers that are not suspect have succeeded, or
// have run far longer than its own took to fail, and at most one in survivors has failed.
// Where more than a part of the trackers is suspect it is taken to be the jobs' fault.
const (
	minStreak   = 4
	survivors   = 10 // for each failure
	suspectPart = 4
	judgeGap    = 100 * time.Millisecond // at least, between looks at all attempts of jobs
)

// farLonger is how long an attempt must have run to be told from one that failed after a time.
func farLonger(took time.Duration) time.Duration { return 2*took + time.Second }

// streak is what a tracker has failed in a phase since it last succeeded there.
type streak struct {
	since  int64                // Unix milliseconds when the first of these attempts was launched
	last   time.Duration        // when one failed last
	judged time.Duration        // when standsOut was asked last
	tasks  map[wire.TaskID]bool // as long as the tracker is not suspect
	jobs   map[int]bool         // by their numbers
}

// suspect counts an attempt that took so long and failed, and has its tracker excluded if
// that makes it stand out.
func (l *Live) suspect(a *attempt, took time.Duration) {
	t, phase := a.tracker, phaseOf(a.id.Task.Kind)
	s := &t.health.streaks[phase]
	if t.health.excluded {
		return // it had begun before
	}
	if s.tasks == nil || l.now-s.last > blameWindow {
		l.trust(t, phase)
		*s = streak{since: a.began, judged: l.now - judgeGap, tasks: make(map[wire.TaskID]bool), jobs: make(map[int]bool)}
	}
	s.last, s.jobs[a.job.facts.N()] = l.now, true
	if !l.fleet.suspects[phase].Has(t.assign.Index()) {
		s.tasks[a.id.Task] = true
		if len(s.tasks) < max(minStreak, 2*t.slots[phase]+1) {
			return
		}
		l.fleet.suspects[phase].Add(t.assign.Index())
	}
	if l.now-s.judged >= judgeGap && l.standsOut(t, phase, took) {
		l.exclude(t, fmt.Sprintf("%d or more %ss in a row failed there, the last one %v after its launch, while others of the same jobs ran well on other trackers",
			len(s.tasks), kindOf(phase), took))
	}
}

// trust ends a tracker's streak.
func (l *Live) trust(t *tracker, phase int) {
	if t.health.streaks[phase].tasks != nil {
		t.health.streaks[phase] = streak{}
		l.fleet.suspects[phase].Remove(t.assign.Index())
	}
}

// standsOut says whether the jobs that a tracker fails do well elsewhere.
func (l *Live) standsOut(t *tracker, phase int, took time.Duration) bool {
	s := &t.health.streaks[phase]
	s.judged = l.now
	maps.DeleteFunc(s.jobs, func(n int, _ bool) bool { return l.jobs[n] == nil })
	fit, ok := l.mayExclude(t)
	if !ok || l.fleet.suspects[phase].Len() > max(1, (fit+1)/suspectPart) {
		return false
	}
	well, failed := 0, 0
	for n := range s.jobs {
		w, f := l.elsewhere(l.jobs[n], phase, s.since, farLonger(took))
		well, failed = well+w, failed+f
	}
	return well >= max(survivors*failed, min(maxBlame, fit))
}

// elsewhere counts the attempts of a job that were launched since some time on trackers
// that are not suspect: those that have succeeded or have run so long, and that have failed.
func (l *Live) elsewhere(j *job, phase int, since int64, so time.Duration) (well, failed int) {
	for p := range j.ended.Latest() {
		if p.Began+p.Took < since {
			break
		}
		t := l.fleet.trackers[l.fleet.named[p.Tracker].Name]
		switch {
		case p.Kind != kindOf(phase) || p.Began < since || t == nil || l.fleet.suspects[phase].Has(t.assign.Index()):
		case p.State == wire.AttemptSucceeded:
			well++
		case p.State == wire.AttemptFailed && !t.health.excluded:
			failed++
		}
	}
	for a := range j.running(phase) {
		if a.began >= since && l.wall()-a.began > so.Milliseconds() && !l.fleet.suspects[phase].Has(a.tracker.assign.Index()) {
			well++
		}
	}
	return well, failed
}

// redeem has a task's failures count against the trackers on which it failed, now
// that it has succeeded on t.
func (l *Live) redeem(j *job, tk *task, t *tracker) {
	for _, f := range j.faults.Redeem(tk.key()) {
		if bad := l.fleet.trackers[f.Tracker]; bad != nil && bad != t && f.Launched > bad.health.pardoned {
			bad.health.blame = append(bad.health.blame, l.now)
			l.judgeTracker(bad, j.idOf(tk))
		}
	}
}

// blamed is how many failures count against a tracker now.
func (t *tracker) blamed(now time.Duration) int {
	t.health.blame = slices.DeleteFunc(t.health.blame, func(at time.Duration) bool { return now-at > blameWindow })
	return len(t.health.blame)
}

// judgeTracker has a tracker excluded that is much worse than the others.
func (l *Live) judgeTracker(t *tracker, last wire.TaskID) {
	blame := t.blamed(l.now)
	if blame < maxBlame {
		return
	}
	fit, ok := l.mayExclude(t)
	others := 0
	for _, o := range l.fleet.byIndex {
		if o != nil && o != t && !l.leftOut(o) {
			others += o.blamed(l.now)
		}
	}
	if !ok || blame*fit <= 2*others {
		return
	}
	l.exclude(t, fmt.Sprintf("%d attempts failed there within %v whose tasks then succeeded on other trackers, the last of %v",
		blame, blameWindow, last))
}

// leftOut says whether a tracker is given no work, or is about to be given none.
func (l *Live) leftOut(t *tracker) bool { return t.shut() || l.c.pending.has(l.exclusion(t, "")) }

// mayExclude says whether a tracker may be excluded: at least half of all must remain,
// and one that is fit. fit is how many of the others are.
func (l *Live) mayExclude(t *tracker) (fit int, ok bool) {
	out := 0
	for _, o := range l.fleet.byIndex {
		switch {
		case o == nil || o == t:
		case l.leftOut(o):
			out++
		case o.usable() && o.slots != [2]int{}:
			fit++
		}
	}
	return fit, !t.contact.losing && t.Excluded == "" && fit > 0 && 2*(out+1) <= len(l.fleet.trackers)
}

func (l *Live) exclude(t *tracker, reason string) { l.propose(l.exclusion(t, reason)) }

func (l *Live) exclusion(t *tracker, reason string) *facts.Excluded {
	return &facts.Excluded{
		Tracker: t.Name, Incarnation: t.Incarnation, Reason: reason,
		Until: l.wall() + min(exclusion<<min(t.health.banned, 8), longestExclusion).Milliseconds(),
	}
}

// excluded follows a fact that excludes a tracker or readmits it.
func (l *Live) excluded(name string, fitted bool) {
	t := l.fleet.trackers[name]
	if t == nil {
		return
	}
	spared := t.health.spared
	t.health.spared = false
	if !fitted {
		return
	}
	t.Tracker, _ = l.facts.Tracker(name)
	t.health.excluded = t.Excluded != ""
	if t.health.excluded {
		t.health.banned++
	}
	t.health.switched = l.now
	l.clearRecord(t)
	l.refresh(t)
	for p := range l.phases {
		l.phases[p].completed(l.now)
	}
	l.due.readmits = l.now
	if t.health.excluded && spared {
		l.lift(t)
	}
	l.needTracker()
	l.touchAll()
}

// clearRecord has nothing count against a tracker that has counted so far.
func (l *Live) clearRecord(t *tracker) {
	t.health.blame = nil
	for p := range t.health.streaks {
		l.trust(t, p)
	}
}

// leftDisks pardons a tracker that has left a disk alone since it last said how often it has.
func (l *Live) leftDisks(t *tracker, times int) {
	more := times > t.health.disksLeft
	t.health.disksLeft = max(t.health.disksLeft, times)
	if !more || l.now < t.health.pardoned+blameWindow {
		return
	}
	t.health.pardoned = l.now
	l.clearRecord(t)
	switch {
	case t.Excluded != "":
		l.lift(t)
	case l.c.pending.has(l.exclusion(t, "")):
		t.health.spared = true
	}
}

// lift ends the exclusion of a tracker that is pardoned: the next one is no longer for it.
func (l *Live) lift(t *tracker) {
	t.health.banned = max(0, t.health.banned-1)
	l.readmit(t)
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
		// Wall time stands still in the log; a clock that jumps ends it at the latest as if it began now.
		left := min(time.Duration(t.Until-l.wall())*time.Millisecond, longestExclusion)
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
