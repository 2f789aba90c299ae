package core

import (
	"fmt"
	"slices"
	"time"

	"github.com/quernmr/quern/jobtracker/core/assign"
	"github.com/quernmr/quern/jobtracker/core/facts"
	"github.com/quernmr/quern/jobtracker/core/taskset"
	"github.com/quernmr/quern/locality"
	"github.com/quernmr/quern/wire"
)

// contact is how far the leader and a tracker have come in speaking to each other.
type contact struct {
	stream      Stream // 0: none
	heard       time.Duration
	inventoried bool              // its inventory is in, so it may be given work
	taking      bool              // its inventory is being taken in
	fresh       bool              // its incarnation began in this office: it cannot have attempts of ours
	losing      bool              // its loss is proposed
	welcomed    bool              // in this office
	pages       []*wire.Inventory // of the one that is coming in
	trouble     string            // what it says is wrong with it
}

// trackerFleet is the task trackers as the leader sees them.
type trackerFleet struct {
	streams  map[Stream]*stream  // that wait to be welcomed
	bound    map[Stream]*tracker // by the streams that are
	trackers map[string]*tracker
	byIndex  []*tracker       // trackers by their index; nil where one is free
	slots    [2]int           // of all trackers that are given work, or will be once their inventories are in
	unfit    taskset.Set      // indexes of trackers that are shut
	draining taskset.Set      // indexes of those that drain
	numbers  map[string]int32 // of trackers' names
	named    []named          // by number, the last tracker of that name
	suspects [2]taskset.Set   // indexes of trackers that fail all they run, by phase
	losses   []loss           // of trackers, oldest first
}

func newTrackerFleet() trackerFleet {
	return trackerFleet{
		streams: make(map[Stream]*stream), bound: make(map[Stream]*tracker),
		trackers: make(map[string]*tracker), numbers: make(map[string]int32),
	}
}

