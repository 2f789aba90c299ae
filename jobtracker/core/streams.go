package core

import (
	"time"

	"github.com/quernmr/quern/jobtracker/core/facts"
	"github.com/quernmr/quern/jobtracker/core/handshake"
	"github.com/quernmr/quern/wire"
)

// A tracker opens a stream and sends Hello. The leader registers the process if it is new, and
// welcomes it; the stream then belongs to the tracker until it ends. Package handshake decides
// on each Hello, this file carries the decisions out.

// contact is the state of the conversation between the leader and a tracker.
type contact struct {
	stream           Stream // 0: none
	lastHeard        time.Duration
	inventoried      bool              // its inventory is in, so it may get work
	readingInventory bool              // inventoryPage handles its inventory now
	newInTerm        bool              // its incarnation began in this term: it cannot have attempts of earlier leaders
	lossProposed     bool              // its loss is proposed
	pages            []*wire.Inventory // the inventory received so far
	trouble          string            // the problem that it reported
}

// hello handles the first message of a stream, or the answer to a Staging.
func (l *Live) hello(id Stream, h *wire.Hello) {
	known := handshake.Known{Boot: l.facts.Boot(), Welcomed: l.fleet.bound[id] != nil}
	t := l.fleet.trackers[h.Tracker]
	if t != nil {
		known.Tracker = &handshake.Tracker{
			Process: t.Process, Losing: t.contact.lossProposed,
			Heard: t.contact.stream != 0 && l.now-t.contact.lastHeard <= l.c.cfg.Lease,
		}
	}
	switch v := l.fleet.unwelcomed.Hello(id, h, known); v.Do {
	case handshake.Refuse:
		l.refuse(id, v.Reason)
	case handshake.AskProof:
		l.c.emit(Send{Stream: id, Message: &wire.Staging{File: v.File}})
	case handshake.Register:
		l.register(h)
	case handshake.Welcome:
		l.welcome(id, t, h)
	}
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
	delete(l.fleet.unwelcomed, id)
	delete(l.fleet.bound, id)
	if t != nil && t.contact.stream == id {
		t.contact.stream, t.contact.inventoried, t.contact.pages = 0, false, nil
		l.refresh(t)
	}
}

// registered begins an incarnation after it has ended the previous one.
func (l *Live) registered(x *facts.TrackerRegistered, fitted bool) {
	name := x.Tracker.Name
	if fitted {
		how := "registered"
		if old := l.fleet.trackers[name]; old != nil {
			how = "restarted"
			l.reportReruns(old, how, func() { l.restarted(old) })
		}
		l.fleet.losses.Back(name)
		l.log("task tracker "+how, "tracker", name, "addr", x.Tracker.Addr, "maps", x.Tracker.MapSlots, "reduces", x.Tracker.ReduceSlots)
		began, _ := l.facts.Tracker(name)
		t := l.addTracker(began)
		t.contact.newInTerm, t.sharesVersion = true, 1
	}
	t := l.fleet.trackers[name]
	for _, w := range l.fleet.unwelcomed.Waiting(name) {
		if t != nil && w.Hello.Process == t.Process {
			l.welcome(w.Stream, t, w.Hello)
		}
	}
}

// welcome binds a stream to the tracker that said hello on it, and closes the tracker's earlier
// stream.
func (l *Live) welcome(id Stream, t *tracker, h *wire.Hello) {
	if t.contact.stream != 0 {
		l.closeStream(t.contact.stream)
	}
	delete(l.fleet.unwelcomed, id)
	l.fleet.bound[id] = t
	t.contact.stream, t.contact.lastHeard = id, l.now
	l.setCapacity(t, [2]int{h.MapSlots, h.ReduceSlots}, "")
	l.diskDropped(t, h.DisksAbandoned)
	l.send(t, &wire.Welcome{
		Epoch: l.epoch, Incarnation: t.Incarnation, Lease: l.c.cfg.Lease, Cluster: l.facts.Boot().Cluster,
	})
}

func (l *Live) send(t *tracker, m wire.Message) {
	if t.contact.stream != 0 {
		l.c.emit(Send{Stream: t.contact.stream, Message: m})
	}
}
