package sim

import (
	"time"

	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/wire"
)

// link is one stream between a task tracker and a job tracker. Messages keep their order in
// each direction, and wait while the direction is cut. A stream that is cut for tcpTimeout
// breaks; each side notices once it is reachable.
type link struct {
	w        *world
	stream   core.Stream
	jt       *jobTracker
	tt       *taskTracker
	jtLife   int // life of the job tracker when the stream opened
	ttLife   int // the same of the task tracker
	up, down direction
	socket   reader
	broken   bool // messages that have not arrived are lost
}

// direction is one direction of a link.
type direction struct {
	lastArrival  time.Duration // arrival of the last message
	queue        []func()
	blockedSince time.Duration // time of the first failed delivery, if isBlocked
	isBlocked    bool
	closed       bool // its sender has closed it
}

// reader is the job tracker's goroutine that reads a stream, and what it has not read yet. It
// reads the next message when the last one has entered the inbox.
type reader struct {
	unread  queue[unread]
	waiting bool // for the inbox
}

// unread is a message, or the end, of a stream that has arrived.
type unread struct {
	do    func(read time.Duration)
	since time.Duration
	bulk  bool // a page of an inventory
}

// tcpTimeout is the time without delivery after which a stream breaks.
const tcpTimeout = 15 * time.Second

// push sends a message in a direction; action runs on arrival.
func (l *link) push(d *direction, from, to string, action func()) {
	if l.broken || d.closed {
		return
	}
	w := l.w
	at := w.now + w.upTo(2*time.Millisecond)
	if w.fault(w.rates.slowNet) {
		at += w.upTo(3 * time.Second)
	}
	d.lastArrival = max(d.lastArrival, at)
	d.queue = append(d.queue, action)
	w.after(d.lastArrival-w.now, func() { l.pump(d, from, to) })
}

// pump delivers the oldest message unless the direction is cut.
func (l *link) pump(d *direction, from, to string) {
	if l.broken || len(d.queue) == 0 {
		return
	}
	w := l.w
	if !w.reaches(from, to) {
		if !d.isBlocked {
			d.isBlocked, d.blockedSince = true, w.now
		}
		if w.now-d.blockedSince > tcpTimeout {
			l.reset(nil)
			return
		}
		w.after(100*time.Millisecond, func() { l.pump(d, from, to) })
		return
	}
	d.isBlocked = false
	action := d.queue[0]
	d.queue = d.queue[1:]
	action()
}

func (l *link) toLeader(m wire.Message) {
	_, bulk := m.(*wire.Inventory)
	l.push(&l.up, l.tt.name, l.jt.name, func() { l.atLeader(bulk, func(read time.Duration) { l.jt.received(l, m, read) }) })
}

func (l *link) toTracker(m wire.Message) {
	l.push(&l.down, l.jt.name, l.tt.name, func() { l.atTracker(func() { l.tt.received(l, m) }) })
}

// atLeader has the job tracker read something.
func (l *link) atLeader(bulk bool, action func(read time.Duration)) {
	if l.jt.life == l.jtLife {
		l.jt.aside(func() {
			l.socket.unread.put(unread{action, l.w.now, bulk})
			l.read()
		})
	}
}

// read reads until the inbox is full, or an inventory waits for its turn.
func (l *link) read() {
	x := &l.socket
	for !x.waiting && x.unread.len() > 0 {
		m, at := x.unread.take(), l.jt.clock()
		x.waiting = true
		if !m.bulk {
			l.post(m, func() { m.do(at) })
			continue
		}
		l.jt.inventories.run(l, func() {
			l.post(m, func() {
				m.do(at)
				l.jt.inventories.done()
			})
		})
	}
}

func (l *link) post(m unread, do func()) {
	l.jt.post(waiting{do: do, since: m.since, entered: func() {
		l.socket.waiting = false
		l.read()
	}})
}

// inventories limits the pages of inventories in an inbox, as in the real job tracker. Links wait in
// order for their turn, and acknowledge meanwhile.
type inventories struct {
	inside  int
	waiting queue[func()]
}

const (
	maxInventories = 4
	ackEvery       = lease / 4
)

func (x *inventories) run(l *link, do func()) {
	if x.inside < maxInventories {
		x.inside++
		do()
		return
	}
	turn := false
	x.waiting.put(func() {
		turn = true
		do()
	})
	var ack func()
	ack = func() {
		if !turn && l.jt.life == l.jtLife && !l.broken {
			l.jt.aside(func() { l.toTracker(&wire.Ack{}) })
			l.w.after(ackEvery, ack)
		}
	}
	l.w.after(ackEvery, ack)
}

func (x *inventories) done() {
	if x.waiting.len() > 0 {
		x.waiting.take()()
		return
	}
	x.inside--
}

func (l *link) endAtLeader() { l.atLeader(false, func(time.Duration) { l.jt.closed(l) }) }

func (l *link) atTracker(action func()) {
	if l.tt.life == l.ttLife {
		l.tt.do(action)
	}
}

// finish closes the sender's direction after its last message; the other side then sees the end
// of the stream.
func (l *link) finish(other node) {
	if other == node(l.tt) {
		l.push(&l.down, l.jt.name, l.tt.name, func() { l.atTracker(func() { l.tt.closed(l) }) })
		l.down.closed = true
		return
	}
	l.push(&l.up, l.tt.name, l.jt.name, l.endAtLeader)
	l.up.closed = true
}

// reset breaks the stream: messages under way are lost. The given side, or both if it is nil,
// is notified once it is reachable.
func (l *link) reset(side node) {
	if l.broken {
		return
	}
	l.broken = true
	if side == nil || side == node(l.jt) {
		l.notify(l.tt.name, l.jt.name, l.endAtLeader)
	}
	if side == nil || side == node(l.tt) {
		l.notify(l.jt.name, l.tt.name, func() { l.atTracker(func() { l.tt.closed(l) }) })
	}
}

// notify tells a side about the break, at the latest after the time of its keep-alives.
func (l *link) notify(from, to string, action func()) {
	w, since := l.w, l.w.now
	var attempt func()
	attempt = func() {
		if w.reaches(from, to) || w.now-since > tcpTimeout {
			action()
			return
		}
		w.after(200*time.Millisecond, attempt)
	}
	w.after(w.upTo(5*time.Millisecond), attempt)
}
