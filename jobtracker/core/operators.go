package core

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quernmr/quern/jobtracker/core/facts"
	"github.com/quernmr/quern/wire"
)

// Operators exclude trackers and readmit them. Such a tracker gets no new attempts, also no service
// attempts, and its homes move. Unlike a draining one, it continues to serve its map outputs and
// stays. The leader never ends such an exclusion early, even if no other tracker is in service.

// withdrawn reports whether an operator, or the tracker's own health script, keeps it from work. It
// then gets no new attempt of any kind.
func (t *tracker) withdrawn() bool {
	return t.drain.n != 0 || t.operator.N != 0 || t.contact.unhealthy != ""
}

// excludeTracker handles an operator's request to exclude a tracker or to readmit it.
func (l *leader) excludeTracker(r Exclude) {
	if _, excluded := l.facts.OperatorExclusion(r.Tracker); l.fleet.trackers[r.Tracker] == nil && !excluded {
		l.reply(r, fmt.Errorf("%w %q", ErrUnknownTracker, r.Tracker))
		return
	}
	l.proposeInOrder(excludeKey, r)
}

// excludeKey is the key of all requests to exclude or readmit.
const excludeKey = "exclude"

func (l *leader) exclusionFactOf(r Exclude) facts.Fact {
	n := l.facts.OperatorChanges() + 1
	if r.Undo {
		return &facts.OperatorReadmitted{N: n, Tracker: r.Tracker}
	}
	x := facts.OperatorExclusion{N: n, Tracker: r.Tracker, By: r.By, Reason: r.Reason, At: r.Wall}
	if r.For > 0 {
		x.Until = x.At + max(r.For.Milliseconds(), 1)
	}
	return &facts.OperatorExcluded{Exclusion: x}
}

// operatorChanged acts on an exclusion by an operator, or its end.
func (l *leader) operatorChanged(x facts.Fact, tracker string, changed bool) {
	if t := l.fleet.trackers[tracker]; changed && t != nil {
		excludedBefore := t.Excluded != ""
		t.Tracker, _ = l.facts.Tracker(tracker)
		if excludedBefore && t.Excluded == "" {
			l.log("task tracker readmitted", "tracker", tracker)
			t.health.ExclusionChanged(false, l.now)
		}
		if x, readmitted := x.(*facts.OperatorReadmitted); readmitted && !x.Expired {
			l.forgetTracker(t)
		}
		t.operator, _ = l.facts.OperatorExclusion(tracker)
		l.serviceChanged(t)
	}
	l.timers.readmits = l.now
	l.appliedInOrder(excludeKey, x, changed)
}

// checkOperatorExclusions proposes the end of an operator's exclusion that is due. Each change is
// numbered: the next end is proposed when the log has this one.
func (l *leader) checkOperatorExclusions() {
	ends := false
	for _, x := range l.facts.OperatorExclusions() {
		if x.Until == 0 {
			continue
		}
		remaining := time.Duration(x.Until-l.wall()) * time.Millisecond
		switch {
		case remaining > 0:
			l.timers.readmits = min(l.timers.readmits, l.now+remaining)
		case !ends:
			ends = true
			l.propose(&facts.OperatorReadmitted{N: l.facts.OperatorChanges() + 1, Tracker: x.Tracker, Expired: true})
		}
	}
}

// exclusionStatuses lists all exclusions, by tracker.
func (l *leader) exclusionStatuses() []wire.ExclusionStatus {
	var all []wire.ExclusionStatus
	for _, x := range l.facts.OperatorExclusions() {
		t := l.fleet.trackers[x.Tracker]
		all = append(all, wire.ExclusionStatus{
			Tracker: x.Tracker, By: x.By, Reason: x.Reason, Since: x.At, Until: x.Until,
			Operator: true, Registered: t != nil && !t.contact.lossProposed,
		})
	}
	for t := range l.facts.Trackers() {
		if t.Excluded != "" {
			all = append(all, wire.ExclusionStatus{Tracker: t.Name, Reason: t.Excluded, Until: t.Until, Registered: true})
		}
	}
	slices.SortStableFunc(all, func(a, b wire.ExclusionStatus) int { return cmp.Compare(a.Tracker, b.Tracker) })
	return all
}

// unhealthyNames names the unhealthy trackers that match.
func (l *leader) unhealthyNames(match func(*tracker) bool) string {
	return l.trackerNames(func(t *tracker) bool { return t.contact.unhealthy != "" && match(t) })
}

// operatorsExclude names the trackers that operators exclude and that match.
func (l *leader) operatorsExclude(match func(*tracker) bool) string {
	return l.trackerNames(func(t *tracker) bool { return t.operator.N != 0 && match(t) })
}

// trackerNames names the trackers that match, by name.
func (l *leader) trackerNames(match func(*tracker) bool) string {
	var names []string
	for _, t := range l.fleet.byIndex {
		if t != nil && match(t) {
			names = append(names, t.Name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// allWithdrawn says why all connected trackers get no work, if all are withdrawn.
func (l *leader) allWithdrawn() (reason string, all bool) {
	withdrawn, drain := 0, 0
	for _, t := range l.fleet.byIndex {
		switch {
		case t == nil || !t.usable():
		case !t.withdrawn():
			return "", false
		default:
			withdrawn++
			if t.drain.n != 0 {
				drain++
			}
		}
	}
	names := l.trackerNames((*tracker).usable)
	switch {
	case withdrawn == 0:
		return "", false
	case drain == withdrawn:
		return "all connected ones drain: " + names, true
	}
	return "all connected ones drain, are excluded by operators, or are unhealthy: " + names, true
}
