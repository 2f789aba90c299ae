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

// trackerFleet is the task trackers as the leader sees them.
type trackerFleet struct {
	unwelcomed handshake.Streams
	bound      map[Stream]*tracker // by the streams on which they were welcomed
	trackers   map[string]*tracker
	byIndex    []*tracker        // trackers by their index; nil where one is free
	slots      [2]int            // of all trackers that are given work, or will be once their inventories are in
	unfit      taskset.Set       // indexes of trackers that are shut
	draining   taskset.Set       // indexes of those that drain
	numbers    map[string]int32  // of trackers' names
	named      []named           // by number, the last tracker of that name
	losses     health.Losses     // of trackers
	topo       locality.Topology // of the splits read so far
}

func newTrackerFleet() trackerFleet {
	return trackerFleet{
		unwelcomed: make(handshake.Streams), bound: make(map[Stream]*tracker),
		trackers: make(map[string]*tracker), numbers: make(map[string]int32),
	}
}

// tracker is a registered task tracker as the leader sees it: parts, of which each has an
// owner among the files of this package. What is looked at whenever a task ends there comes
// first, so that it lies together in memory.
type tracker struct {
	assign   assign.Tracker
	contact  contact
	health   health.Record
	drain    drainProgress
	number   int32      // of its name, see fleet.named
	slots    [2]int     // by phase, as it said last
	attempts []*attempt // that run there, in no order
	outputs  []outputAt // maps whose chosen output is here, or was
	rack     string     // see locality.Topology
	host     string     // see locality.HostKey
	counted  [2]int     // of its slots, in fleet.slots
	shares   int        // version of Live.parts that it was told last
	services servicing
	hosting  hosting

	facts.Tracker // as they were last applied
}

// usable says whether the tracker can be spoken to.
func (t *tracker) usable() bool { return t.contact.inventoried && !t.contact.losing }

// fit says whether it is given work.
func (t *tracker) fit() bool { return t.usable() && !t.shut() }

// mayHome says whether partitions may be at home there.
func (t *tracker) mayHome() bool { return !t.shut() && t.slots[reducePhase] > 0 }

func (l *Live) addTracker(f facts.Tracker) *tracker {
	t := &tracker{
		Tracker: f, number: l.name(f), host: locality.HostKey(f.Host), slots: [2]int{f.MapSlots, f.ReduceSlots},
		contact: contact{heard: l.now}, health: health.New(f.Excluded != ""), hosting: newHosting(),
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
	l.due.leases = min(l.due.leases, t.contact.heard+l.c.cfg.Lease)
	l.countSlots(t)
	return t
}

// named is what is told of a tracker by its number.
type named struct{ Name, Addr string }

// name numbers the names of trackers, so that what there is much of need not hold them.
// A name keeps its number as long as the term lasts.
func (l *Live) name(f facts.Tracker) int32 {
	n, known := l.fleet.numbers[f.Name]
	if !known {
		n = int32(len(l.fleet.named))
		l.fleet.numbers[f.Name], l.fleet.named = n, append(l.fleet.named, named{})
	}
	l.fleet.named[n] = named{f.Name, f.Addr}
	return n
}

// countSlots keeps fleet.slots.
func (l *Live) countSlots(t *tracker) {
	counted := t.slots
	if t.contact.losing || t.shut() {
		counted = [2]int{}
	}
	for p := range counted {
		l.fleet.slots[p] += counted[p] - t.counted[p]
	}
	t.counted = counted
}

// refresh follows whether a tracker is given work, and in how many slots.
func (l *Live) refresh(t *tracker) {
	l.countSlots(t)
	l.assign.SetFit(&t.assign, t.fit(), t.slots[mapPhase] > 0)
	l.refreshServing(t)
	l.fleet.unfit.Set(t.assign.Index(), !t.contact.losing && t.shut())
}

// capacity notes how many slots a tracker has. What runs in slots that are gone
// runs on, unless the tracker ends it. Without reduce slots it has given its homes up.
func (l *Live) capacity(t *tracker, slots [2]int, trouble string) {
	t.contact.trouble = wire.Bounded(trouble, wire.MaxTrouble)
	if slots == t.slots {
		return
	}
	for p := range slots {
		slots[p] = max(slots[p], 0)
		l.assign.AddFree(&t.assign, p, slots[p]-t.slots[p])
		l.phases[p].completed(l.now)
	}
	given := slots[reducePhase] == 0 && t.slots[reducePhase] > 0
	t.slots = slots
	l.refresh(t)
	for i := 0; given && i < len(l.order); i++ {
		l.homesGone(l.order[i], t)
	}
	l.needTracker()
	l.touchAll()
}

// fromTracker takes a message of a tracker in.
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
	if t == nil || t.contact.losing {
		return
	}
	t.contact.heard = l.now
	switch m := m.(type) {
	case *wire.Inventory:
		l.inventoryPage(t, m)
	case *wire.Heartbeat:
		if m.Rate > 0 && m.Rate <= maxRate {
			t.hosting.rate = m.Rate
		}
		for i := range m.Attempts {
			l.report(t, &m.Attempts[i])
		}
		l.send(t, &wire.Ack{})
	case *wire.Capacity:
		l.capacity(t, [2]int{m.MapSlots, m.ReduceSlots}, m.Reason)
		l.leftDisks(t, m.DisksLeft)
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
