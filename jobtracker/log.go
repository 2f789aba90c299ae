package jobtracker

import (
	"sync"

	"github.com/quernmr/quern/jobtracker/core"
)

// Log is where facts are committed: replicated, or in memory. Its methods are
// called from the goroutine of [Server.Run] and must not block.
type Log interface {
	// Propose asks for an entry to be committed. It comes back as a core.Entry, or,
	// when that is not known in time, as core.Undecided with the key, or, when the log
	// cannot take it, as core.Refused.
	Propose(key string, data []byte)

	// Ready has a value when Take has something.
	Ready() <-chan struct{}

	// Take returns what has happened since the last call, in order: core.Entry for
	// every committed entry, on followers too, core.Elected, core.Deposed,
	// core.Undecided, core.Refused, core.Restored.
	Take() []LogEvent

	// Close ends the log's work. It may wish for a last snapshot: Ready and Take are
	// called until it returns, and nothing after it.
	Close() error
}

// LogEvent is one thing that happened to a log: Event, or a wish for a snapshot.
type LogEvent struct {
	Event core.Event
	// Snapshot, when not nil, is called with the facts as of all entries before.
	Snapshot func(data []byte, err error)
}

// MemoryLog is the log of a job tracker that is alone and forgets: it leads in
// term 1, and what is proposed is committed at once. Entries are still encoded.
type MemoryLog struct {
	ready chan struct{}

	mu    sync.Mutex
	queue []LogEvent
	index uint64
}

// NewMemoryLog makes an empty log that has elected its job tracker.
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

// Close implements [Log].
func (m *MemoryLog) Close() error { return nil }
