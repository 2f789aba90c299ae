package core

import (
	"math"
	"time"

	"github.com/quernmr/quern/wire"
)

// A task tracker that has lost the leader dials another job tracker, which may be the next leader. A
// refusal would only make it dial again, and each TLS handshake costs this job tracker processor
// time. So its Hello waits until another term starts, or for holdTime.

// maxHold is the longest time for which a Hello waits. Most elections take a second. It is short for
// the case that this job tracker is cut off from the others, which have a leader.
const maxHold = 2 * time.Second

// forever is later than every hold.
const forever = time.Duration(math.MaxInt64)

// waitingHellos are the Hellos that wait for a leader, by stream.
type waitingHellos struct {
	hellos map[Stream]*wire.Hello
	queue  []hold // the longest wait first, also of closed streams
}

// hold is when a Hello is refused.
type hold struct {
	stream Stream
	until  time.Duration
}

// holdTime is shorter than half a lease, within which a tracker must register with a new leader.
func (c *Core) holdTime() time.Duration { return min(maxHold, c.cfg.Lease/3) }

// holdsHello reports whether a Hello waits: the tracker has lost the last known leader. A job tracker that
// was this leader itself refuses, since others are likelier to lead.
func (c *Core) holdsHello(h *wire.Hello) bool {
	known := c.notLeader().Addr
	return known != "" && h.LostLeader == known
}

// hold makes a Hello wait. A stream has only one.
func (c *Core) hold(id Stream, h *wire.Hello) {
	w := &c.waiting
	if w.hellos[id] != nil {
		return
	}
	if w.hellos == nil {
		w.hellos = make(map[Stream]*wire.Hello)
	}
	w.hellos[id] = h
	w.queue = append(w.queue, hold{id, c.now + c.holdTime()})
}

// close forgets a closed stream.
func (w *waitingHellos) close(id Stream) { delete(w.hellos, id) }

// take takes the Hellos that have waited until a time, in order.
func (w *waitingHellos) take(until time.Duration) (evs []FromTracker) {
	n := 0
	for ; n < len(w.queue) && w.queue[n].until <= until; n++ {
		id := w.queue[n].stream
		if h := w.hellos[id]; h != nil {
			delete(w.hellos, id)
			evs = append(evs, FromTracker{Stream: id, Message: h})
		}
	}
	w.queue = w.queue[n:]
	return evs
}

// next returns when the next Hello is refused.
func (w *waitingHellos) next() (time.Duration, bool) {
	if len(w.queue) == 0 {
		return 0, false
	}
	return w.queue[0].until, true
}

// refuse answers an event for the leader on a job tracker that does not lead.
func (c *Core) refuse(ev Event) {
	switch ev := ev.(type) {
	case request:
		c.emit(Reply{Token: ev.token(), Err: c.notLeader()})
	case FromTracker:
		switch h, ok := ev.Message.(*wire.Hello); {
		case ok && c.holdsHello(h):
			c.hold(ev.Stream, h)
		case ok:
			c.refuseHello(ev.Stream)
		}
	case StreamClosed:
		c.waiting.close(ev.Stream)
	}
}

// refuseHello names the last known leader to a tracker.
func (c *Core) refuseHello(id Stream) {
	hint := c.notLeader()
	c.emit(Send{Stream: id, Message: &wire.Refuse{Reason: hint.Error(), Leader: hint.Addr}})
	c.emit(CloseStream{Stream: id})
}

// refuseWaiting refuses the Hellos that have waited until a time.
func (c *Core) refuseWaiting(until time.Duration) {
	for _, ev := range c.waiting.take(until) {
		c.refuseHello(ev.Stream)
	}
}
