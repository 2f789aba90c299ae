package core

import (
	"fmt"
	"slices"
	"time"

	"github.com/quernmr/quern/wire"
)

// A failure counts against a tracker when the same task then succeeds on another
// one. A tracker with maxBlame of these within blameWindow, and with more than
// twice what the others have on average, is given no work for exclusion: a job
// that fails at random everywhere excludes nobody. At least half of the trackers
// always remain, and never is the last usable one left out.
const (
	maxBlame    = 3
	blameWindow = 10 * time.Minute
	exclusion   = 10 * time.Minute
)

// redeem has a task's failures count against the trackers on which it failed, now
// that it has succeeded on t.
func (l *Live) redeem(j *job, tk *task, t *tracker) {
	m := j.bad[tk]
	if m == nil {
		return
	}
	failedOn := m.failedOn
	m.failedOn = nil
	for _, name := range failedOn {
		if bad := l.trackers[name]; bad != nil && bad != t {
			bad.blame = append(bad.blame, l.now)
			l.judgeTracker(bad, j.idOf(tk))
		}
	}
}

// blamed is how many failures count against a tracker now.
func (t *tracker) blamed(now time.Duration) int {
	t.blame = slices.DeleteFunc(t.blame, func(at time.Duration) bool { return now-at > blameWindow })
	return len(t.blame)
}

// judgeTracker has a tracker excluded that is much worse than the others.
func (l *Live) judgeTracker(t *tracker, last wire.TaskID) {
	blame := t.blamed(l.now)
	if blame < maxBlame || t.losing || t.Excluded != "" {
		return
	}
	var fit, others, out int
	for _, o := range l.byIndex {
		switch {
		case o == nil || o == t:
		case o.shut() || l.c.pending.has(l.exclusion(o, "")):
			out++
		default:
			others += o.blamed(l.now)
			if o.usable() && o.slots != [2]int{} {
				fit++
			}
		}
	}
	if fit == 0 || 2*(out+1) > len(l.trackers) || blame*fit <= 2*others {
		return
	}
	l.propose(l.exclusion(t, fmt.Sprintf("%d attempts failed there within %v whose tasks then succeeded on other trackers, the last of %v",
		blame, blameWindow, last)))
}

func (l *Live) exclusion(t *tracker, reason string) *excluded {
	return &excluded{
		Tracker: t.Name, Incarnation: t.Incarnation, Reason: reason, Until: l.wall() + exclusion.Milliseconds(),
	}
}

// excluded follows a fact that excludes a tracker or readmits it.
func (l *Live) excluded(name string, fitted bool) {
	t := l.trackers[name]
	if t == nil || !fitted {
		return
	}
	t.blame, t.excluded = nil, t.Excluded != ""
	l.refresh(t)
	for p := range l.phases {
		l.phases[p].completed(l.now)
	}
	l.readmits = l.now
	l.needTracker()
	l.touchAll()
}

// checkExclusions proposes the end of those exclusions that are due.
func (l *Live) checkExclusions() {
	if l.now < l.readmits {
		return
	}
	l.readmits = never
	for _, t := range l.byIndex {
		if t == nil || t.Excluded == "" {
			continue
		}
		// Wall time stands still in the log; a clock that jumps ends it at the latest as if it began now.
		left := min(time.Duration(t.Until-l.wall())*time.Millisecond, exclusion)
		if left <= 0 {
			l.readmit(t)
			continue
		}
		l.readmits = min(l.readmits, l.now+left)
	}
}

func (l *Live) readmit(t *tracker) {
	l.propose(&readmitted{Tracker: t.Name, Incarnation: t.Incarnation})
}

// needTracker readmits all trackers when no other is left.
func (l *Live) needTracker() {
	if slices.ContainsFunc(l.byIndex, func(t *tracker) bool {
		return t != nil && !t.losing && !t.shut() && t.slots != [2]int{}
	}) {
		return
	}
	for _, t := range l.byIndex {
		if t != nil && t.Excluded != "" {
			l.readmit(t)
		}
	}
}
