package core

import (
	"cmp"
	"fmt"

	"github.com/quernmr/quern/jobtracker/core/assign"
	"github.com/quernmr/quern/jobtracker/core/facts"
	"github.com/quernmr/quern/jobtracker/core/handshake"
	"github.com/quernmr/quern/jobtracker/core/health"
	"github.com/quernmr/quern/jobtracker/core/taskset"
	"github.com/quernmr/quern/locality"
	"github.com/quernmr/quern/wire"
)

// trackerFleet is the leader's view of the task trackers.
type trackerFleet struct {
	unwelcomed   handshake.Streams
	byStream     map[Stream]*tracker // welcomed trackers
	trackers     map[string]*tracker // by name
	byIndex      []*tracker          // by tracker.assign.Index; nil where an index is free
	slots        [2]int              // slots by phase, without trackers that are out of service
	outOfService taskset.Set         // indexes of trackers, see tracker.outOfService
	draining     taskset.Set         // indexes of draining trackers
	exclusions   bool                // a tracker was excluded in this term, or before it and still
	numbers      map[string]int32    // see numberOf
	byNumber     []trackerName       // the last tracker with each number
	places       places              // of map outputs
	losses       health.Losses       // recent losses of trackers
	topo         locality.Topology   // racks from configuration and from the splits read so far
	usualRate    measuredRate        // see usualRate
}

func newTrackerFleet() trackerFleet {
	return trackerFleet{
		unwelcomed: make(handshake.Streams), byStream: make(map[Stream]*tracker),
		trackers: make(map[string]*tracker), numbers: make(map[string]int32),
	}
}

// tracker is the leader's state of a registered task tracker. Each end of a task reads the fields up to
// health, in four cache lines.
type tracker struct {
	assign        assign.Tracker
	attempts      []*attempt  // running attempts, in no order
	outputs       []outputRef // chosen map outputs that are or were here
	outputsAdded  int         // how many there were ever
	number        int32       // number of its name, see numberOf
	place         int32       // of its map outputs
	rack          string      // see locality.Topology
	contact       contact
	health        health.Record
	drain         drainProgress
	slots         [2]int // slots by phase that the tracker reported last
	host          string // see locality.HostKey
	countedSlots  [2]int // its part of trackerFleet.slots
	dropsUnread   bool   // dropUnread is under way
	sharesVersion int    // version of leader.shares that was sent to it last
	services      serviceLoad
	hosting       hosting
	operator      facts.OperatorExclusion // by an operator; its N is 0 if there is none
	excludedSince int64                   // Unix milliseconds of the leader's exclusion; 0: by an earlier leader
	faults        wire.TrackerFaults
	machine       *wire.Machine // the last one that it reported; nil: none

	facts.Tracker // copy of its entry in Facts
}

// usable reports whether the leader can use the tracker: it has the tracker's inventory and has
// not proposed its loss.
func (t *tracker) usable() bool { return t.contact.inventoried && !t.contact.lossProposed }

// takesWork reports whether the tracker gets new attempts in slots.
func (t *tracker) takesWork() bool { return t.usable() && !t.outOfService() }

// canBeHome reports whether the tracker may be the home of partitions. One on probation is tried with
// maps, if it has slots for them.
func (t *tracker) canBeHome() bool {
	return !t.outOfService() && t.slots[reducePhase] > 0 && !(t.health.OnProbation() && t.slots[mapPhase] > 0)
}

func (l *leader) addTracker(f facts.Tracker) *tracker {
	t := &tracker{
		Tracker: f, number: l.numberOf(f), place: l.fleet.places.of(f), host: locality.HostKey(f.Host),
		slots:   [2]int{min(f.MapSlots, wire.MaxSlots), min(f.ReduceSlots, wire.MaxSlots)}, // an older build may have logged more
		contact: contact{lastHeard: l.now}, health: health.New(f.Excluded != ""), hosting: newHosting(),
	}
	i := l.assign.AddTracker(&t.assign, t, t.host, t.slots)
	if i == len(l.fleet.byIndex) {
		l.fleet.byIndex = append(l.fleet.byIndex, nil)
	}
	l.fleet.byIndex[i] = t
	l.fleet.trackers[f.Name] = t
	l.fleet.exclusions = l.fleet.exclusions || f.Excluded != ""
	d, _ := l.facts.Draining(f.Name)
	t.drain.n = d.N
	t.operator, _ = l.facts.OperatorExclusion(f.Name)
	l.fleet.draining.Set(t.assign.Index(), t.drain.n != 0)
	l.setRack(t)
	l.timers.leases = min(l.timers.leases, t.contact.lastHeard+l.c.cfg.Lease)
	l.countSlots(t)
	for _, j := range l.order {
		if !j.trackers.None() {
			l.updateUse(j, t)
		}
	}
	return t
}

type trackerName struct{ Name, Addr string }

// numberOf returns the number of a tracker's name, so that large tables need no strings. A name
// keeps its number for the whole term.
func (l *leader) numberOf(f facts.Tracker) int32 {
	n, ok := l.fleet.numbers[f.Name]
	if !ok {
		n = int32(len(l.fleet.byNumber))
		l.fleet.numbers[f.Name], l.fleet.byNumber = n, append(l.fleet.byNumber, trackerName{})
	}
	l.fleet.byNumber[n] = trackerName{f.Name, f.Addr}
	return n
}

