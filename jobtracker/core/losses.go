package core

import (
	"slices"
	"time"

	"github.com/quernmr/quern/jobtracker/core/facts"
	"github.com/quernmr/quern/wire"
)

// checkLeases proposes the loss of trackers that were silent for a lease, by the times at which
// the owner read messages. While the leader is late, a lease is longer by twice the longest wait of
// an event: a message waits once, and the next one of its stream is read after that. So a leader that
// is always late loses dead trackers too. If this process was stopped for long, messages may be
// unread, and trackers get half a lease more.
func (l *leader) checkLeases() {
	now := l.c.readUntil
	if now < l.timers.leases {
		return
	}
	lease, grace := l.c.cfg.Lease, l.c.cfg.Lease/2
	stopped := now-l.timers.leases > grace
	l.timers.leases = never
	if now < l.c.lateUntil {
		lease, stopped, l.timers.leases = lease+2*l.c.latest, false, l.c.lateUntil
	}
	for _, t := range l.fleet.byIndex {
		if t == nil || t.contact.lossProposed {
			continue
		}
		if stopped {
			t.contact.lastHeard = max(t.contact.lastHeard, now-grace)
		}
		expires := t.contact.lastHeard + lease
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
	for _, j := range sortedJobs(t.hosting.homes) {
		l.rehomeAll(j, t)
	}
}

// endIncarnation handles a tracker's loss in the log. It removes the tracker: first its attempts and
// homes, then its map outputs, since their maps rerun if a partition needs them. A drained tracker is
// not reported as lost.
func (l *leader) endIncarnation(t *tracker) {
	x := wire.LostTracker{Tracker: t.Name, Host: t.Host, Addr: t.Addr, Rack: t.rack, Since: l.wall(), Stopped: t.contact.stops}
	for _, a := range t.attempts {
		switch a.id.Task.Kind {
		case wire.Map:
			x.Maps++
		case wire.Reduce:
			x.Reduces++
		}
	}
	silent, drained, event := (l.now - t.contact.lastHeard).Round(time.Millisecond), l.drained(t), "lost"
	if x.Stopped {
		event = "stopped"
	}
	if drained {
		l.log("task tracker has left, as it is drained", "tracker", t.Name, "addr", t.Addr)
	}
	reruns := l.detachCounting(t)
	if drained {
		clear(reruns)
	}
	l.beginDrop(t, event, reruns, func(dropped int) {
		if x.Outputs = dropped; !drained {
			l.fleet.losses.Add(x, l.now)
			l.c.counts.Lost.Add(1)
			l.logLoss(x, silent)
		}
	})
	l.stopExpectingAll(t.Name)
	l.keepOneTracker()
	l.touchAll()
}

func (l *leader) logLoss(x wire.LostTracker, silent time.Duration) {
	args := []any{"tracker", x.Tracker, "addr", x.Addr, "silent", silent, "maps", x.Maps, "reduces", x.Reduces, "outputs", x.Outputs}
	if x.Stopped {
		l.log("task tracker has stopped, and has not returned within a lease", args...)
		return
	}
	l.warn("task tracker lost: nothing was heard of it for a lease", args...)
}