// tracker is a registered task tracker as the leader sees it: parts, of which each has an
// owner among the files of this package. What is looked at whenever a task ends there comes
// first, so that it lies together in memory.
type tracker struct {
	assign   assign.Tracker
	contact  contact
	health   health
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

// stream is one connection of a tracker that is not welcomed yet.
type stream struct {
	hello *wire.Hello
	asked bool // it was sent a Staging
}

// waits says whether a tracker waits there for its registration.
func (s *stream) waits(tracker string) bool {
	return !s.asked && s.hello.Tracker == tracker
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
		contact: contact{heard: l.now}, health: newHealth(f), hosting: newHosting(),
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
// A name keeps its number as long as the office lasts.
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

func (l *Live) send(t *tracker, m wire.Message) {
	if t.contact.stream != 0 {
		l.c.emit(Send{Stream: t.contact.stream, Message: m})
	}
}

func (l *Live) fromTracker(id Stream, m wire.Message) {
	t := l.fleet.bound[id]
	switch m := m.(type) {
	case *wire.Hello:
		l.hello(id, m)
		return
	case *wire.NoStaging:
		if s := l.fleet.streams[id]; s != nil {
			l.notShared(id, s.hello.Tracker, m.Reason)
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

// hello opens a stream, or answers a Staging: the tracker is welcomed at once when
// this very process is registered, else once its registration is in the log.
func (l *Live) hello(id Stream, h *wire.Hello) {
	s := l.fleet.streams[id]
	known := l.fleet.trackers[h.Tracker]
	switch {
	case l.fleet.bound[id] != nil || s != nil && (!s.asked || h.Nonce == ""):
		return // once more
	case h.Version != wire.Version:
		l.refuse(id, fmt.Sprintf("tracker %s speaks protocol version %d, this job tracker %d: one of them is of another build", h.Tracker, h.Version, wire.Version))
		return
	case h.Tracker == "" || h.Process == 0 || h.MapSlots < 0 || h.ReduceSlots < 0:
		l.refuse(id, "a tracker needs an id, a process number and slots")
		return
	case checkHello(h) != nil:
		l.refuse(id, checkHello(h).Error())
		return
	case known != nil && known.Process != h.Process && known.contact.stream != 0 && l.now-known.contact.heard <= l.c.cfg.Lease:
		l.refuse(id, fmt.Sprintf("tracker id %s is in use by another process", h.Tracker))
		return
	}
	if !l.shares(id, h, s != nil) {
		return
	}
	l.fleet.streams[id] = &stream{hello: h}
	if known != nil && known.Process == h.Process && !known.contact.losing {
		l.welcome(id, known)
		return
	}
	l.register(h)
}

// checkHello says why a tracker's names are longer than the log should keep.
func checkHello(h *wire.Hello) error {
	for _, x := range []struct{ what, name string }{{"id", h.Tracker}, {"host", h.Host}, {"address", h.Addr}, {"rack", h.Rack}} {
		if len(x.name) > wire.MaxName {
			return fmt.Errorf("a tracker's %s has %d bytes, at most %d", x.what, len(x.name), wire.MaxName)
		}
	}
	return nil
}

// shares says whether a tracker has proved that it sees the cluster's staging
// directory. If not it is asked to, or refused when it was.
func (l *Live) shares(id Stream, h *wire.Hello, asked bool) bool {
	boot := l.facts.Boot()
	switch {
	case boot.Nonce == "" || h.Nonce == boot.Nonce:
		return true
	case asked:
		l.notShared(id, h.Tracker, "it read another nonce there than the cluster's")
	default:
		l.fleet.streams[id] = &stream{hello: h, asked: true}
		l.c.emit(Send{Stream: id, Message: &wire.Staging{File: nonceFile(boot.Staging, boot.Cluster)}})
	}
	return false
}

// nonceFile is the URL of the file that holds a cluster's nonce.
func nonceFile(staging, cluster string) string {
	return staging + "/" + wire.StagingClusters + "/" + cluster
}

func (l *Live) notShared(id Stream, tracker, reason string) {
	l.refuse(id, fmt.Sprintf("staging directory %s is not shared with tracker %s: %s", l.facts.Boot().Staging, tracker, reason))
}

func (l *Live) register(h *wire.Hello) {
	l.propose(&facts.TrackerRegistered{Tracker: facts.Tracker{
		Name: h.Tracker, Process: h.Process, Host: h.Host, Addr: h.Addr,
		MapSlots: h.MapSlots, ReduceSlots: h.ReduceSlots, Rack: h.Rack,
	}})
}

func (l *Live) refuse(id Stream, reason string) {
	l.c.emit(Send{Stream: id, Message: &wire.Refuse{Reason: reason}})
	l.closeStream(id)
}

func (l *Live) closeStream(id Stream) {
	l.c.emit(CloseStream{Stream: id})
	l.streamClosed(id)
}

func (l *Live) streamClosed(id Stream) {
	t := l.fleet.bound[id]
	delete(l.fleet.streams, id)
	delete(l.fleet.bound, id)
	if t != nil && t.contact.stream == id {
		t.contact.stream, t.contact.inventoried, t.contact.pages = 0, false, nil
		l.refresh(t)
	}
}

// registered begins an incarnation, after the end of the one before.
func (l *Live) registered(x *facts.TrackerRegistered, fitted bool) {
	name := x.Tracker.Name
	if fitted {
		how := "registered"
		if old := l.fleet.trackers[name]; old != nil {
			how = "restarted"
			l.tellJobs(old, how, func() { l.restarted(old) })
		}
		l.back(name)
		l.log("task tracker "+how, "tracker", name, "addr", x.Tracker.Addr, "maps", x.Tracker.MapSlots, "reduces", x.Tracker.ReduceSlots)
		began, _ := l.facts.Tracker(name)
		t := l.addTracker(began)
		t.contact.fresh, t.shares = true, 1
	}
	t := l.fleet.trackers[name]
	for _, id := range sortedStreams(l.fleet.streams) {
		s := l.fleet.streams[id]
		if t != nil && s.waits(name) && s.hello.Process == t.Process {
			l.welcome(id, t)
		}
	}
}

func sortedStreams(streams map[Stream]*stream) []Stream {
	ids := make([]Stream, 0, len(streams))
	for id := range streams {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// welcome binds a stream to its tracker, in place of an earlier stream.
func (l *Live) welcome(id Stream, t *tracker) {
	if t.contact.stream != 0 {
		l.closeStream(t.contact.stream)
	}
	s := l.fleet.streams[id]
	delete(l.fleet.streams, id)
	l.fleet.bound[id] = t
	t.contact.stream, t.contact.heard = id, l.now
	l.capacity(t, [2]int{s.hello.MapSlots, s.hello.ReduceSlots}, "")
	if !t.contact.welcomed {
		t.contact.welcomed, t.health.disksLeft = true, s.hello.DisksLeft // an earlier leader has pardoned these, or the process before
	}
	l.leftDisks(t, s.hello.DisksLeft)
	l.send(t, &wire.Welcome{
		Epoch: l.epoch, Incarnation: t.Incarnation, Lease: l.c.cfg.Lease, Cluster: l.facts.Boot().Cluster,
	})
}

// capacity notes how many slots a tracker has. What runs in slots that are gone
// runs on, unless the tracker ends it. Without reduce slots it has given its homes up.
func (l *Live) capacity(t *tracker, slots [2]int, trouble string) {
	t.contact.trouble = bounded(trouble, maxTrouble)
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

// checkLeases proposes the loss of trackers not heard of for a lease. A lease ends by the
// times when messages were read: however late these are handed in, one that waits keeps
// its tracker. It begins when a message is handed in, before which the next is not read.
// When the owner comes much later than it was asked to, it was stopped, and what trackers
// have said meanwhile may still be on its way: they have half a lease more.
func (l *Live) checkLeases() {
	now := l.c.read
	if now < l.due.leases {
		return
	}
	grace := l.c.cfg.Lease / 2
	stopped := now-l.due.leases > grace
	l.due.leases = never
	for _, t := range l.fleet.byIndex {
		if t == nil || t.contact.losing {
			continue
		}
		if stopped {
			t.contact.heard = max(t.contact.heard, now-grace)
		}
		due := t.contact.heard + l.c.cfg.Lease
		if now < due {
			l.due.leases = min(l.due.leases, due)
			continue
		}
		t.contact.losing = true
		l.refresh(t)
		l.propose(&facts.TrackerLost{Tracker: t.Name, Incarnation: t.Incarnation})
	}
}

func (l *Live) lost(x *facts.TrackerLost) {
	if t := l.fleet.trackers[x.Tracker]; t != nil && t.Incarnation == x.Incarnation {
		l.left(t)
		l.inventoryIn(t.Name)
	}
	// It may have come back while its loss was on the way to the log.
	for _, id := range sortedStreams(l.fleet.streams) {
		if s := l.fleet.streams[id]; s.waits(x.Tracker) {
			l.register(s.hello)
		}
	}
}

// gone takes everything back that a lost incarnation had: its attempts, its
// homes, its map outputs, in this order, so that maps run again only if a
// partition still has to be gathered.
func (l *Live) gone(t *tracker) {
	l.detach(t)
	outputs := l.outputsOn(t)
	for _, j := range l.order {
		l.outputsGone(j, outputs[j.facts.N()])
	}
	l.allExpectedNoMore(t.Name)
	l.needTracker()
	l.touchAll()
}

// detach takes an incarnation's attempts and homes back, and its stream.
func (l *Live) detach(t *tracker) {
	if t.contact.stream != 0 {
		l.closeStream(t.contact.stream)
	}
	t.contact.losing = true
	delete(l.fleet.trackers, t.Name)
	l.fleet.byIndex[t.assign.Index()] = nil
	for p := range t.slots {
		l.assign.AddFree(&t.assign, p, -t.assign.Free(p))
	}
	t.slots = [2]int{}
	l.refresh(t)
	l.fleet.draining.Remove(t.assign.Index())
	for p := range t.health.streaks {
		l.trust(t, p)
	}
	l.assign.DropTracker(&t.assign)
	for _, a := range sortedAttempts(slices.Values(t.attempts)) {
		l.vanished(a)
	}
	for _, j := range l.order {
		j.measures.Lost(t.number)
		l.homesGone(j, t)
	}
}
