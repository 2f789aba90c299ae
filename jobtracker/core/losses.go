package core

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quernmr/quern/jobtracker/core/facts"
	"github.com/quernmr/quern/wire"
)

// checkLeases proposes the loss of trackers that were silent for a lease. A lease ends by the
// time when messages were read: one that is handed in late still counts. If this process was
// stopped for long, reports may still be under way, and trackers get half a lease more.
func (l *Live) checkLeases() {
	now := l.c.readUntil
	if now < l.due.leases {
		return
	}
	grace := l.c.cfg.Lease / 2
	stopped := now-l.due.leases > grace
	l.due.leases = never
	for _, t := range l.fleet.byIndex {
		if t == nil || t.contact.lossProposed {
			continue
		}
		if stopped {
			t.contact.lastHeard = max(t.contact.lastHeard, now-grace)
		}
		due := t.contact.lastHeard + l.c.cfg.Lease
		if now < due {
			l.due.leases = min(l.due.leases, due)
			continue
		}
		t.contact.lossProposed = true
		l.refresh(t)
		l.propose(&facts.TrackerLost{Tracker: t.Name, Incarnation: t.Incarnation})
	}
}

func (l *Live) trackerLost(x *facts.TrackerLost) {
	if t := l.fleet.trackers[x.Tracker]; t != nil && t.Incarnation == x.Incarnation {
		l.endIncarnation(t)
		l.inventoryDone(t.Name)
	}
	// It may have reconnected before the loss was in the log.
	for _, w := range l.fleet.unwelcomed.Waiting(x.Tracker) {
		l.register(w.Hello)
	}
}

// dropTracker takes back the attempts, homes and map outputs of an ended incarnation, in this
// order: maps rerun only if a partition still needs them.
func (l *Live) dropTracker(t *tracker) {
	l.detach(t)
	outputs := l.outputsOn(t)
	for _, j := range l.order {
		l.dropOutputs(j, outputs[j.facts.N()])
	}
	l.stopExpectingAll(t.Name)
	l.keepOneTracker()
	l.touchAll()
}

// detach closes an incarnation's stream and takes back its attempts and homes.
func (l *Live) detach(t *tracker) {
	if t.contact.stream != 0 {
		l.closeStream(t.contact.stream)
	}
	t.contact.lossProposed = true
	delete(l.fleet.trackers, t.Name)
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

// endIncarnation handles the end of an incarnation that was lost, or left after its drain.
func (l *Live) endIncarnation(t *tracker) {
	if l.drained(t) {
		l.log("task tracker has left, as it is drained", "tracker", t.Name, "addr", t.Addr)
		l.dropTracker(t)
		return
	}
	x := wire.LostTracker{Tracker: t.Name, Host: t.Host, Addr: t.Addr, Rack: t.rack, Since: l.wall()}
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
	l.warn("task tracker lost: nothing was heard of it for a lease", "tracker", t.Name, "addr", t.Addr,
		"silent", (l.now - t.contact.lastHeard).Round(time.Millisecond), "maps", x.Maps, "reduces", x.Reduces, "outputs", x.Outputs)
	l.reportReruns(t, "lost", func() { l.dropTracker(t) })
}

// reportReruns calls take, which takes back a tracker's attempts, homes and outputs, and adds
// the reruns that follow to each job's troubles.
func (l *Live) reportReruns(t *tracker, became string, take func()) {
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
	take()
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
			j.faults.AddLossTrouble(fmt.Sprintf("tracker %s %s: %s", t.Name, became, strings.Join(parts, ", ")))
		}
	}
}
