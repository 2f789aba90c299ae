package core

import (
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
	bound        map[Stream]*tracker // by the stream on which the leader welcomed them
	trackers     map[string]*tracker
	byIndex      []*tracker        // trackers by index; nil where an index is free
	slots        [2]int            // of trackers that take work, or will after their inventories
	outOfService taskset.Set       // indexes of trackers for which outOfService holds
	draining     taskset.Set       // indexes of draining trackers
	numbers      map[string]int32  // by tracker name
	byNumber     []trackerName     // the last tracker of each name
	losses       health.Losses     // recent losses of trackers
	topo         locality.Topology // racks from configuration and from the splits read so far
}

func newTrackerFleet() trackerFleet {
	return trackerFleet{
		unwelcomed: make(handshake.Streams), bound: make(map[Stream]*tracker),
		trackers: make(map[string]*tracker), numbers: make(map[string]int32),
	}
}

// tracker is a registered task tracker on the leader. The fields that every task's end reads
// come first, so that they share cache lines.
type tracker struct {
	assign        assign.Tracker
	contact       contact
	health        health.Record
	drain         drainProgress
	number        int32      // of its name, see trackerFleet.byNumber
	slots         [2]int     // by phase, as the tracker reported last
	attempts      []*attempt // that run there, in no order
	outputs       []outputAt // maps whose chosen output is or was here
	rack          string     // see locality.Topology
	host          string     // see locality.HostKey
	countedSlots  [2]int     // its slots that trackerFleet.slots includes
	sharesVersion int        // version of Live.shares that it was sent last
	services      serviceLoad
	hosting       hosting

	facts.Tracker // as they were last applied
}

// usable says whether the leader can use the tracker: its inventory is in and its loss is not
// proposed.
func (t *tracker) usable() bool { return t.contact.inventoried && !t.contact.lossProposed }

// takesWork says whether the tracker gets new attempts.
func (t *tracker) takesWork() bool { return t.usable() && !t.outOfService() }

// canBeHome says whether the tracker may be the home of partitions.
func (t *tracker) canBeHome() bool { return !t.outOfService() && t.slots[reducePhase] > 0 }

func (l *Live) addTracker(f facts.Tracker) *tracker {
	t := &tracker{
		Tracker: f, number: l.numberOf(f), host: locality.HostKey(f.Host), slots: [2]int{f.MapSlots, f.ReduceSlots},
		contact: contact{lastHeard: l.now}, health: health.New(f.Excluded != ""), hosting: newHosting(),
	}
	i := l.assign.AddTracker(&t.assign, t, t.host, t.slots)
	if i == len(l.fleet.byIndex) {
		l.fleet.byIndex = append(l.fleet.byIndex, nil)
	}
	l.fleet.byIndex[i] = t
	l.fleet.trackers[f.Name] = t
	d, _ := l.facts.Draining(f.Name)
	t.drain.n = d.N
	l.fleet.draining.Set(t.assign.Index(), t.drain.n != 0)
	l.setRack(t)
	l.due.leases = min(l.due.leases, t.contact.lastHeard+l.c.cfg.Lease)
	l.countSlots(t)
	return t
}

// trackerName is the name and address of a tracker.
type trackerName struct{ Name, Addr string }

// numberOf numbers the names of trackers, so that large tables need not hold strings. A name
// keeps its number for the whole term.
func (l *Live) numberOf(f facts.Tracker) int32 {
	n, known := l.fleet.numbers[f.Name]
	if !known {
		n = int32(len(l.fleet.byNumber))
		l.fleet.numbers[f.Name], l.fleet.byNumber = n, append(l.fleet.byNumber, trackerName{})
	}
	l.fleet.byNumber[n] = trackerName{f.Name, f.Addr}
	return n
}

// countSlots updates trackerFleet.slots.
func (l *Live) countSlots(t *tracker) {
	counted := t.slots
	if t.contact.lossProposed || t.outOfService() {
		counted = [2]int{}
	}
	for p := range counted {
		l.fleet.slots[p] += counted[p] - t.countedSlots[p]
	}
	t.countedSlots = counted
}

// refresh updates everything that depends on whether a tracker takes work and on its slots.
func (l *Live) refresh(t *tracker) {
	l.countSlots(t)
	l.assign.SetFit(&t.assign, t.takesWork(), t.slots[mapPhase] > 0)
	l.refreshServing(t)
	l.fleet.outOfService.Set(t.assign.Index(), !t.contact.lossProposed && t.outOfService())
}

// setCapacity records a tracker's slots. Attempts in removed slots run on, unless the tracker
// ends them. A tracker without reduce slots loses its homes.
func (l *Live) setCapacity(t *tracker, slots [2]int, trouble string) {
	t.contact.trouble = wire.Truncate(trouble, wire.MaxTrouble)
	if slots == t.slots {
		return
	}
	for p := range slots {
		slots[p] = max(slots[p], 0)
		l.assign.AddFree(&t.assign, p, slots[p]-t.slots[p])
		l.phases[p].planSoon(l.now)
	}
	noReduceSlots := slots[reducePhase] == 0 && t.slots[reducePhase] > 0
	t.slots = slots
	l.refresh(t)
	for i := 0; noReduceSlots && i < len(l.order); i++ {
		l.rehomeAll(l.order[i], t)
	}
	l.keepOneTracker()
	l.touchAll()
}

// fromTracker handles a message of a tracker.
func (l *Live) fromTracker(id Stream, m wire.Message) {
	t := l.fleet.bound[id]
	switch m := m.(type) {
	case *wire.Hello:
		l.hello(id, m)
		return
	case *wire.NoStaging:
		if v := l.fleet.unwelcomed.NoStaging(id, m.Reason, l.facts.Boot()); v.Do == handshake.Refuse {
			l.refuse(id, v.Reason)
		}
		return
	}
	if t == nil || t.contact.lossProposed {
		return
	}
	t.contact.lastHeard = l.now
	switch m := m.(type) {
	case *wire.Inventory:
		l.inventoryPage(t, m)
	case *wire.Heartbeat:
		if m.Rate > 0 && m.Rate <= maxFetchRate {
			t.hosting.fetchRate = m.Rate
		}
		for i := range m.Attempts {
			l.report(t, &m.Attempts[i])
		}
		l.send(t, &wire.Ack{})
	case *wire.Capacity:
		l.setCapacity(t, [2]int{m.MapSlots, m.ReduceSlots}, m.Reason)
		l.diskDropped(t, m.DisksAbandoned)
	case *wire.Report:
		l.report(t, m)
	case *wire.HomeReport:
		l.homeReport(t, m)
	case *wire.OutputLost:
		l.outputLost(m)
	default:
		l.refuse(id, fmt.Sprintf("a tracker does not send a %T", m))
	}
}
