package core

import (
	"time"

	"github.com/quernmr/quern/jobtracker/core/assign"
	"github.com/quernmr/quern/jobtracker/core/facts"
	"github.com/quernmr/quern/jobtracker/core/handshake"
	"github.com/quernmr/quern/wire"
)

// A tracker opens a stream and sends Hello. The leader registers the process if it is new, and
// welcomes it; the stream then belongs to the tracker until it ends. Package handshake decides
// about each Hello, and this file carries out the decisions.

// contact is the state of the connection to a tracker.
type contact struct {
	stream           Stream        // 0: none
	lastHeard        time.Duration // when the owner read the last message
	inventoried      bool          // the inventory of this stream is complete
	readingInventory bool          // inventoryPage handles a page now
	newInTerm        bool          // registered in this term, so without attempts of earlier leaders
	lossProposed     bool          // facts.TrackerLost is proposed
	stops            bool          // it has said so, and has opened no stream since
	listed           listed        // by the pages of the inventory so far
	trouble          string        // the problem that the tracker reported
	unhealthy        string        // what its health script says; empty: it is healthy
	notIsolated      string        // as in wire.Hello
	limits           string        // as in wire.Hello
	isolation        string        // as in wire.Hello
}

// hello handles the first message of a stream, or the answer to a Staging.
func (l *leader) hello(id Stream, h *wire.Hello) {
	known := handshake.LeaderView{Boot: l.facts.Boot(), Welcomed: l.fleet.byStream[id] != nil}
	t := l.fleet.trackers[h.Tracker]
	if t != nil {
		known.Tracker = &handshake.Tracker{
			Process: t.Process, LossProposed: t.contact.lossProposed,
			Connected: t.contact.stream != 0 && l.now-t.contact.lastHeard <= l.c.cfg.Lease,
		}
	}
	switch v := l.fleet.unwelcomed.Hello(id, h, known); v.Action {
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

func (l *leader) register(h *wire.Hello) {
	l.propose(&facts.TrackerRegistered{Tracker: facts.Tracker{
		Name: h.Tracker, Process: h.Process, Host: h.Host, Addr: h.Addr,
		MapSlots: h.MapSlots, ReduceSlots: h.ReduceSlots, Rack: h.Rack,
	}})
}

func (l *leader) refuse(id Stream, reason string) {
	l.c.emit(Send{Stream: id, Message: &wire.Refuse{Reason: reason}})
	l.closeStream(id)
}

func (l *leader) closeStream(id Stream) {
	l.c.emit(CloseStream{Stream: id})
	l.streamClosed(id)
}

func (l *leader) streamClosed(id Stream) {
	t := l.fleet.byStream[id]
	delete(l.fleet.unwelcomed, id)
	delete(l.fleet.byStream, id)
	if t != nil && t.contact.stream == id {
		t.contact.stream, t.contact.inventoried, t.contact.listed = 0, false, listed{}
		l.refresh(t)
	}
}

// registered adds a tracker that the log has registered, after it has removed the previous
// incarnation. It welcomes the streams of the new one.
func (l *leader) registered(x *facts.TrackerRegistered, changed bool) {
	name := x.Tracker.Name
	if changed {
		how := "registered"
		if old := l.fleet.trackers[name]; old != nil {
			how = trackerRestarted
			l.restarted(old)
		}
		l.fleet.losses.Remove(name)
		l.log("task tracker "+how, "tracker", name, "addr", x.Tracker.Addr, "maps", x.Tracker.MapSlots, "reduces", x.Tracker.ReduceSlots)
		f, _ := l.facts.Tracker(name)
		t := l.addTracker(f)
		t.contact.newInTerm, t.sharesVersion = true, 1
	}
	t := l.fleet.trackers[name]
	for _, w := range l.fleet.unwelcomed.Waiting(name) {
		if t != nil && w.Hello.Process == t.Process {
			l.welcome(w.Stream, t, w.Hello)
		}
	}
}

// welcome makes a stream the stream of a tracker, and closes the tracker's earlier stream.
func (l *leader) welcome(id Stream, t *tracker, h *wire.Hello) {
	if t.contact.stream != 0 {
		l.closeStream(t.contact.stream)
	}
	delete(l.fleet.unwelcomed, id)
	l.fleet.byStream[id] = t
	t.contact.stream, t.contact.lastHeard, t.contact.stops = id, l.now, false
	l.setCapacity(t, [2]int{h.MapSlots, h.ReduceSlots}, "")
	l.assign.SetOffer(&t.assign, assign.Room{Memory: h.Memory, Cores: h.Cores})
	t.contact.notIsolated = wire.Truncate(h.NotIsolated, wire.MaxTrouble)
	t.contact.limits, t.contact.isolation = wire.Truncate(h.Limits, wire.MaxTrouble), wire.Truncate(h.Isolation, wire.MaxTrouble)
	l.setHealth(t, "") // an unhealthy tracker says so again before its inventory: it gets no work before
	l.diskDropped(t, h.DisksAbandoned)
	l.send(t, &wire.Welcome{
		Epoch: l.epoch, Incarnation: t.Incarnation, Lease: l.c.cfg.Lease, Cluster: l.facts.Boot().Cluster, Leader: l.c.cfg.Addr,
	})
}

func (l *leader) send(t *tracker, m wire.Message) {
	if t.contact.stream != 0 {
		l.c.emit(Send{Stream: t.contact.stream, Message: m})
	}
}
