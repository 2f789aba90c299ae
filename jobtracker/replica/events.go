package replica

import (
	"sync"

	"github.com/quernmr/quern/jobtracker"
)

// maxEvents limits the entries that wait for Take. Without it, reading a long log from disk could
// fill the memory.
const maxEvents = 1 << 14

// events is the queue of the log's events for Take.
type events struct {
	ready chan struct{} // has a value when list is not empty

	mu      sync.Mutex
	hasRoom sync.Cond // signals that list was taken or closed
	list    []jobtracker.LogEvent
	closed  bool
}

func newEvents() *events {
	e := &events{ready: make(chan struct{}, 1)}
	e.hasRoom.L = &e.mu
	return e
}

// put adds events, even if maxEvents wait already.
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
		e.hasRoom.Wait()
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
	e.hasRoom.Broadcast()
	return list
}

// close makes waiting calls of putWhenRoom return. Later events are dropped.
func (e *events) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	e.hasRoom.Broadcast()
}
