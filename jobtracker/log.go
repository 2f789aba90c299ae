package jobtracker

import (
	"sync"

	"github.com/quernmr/quern/jobtracker/core"
)

// Log commits facts, replicated or in memory. [Server.Run] calls its methods, which must not block.
type Log interface {
	// Propose proposes an entry. Take then returns a core.Entry if it is committed, core.Undecided
	// if the result is not known in time, or core.Refused.
	Propose(key string, data []byte)

	// Ready has a value when Take has events.
	Ready() <-chan struct{}

	// Take returns the events since the last call, in order: core.Elected, core.Deposed,
	// core.Undecided, core.Refused, core.Restored, and a core.Entry for every committed entry, also
	// on followers.
	Take() []LogEvent

	// Confirm calls answer with the term in which this job tracker leads at a time after the call;
	// 0: it does not lead, or cannot know. The call comes from any goroutine.
	Confirm(answer func(term uint64))

	// Close closes the log. It may request a last snapshot: the server calls Ready and
	// Take until Close returns.
	Close() error
}

// LogEvent is an event of a log, or its request for a snapshot.
type LogEvent struct {
	Event core.Event
	// Snapshot, if not nil, is a request: call it with the facts after all earlier entries.
	Snapshot func(data []byte, err error)
}

// MemoryLog is the log of a single job tracker without stored state. The job tracker leads in term
// 1, and each proposal is committed at once.
type MemoryLog struct {
	ready chan struct{}

	mu    sync.Mutex
	queue []LogEvent
	index uint64
}

// NewMemoryLog makes an empty log. Its first event elects the job tracker.
func NewMemoryLog() *MemoryLog {
	m := &MemoryLog{ready: make(chan struct{}, 1)}
	m.put(core.Elected{Term: 1})
	return m
}

func (m *MemoryLog) put(ev core.Event) {
	m.queue = append(m.queue, LogEvent{Event: ev})
	select {
	case m.ready <- struct{}{}:
	default:
	}
}

// Propose implements [Log].
func (m *MemoryLog) Propose(_ string, data []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.index++
	m.put(core.Entry{Index: m.index, Term: 1, Data: data})
}

// Ready implements [Log].
func (m *MemoryLog) Ready() <-chan struct{} { return m.ready }

// Take implements [Log].
func (m *MemoryLog) Take() []LogEvent {
	m.mu.Lock()
	defer m.mu.Unlock()
	queue := m.queue
	m.queue = nil
	return queue
}

// Confirm implements [Log].
func (m *MemoryLog) Confirm(answer func(term uint64)) { answer(1) }

// Close implements [Log].
func (m *MemoryLog) Close() error { return nil }
