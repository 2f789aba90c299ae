package core

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quernmr/quern/jobtracker/core/facts"
	"github.com/quernmr/quern/wire"
)

// checkLeases proposes the loss of trackers that were silent for a lease, by the times at which
// the owner read messages. It waits while the leader is late. If this process was stopped for long,
// messages may be unread, and trackers get half a lease more.
func (l *leader) checkLeases() {
	now := l.c.readUntil
	if now < l.timers.leases {
		return
	}
	if now < l.c.lateUntil {
		l.timers.leases = l.c.lateUntil
		return
	}
	grace := l.c.cfg.Lease / 2
	stopped := now-l.timers.leases > grace
	l.timers.leases = never
	for _, t := range l.fleet.byIndex {
		if t == nil || t.contact.lossProposed {
			continue
		}
		if stopped {
			t.contact.lastHeard = max(t.contact.lastHeard, now-grace)
		}
		expires := t.contact.lastHeard + l.c.cfg.Lease
		if now < expires {
			l.timers.leases = min(l.timers.leases, expires)
			continue
		}
		t.contact.lossProposed = true
		l.refresh(t)
		l.propose(&facts.TrackerLost{Tracker: t.Name, Incarnation: t.Incarnation})
	}
}

func (l *leader) trackerLost(x *facts.TrackerLost) {
	if t := l.fleet.trackers[x.Tracker]; t != nil && t.Incarnation == x.Incarnation {
		l.endIncarnation(t)
		l.inventoryDone(t.Name)
	}
	// The tracker may have reconnected before the loss was in the log.
	for _, w := range l.fleet.unwelcomed.Waiting(x.Tracker) {
		l.register(w.Hello)
	}
}

// dropTracker removes a lost or drained tracker: first its attempts and homes, then its map
// outputs. Their maps rerun if a partition needs them, so the homes must be removed before.
func (l *leader) dropTracker(t *tracker) {
	l.detach(t)
	outputs := l.outputsOn(t)
	for _, j := range l.order {
		l.dropOutputs(j, outputs[j.facts.N()])
	}
	l.stopExpectingAll(t.Name)
	l.keepOneTracker()
	l.touchAll()
}

// detach closes a tracker's stream, and removes the tracker with its attempts and homes.
func (l *leader) detach(t *tracker) {
	if t.contact.stream != 0 {
		l.closeStream(t.contact.stream)
	}
	t.contact.lossProposed = true
	delete(l.fleet.trackers, t.Name)
	l.fetches.Forget(t.Name)
	l.fleet.byIndex[t.assign.Index()] = nil
	for p := range t.slots {
		l.assign.AddFree(&t.assign, p, -t.assign.Free(p))
	}
	t.slots = [2]int{}
	l.refresh(t)
	l.fleet.draining.Remove(t.assign.Index())
	l.assign.DropTracker(&t.assign)
	for _, a := range sortedAttempts(slices.Values(t.attempts)) {
		l.attemptLost(a)
	}
	for _, j := range l.order {
		j.measures.TrackerLost(t.number)
		l.rehomeAll(j, t)
	}
}

// endIncarnation handles a tracker's loss in the log. A drained tracker is not reported as lost.
func (l *leader) endIncarnation(t *tracker) {
	if l.drained(t) {
		l.log("task tracker has left, as it is drained", "tracker", t.Name, "addr", t.Addr)
		l.dropTracker(t)
		return
	}
	x := wire.LostTracker{Tracker: t.Name, Host: t.Host, Addr: t.Addr, Rack: t.rack, Since: l.wall(), Stopped: t.contact.stops}
	for _, a := range t.attempts {
		switch a.id.Task.Kind {
		case wire.Map:
			x.Maps++
		case wire.Reduce:
			x.Reduces++
		}
	}
	for n, outputs := range l.outputsOn(t) {
		if l.jobs[n].facts.Running() {
			x.Outputs += len(outputs)
		}
	}
	l.fleet.losses.Add(x, l.now)
	args := []any{"tracker", t.Name, "addr", t.Addr, "silent", (l.now - t.contact.lastHeard).Round(time.Millisecond),
		"maps", x.Maps, "reduces", x.Reduces, "outputs", x.Outputs}
	event := "lost"
	if x.Stopped {
		event = "stopped"
		l.log("task tracker has stopped, and has not returned within a lease", args...)
	} else {
		l.warn("task tracker lost: nothing was heard of it for a lease", args...)
	}
	l.reportReruns(t, event, func() { l.dropTracker(t) })
}

// reportReruns calls remove, which removes a lost or restarted tracker. It adds the reruns that
// follow to the troubles of each job.
func (l *leader) reportReruns(t *tracker, event string, remove func()) {
	before, reduces, homes := make([]int, len(l.order)), make(map[*job]int), make(map[*job]int)
	for i, j := range l.order {
		before[i] = j.assign.Pending()
		if h := t.hosting.homes[j]; h != nil {
			homes[j] = h.Len()
		}
	}
	for _, a := range t.attempts {
		if a.id.Task.Kind == wire.Reduce {
			reduces[a.job]++
		}
	}
	remove()
	for i, j := range l.order {
		var parts []string
		for _, p := range []struct {
			n    int
			what [2]string
		}{
			{j.assign.Pending() - before[i], [2]string{"map reruns", "maps rerun"}},
			{reduces[j], [2]string{"reduce reruns", "reduces rerun"}},
			{homes[j], [2]string{"partition is gathered again", "partitions are gathered again"}},
		} {
			if p.n > 0 {
				parts = append(parts, fmt.Sprintf("%d %s", p.n, p.what[min(p.n-1, 1)]))
			}
		}
		if len(parts) > 0 && j.facts.Running() {
			j.faults.AddLossTrouble(fmt.Sprintf("tracker %s %s: %s", t.Name, event, strings.Join(parts, ", ")))
		}
	}
}
