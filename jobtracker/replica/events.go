package replica

import (
	"sync"

	"github.com/quernmr/quern/jobtracker"
)

// maxEvents bounds the entries that wait for Take: reading a long log from disk could fill the
// memory.
const maxEvents = 1 << 14

// events has the events of the log that were not taken yet, in order.
type events struct {
	ready chan struct{} // has a value when list is not empty

	mu     sync.Mutex
	room   sync.Cond // list was taken, or closed
	list   []jobtracker.LogEvent
	closed bool
}

func newEvents() *events {
	e := &events{ready: make(chan struct{}, 1)}
	e.room.L = &e.mu
	return e
}

// put adds events, without a bound.
func (e *events) put(evs ...jobtracker.LogEvent) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.add(evs)
}

// putWhenRoom adds events once there is room for them.
func (e *events) putWhenRoom(evs []jobtracker.LogEvent) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for len(e.list) >= maxEvents && !e.closed {
		e.room.Wait()
	}
	e.add(evs)
}

func (e *events) add(evs []jobtracker.LogEvent) {
	if e.closed || len(evs) == 0 {
		return
	}
	e.list = append(e.list, evs...)
	select {
	case e.ready <- struct{}{}:
	default:
	}
}

func (e *events) take() []jobtracker.LogEvent {
	e.mu.Lock()
	defer e.mu.Unlock()
	list := e.list
	e.list = nil
	e.room.Broadcast()
	return list
}

// close ends all waits. Later events are dropped.
func (e *events) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	e.room.Broadcast()
}
