package core

import (
	"fmt"
	"slices"
	"time"

	"github.com/quernmr/quern/wire"
)

// tracker is a registered task tracker as the leader sees it.
type tracker struct {
	*trackerFacts
	index       int
	stream      Stream // 0: none
	inventoried bool   // its inventory is in, so it may be given work
	taking      bool   // its inventory is being taken in
	fresh       bool   // its incarnation began in this office: it cannot have attempts of ours
	losing      bool   // its loss is proposed
	heard       time.Duration

	free     [2]int // slots, by phase
	attempts map[wire.AttemptID]*attempt
	outputs  map[*job]*taskSet // maps whose chosen output is here
	homes    map[*job]*taskSet // partitions at home here and not committed
	ready    map[*job]*taskSet // of those, partitions that can be reduced now
	offers   int               // members of ready, all jobs
}

// stream is one connection of a tracker.
type stream struct {
	hello   *wire.Hello
	tracker *tracker // nil before it is welcomed
	pages   []*wire.Inventory
}

// usable says whether the tracker can be given work.
func (t *tracker) usable() bool { return t.inventoried && !t.losing }

func (l *Live) addTracker(f *trackerFacts) *tracker {
	t := &tracker{
		trackerFacts: f, heard: l.now,
		free:     [2]int{f.MapSlots, f.ReduceSlots},
		attempts: make(map[wire.AttemptID]*attempt),
		outputs:  make(map[*job]*taskSet), homes: make(map[*job]*taskSet), ready: make(map[*job]*taskSet),
	}
	t.index = slices.Index(l.byIndex, nil)
	if t.index < 0 {
		t.index = len(l.byIndex)
		l.byIndex = append(l.byIndex, nil)
	}
	l.byIndex[t.index] = t
	l.trackers[f.Name] = t
	l.leaseDue = min(l.leaseDue, t.heard+l.c.cfg.Lease)
	return t
}

// refresh keeps the sets of trackers that can take tasks.
func (l *Live) refresh(t *tracker) {
	for p := range l.free {
		l.free[p].Set(t.index, t.usable() && t.free[p] > 0)
	}
	l.offers.Set(t.index, t.offers > 0 && l.free[reducePhase].Has(t.index))
}

func (l *Live) send(t *tracker, m wire.Message) {
	if t.stream != 0 {
		l.c.emit(Send{Stream: t.stream, Message: m})
	}
}

func (l *Live) fromTracker(id Stream, m wire.Message) {
	s := l.streams[id]
	if hello, ok := m.(*wire.Hello); ok {
		if s == nil {
			l.hello(id, hello)
		}
		return
	}
	if s == nil || s.tracker == nil || s.tracker.losing {
		return
	}
	t := s.tracker
	t.heard = l.now
	switch m := m.(type) {
	case *wire.Inventory:
		l.inventoryPage(s, m)
	case *wire.Heartbeat:
		for i := range m.Attempts {
			l.report(t, &m.Attempts[i])
		}
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

// hello opens a stream: the tracker is welcomed at once when this very process is
// registered, else once its registration is in the log.
func (l *Live) hello(id Stream, h *wire.Hello) {
	known := l.trackers[h.Tracker]
	switch {
	case h.Version != wire.Version:
		l.refuse(id, fmt.Sprintf("protocol version %d, this job tracker speaks %d", h.Version, wire.Version))
		return
	case h.Tracker == "" || h.Process == 0 || h.MapSlots < 0 || h.ReduceSlots < 0:
		l.refuse(id, "a tracker needs an id, a process number and slots")
		return
	case known != nil && known.Process != h.Process && known.stream != 0 && l.now-known.heard <= l.c.cfg.Lease:
		l.refuse(id, fmt.Sprintf("tracker id %s is in use by another process", h.Tracker))
		return
	}
	l.streams[id] = &stream{hello: h}
	if known != nil && known.Process == h.Process && !known.losing {
		l.welcome(id, known)
		return
	}
	l.register(h)
}

func (l *Live) register(h *wire.Hello) {
	l.propose(&trackerRegistered{Tracker: trackerFacts{
		Name: h.Tracker, Process: h.Process, Host: h.Host, Addr: h.Addr,
		MapSlots: h.MapSlots, ReduceSlots: h.ReduceSlots,
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
	s := l.streams[id]
	delete(l.streams, id)
	if s != nil && s.tracker != nil && s.tracker.stream == id {
		s.tracker.stream, s.tracker.inventoried = 0, false
		l.refresh(s.tracker)
	}
}

// registered begins an incarnation, after the end of the one before.
func (l *Live) registered(x *trackerRegistered, fitted bool) {
	name := x.Tracker.Name
	if fitted {
		if old := l.trackers[name]; old != nil {
			l.gone(old)
		}
		l.addTracker(l.facts.trackers[name]).fresh = true
	}
	t := l.trackers[name]
	for _, id := range sortedStreams(l.streams) {
		s := l.streams[id]
		if t != nil && s.tracker == nil && s.hello.Tracker == name && s.hello.Process == t.Process {
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
	if t.stream != 0 {
		l.closeStream(t.stream)
	}
	l.streams[id].tracker = t
	t.stream, t.heard = id, l.now
	l.send(t, &wire.Welcome{Epoch: l.epoch, Incarnation: t.Incarnation, Lease: l.c.cfg.Lease})
}

// checkLeases proposes the loss of trackers not heard of for a lease. When the
// owner comes much later than it was asked to, it was stopped, and what trackers
// have said meanwhile may still be on its way: they have half a lease more.
func (l *Live) checkLeases() {
	if l.now < l.leaseDue {
		return
	}
	grace := l.c.cfg.Lease / 2
	stopped := l.now-l.leaseDue > grace
	l.leaseDue = never
	for _, t := range l.byIndex {
		if t == nil || t.losing {
			continue
		}
		if stopped {
			t.heard = max(t.heard, l.now-grace)
		}
		due := t.heard + l.c.cfg.Lease
		if l.now < due {
			l.leaseDue = min(l.leaseDue, due)
			continue
		}
		t.losing = true
		l.refresh(t)
		l.propose(&trackerLost{Tracker: t.Name, Incarnation: t.Incarnation})
	}
}

func (l *Live) lost(x *trackerLost) {
	if t := l.trackers[x.Tracker]; t != nil && t.Incarnation == x.Incarnation {
		l.gone(t)
	}
	// It may have come back while its loss was on the way to the log.
	for _, id := range sortedStreams(l.streams) {
		if s := l.streams[id]; s.tracker == nil && s.hello.Tracker == x.Tracker {
			l.register(s.hello)
		}
	}
}

// gone takes everything back that a lost incarnation had: its attempts, its
// homes, its map outputs, in this order, so that maps run again only if a
// partition still has to be gathered.
func (l *Live) gone(t *tracker) {
	if t.stream != 0 {
		l.closeStream(t.stream)
	}
	t.losing = true
	delete(l.trackers, t.Name)
	l.byIndex[t.index] = nil
	t.free = [2]int{}
	l.refresh(t)
	l.offers.Remove(t.index)
	for _, a := range sortedAttempts(t.attempts) {
		l.vanished(a)
	}
	for _, j := range l.order {
		l.homesGone(j, t)
		l.outputsGone(j, t)
	}
	l.inventoryIn(t.Name)
	l.touchAll()
}
