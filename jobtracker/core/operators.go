package core

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quernmr/quern/jobtracker/core/facts"
	"github.com/quernmr/quern/jobtracker/core/health"
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
		l.copyExclusions(t)
		if excludedBefore && t.Excluded == "" {
			t.health.ExclusionChanged(false, l.now)
		}
		if x, readmitted := x.(*facts.OperatorReadmitted); readmitted && !x.Expired {
			l.forgetTracker(t)
		}
		l.serviceChanged(t)
	}
	l.timers.readmits = l.now
	l.appliedInOrder(excludeKey, x, changed)
}

// copyExclusions copies a tracker's exclusions from Facts, and logs what has changed. A tracker is
// readmitted when nothing excludes it any more.
func (l *leader) copyExclusions(t *tracker) {
	byLeader, byOperator := t.Excluded != "", t.operator.N
	t.Tracker, _ = l.facts.Tracker(t.Name)
	t.operator, _ = l.facts.OperatorExclusion(t.Name)
	switch x := &t.operator; {
	case x.N != byOperator && x.N != 0:
		args := []any{"tracker", t.Name, "by", x.By, "why", x.Reason}
		if x.Until != 0 {
			args = append(args, "for", time.Duration(x.Until-x.At)*time.Millisecond)
		}
		l.log("task tracker excluded by an operator", args...)
	case t.Excluded != "" && !byLeader:
		t.excludedSince = l.wall()
		l.warn("task tracker excluded", "tracker", t.Name, "for", health.Remaining(t.Until, l.wall()), "why", t.Excluded)
	case t.Excluded == "" && x.N == 0 && (byLeader || byOperator != 0):
		l.log("task tracker readmitted", "tracker", t.Name)
	}
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
	for _, t := range l.fleet.trackers {
		if t.Excluded != "" {
			all = append(all, wire.ExclusionStatus{Tracker: t.Name, Reason: t.Excluded, Since: t.excludedSince, Until: t.Until, Registered: true})
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
	connected := 0
	for _, t := range l.fleet.byIndex {
		switch {
		case t == nil || !t.usable():
		case !t.withdrawn():
			return "", false
		default:
			connected++
		}
	}
	if connected == 0 {
		return "", false
	}
	var parts []string
	for _, x := range []struct{ why, names string }{
		{"draining", l.drainingNames((*tracker).usable)},
		{"excluded by operators", l.operatorsExclude((*tracker).usable)},
		{"unhealthy", l.unhealthyNames((*tracker).usable)},
	} {
		if x.names != "" {
			parts = append(parts, x.why+": "+x.names)
		}
	}
	return "no connected one takes work (" + strings.Join(parts, "; ") + ")", true
}