// countSlots updates trackerFleet.slots.
func (l *leader) countSlots(t *tracker) {
	counted := t.slots
	if t.contact.lossProposed || t.outOfService() {
		counted = [2]int{}
	}
	for p := range counted {
		l.fleet.slots[p] += counted[p] - t.countedSlots[p]
	}
	t.countedSlots = counted
	l.assign.SetCounted(&t.assign, counted)
}

// refresh updates all state that depends on a tracker's slots and on whether it takes work.
func (l *leader) refresh(t *tracker) {
	l.countSlots(t)
	l.assign.SetTakesWork(&t.assign, t.takesWork(), t.slots[mapPhase] > 0)
	l.refreshServiceRoom(t)
	l.fleet.outOfService.Set(t.assign.Index(), !t.contact.lossProposed && t.outOfService())
}

// serviceChanged acts on a tracker that has left service or is back.
func (l *leader) serviceChanged(t *tracker) {
	l.refresh(t)
	for p := range l.phases {
		l.phases[p].planSoon(l.now)
	}
	l.keepOneTracker()
	l.touchAll()
}

// setHealth records what a tracker's health script says. An unhealthy tracker gets no new attempts.
func (l *leader) setHealth(t *tracker, unhealthy string) {
	changed := (unhealthy != "") != (t.contact.unhealthy != "")
	t.contact.unhealthy = wire.Truncate(unhealthy, wire.MaxTrouble)
	if changed {
		l.serviceChanged(t)
	}
}

// noteMachine keeps what a tracker reports of its machine; nil: nothing new.
func (t *tracker) noteMachine(m *wire.Machine) {
	if m == nil {
		return
	}
	m.Disks = m.Disks[:min(len(m.Disks), wire.MaxDisks)]
	for i := range m.Disks {
		d := &m.Disks[i]
		d.Path, d.Failed = wire.Truncate(d.Path, wire.MaxTrouble), wire.Truncate(d.Failed, wire.MaxTrouble)
	}
	t.machine, t.faults.Fetches = m, m.FailedFetches
}

// setCapacity records a tracker's slots. Attempts in removed slots continue, unless the tracker
// ends them. A tracker without reduce slots loses its homes.
func (l *leader) setCapacity(t *tracker, slots [2]int, trouble string) {
	t.contact.trouble = wire.Truncate(trouble, wire.MaxTrouble)
	if slots == t.slots {
		return
	}
	for p := range slots {
		slots[p] = max(slots[p], 0)
		l.assign.AddFree(&t.assign, p, slots[p]-t.slots[p])
		l.phases[p].planSoon(l.now)
	}
	lostReduceSlots := slots[reducePhase] == 0 && t.slots[reducePhase] > 0
	t.slots = slots
	l.refresh(t)
	if lostReduceSlots {
		for _, j := range sortedJobs(t.hosting.homes) {
			l.rehomeAll(j, t)
		}
	}
	l.keepOneTracker()
	l.touchAll()
}

func (l *leader) fromTracker(ev FromTracker) {
	id, m := ev.Stream, ev.Message
	t := l.fleet.byStream[id]
	switch m := m.(type) {
	case *wire.Hello:
		l.hello(id, m)
		return
	case *wire.NoStaging:
		if v := l.fleet.unwelcomed.NoStaging(id, m.Reason, l.facts.Boot()); v.Action == handshake.Refuse {
			l.refuse(id, v.Reason)
		}
		return
	}
	if t == nil || t.contact.lossProposed {
		return
	}
	t.contact.lastHeard = max(t.contact.lastHeard, min(cmp.Or(ev.ReadAt, l.now), l.now))
	switch m := m.(type) {
	case *wire.Inventory:
		l.inventoryPage(t, m)
	case *wire.Heartbeat:
		if m.Rate > 0 && m.Rate <= maxFetchRate {
			t.hosting.fetchRate = m.Rate
			t.hosting.bestRate = max(t.hosting.bestRate, m.Rate)
		}
		t.hosting.awaited = nil
		if len(m.Awaited) <= wire.MaxAwaitedJobs {
			t.hosting.awaited = m.Awaited
		}
		for i := range m.Attempts {
			l.attemptReport(t, &m.Attempts[i])
		}
		t.noteMachine(m.Machine)
		l.send(t, &wire.Ack{})
	case *wire.Capacity:
		if most := max(m.MapSlots, m.ReduceSlots); most > wire.MaxSlots {
			l.refuse(id, fmt.Sprintf("tracker %s offers %d slots of a kind, at most %d are possible", t.Name, most, wire.MaxSlots))
			return
		}
		l.setCapacity(t, [2]int{m.MapSlots, m.ReduceSlots}, m.Reason)
		l.setHealth(t, m.Unhealthy)
		l.diskDropped(t, m.DisksAbandoned)
		if m.Stops {
			l.log("task tracker stops", "tracker", t.Name, "addr", t.Addr, "attempts", len(t.attempts))
			t.contact.stops = true
			l.closeStream(id) // it gets no more work; if it continues after all, it must register again
		}
	case *wire.Report:
		l.attemptReport(t, m)
	case *wire.HomeReport:
		l.homeReport(t, m)
	case *wire.OutputLost:
		l.outputLost(t, m)
	default:
		l.refuse(id, fmt.Sprintf("a tracker does not send a %T", m))
	}
}
