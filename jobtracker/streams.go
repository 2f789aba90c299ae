package jobtracker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/wire"
)

// maxQueue is the maximum number of queued messages for one tracker. It leaves room for the homes
// of a large job, which the leader sets all at once.
const maxQueue = 1 << 16

// welcomeWait limits the time from a tracker's connection to its welcome or refusal. It is longer
// than a tracker waits for anything.
const welcomeWait = time.Minute

// refusedPause is the minimum time until a repeated refusal is logged again.
const refusedPause = time.Minute

// maxRefused is the maximum number of refusals that are remembered to find repetitions.
const maxRefused = 1000

// maxInventories is the maximum number of pages of inventories that wait for the core. After an
// election all trackers send theirs at once.
const maxInventories = 4

// closeWait limits how long a closing stream may send queued messages.
const closeWait = time.Second

// stream is one tracker's connection.
type stream struct {
	id    core.Stream
	conn  *wire.Conn
	queue *wire.Queue[wire.Message]

	welcomed bool // owned by Run's goroutine
}

// errOtherTracker reports a tracker that registers with another name than its certificate has.
var errOtherTracker = errors.New("the tracker's name differs from its certificate")

// Attach serves a task tracker's stream until it ends, and closes conn. It returns nil if one side
// closed the stream, or the error that ended it. If tracker is not empty, it is the name in the
// connection's certificate, and the tracker must register with it.
func (s *Server) Attach(conn *wire.Conn, tracker string) error {
	defer conn.Close()
	st := &stream{conn: conn, queue: wire.NewQueue[wire.Message](maxQueue)}
	defer st.queue.Close()
	opened := make(chan struct{})
	if !s.post(func() {
		s.lastID++
		st.id = s.lastID
		s.streams[st.id] = st
		s.writers.Go(st.write)
		close(opened)
	}) {
		return ErrStopped
	}
	select {
	case <-opened:
	case <-s.done:
		return ErrStopped
	}
	timer := time.AfterFunc(welcomeWait, func() { s.post(func() { s.closeUnwelcomed(st) }) })
	defer timer.Stop()
	for {
		m, err := conn.Receive()
		read := s.now()
		if err != nil {
			s.post(func() { s.streamEnded(st) })
			if errors.Is(err, io.EOF) || st.queue.Closed() {
				return nil
			}
			return err
		}
		if hello, ok := m.(*wire.Hello); ok && tracker != "" && hello.Tracker != tracker {
			s.post(func() { s.streamEnded(st) })
			err := fmt.Errorf("%w: %q, not %q", errOtherTracker, hello.Tracker, tracker)
			return errors.Join(err, conn.Send(&wire.Refuse{Reason: err.Error()}))
		}
		if !s.pass(st, m, read) {
			return nil
		}
	}
}

// pass passes a message to the goroutine of Run. It returns false if Run has ended. Of all streams
// together at most maxInventories pages of inventories are with Run, so that other messages wait
// behind no more. Acks keep a tracker that waits for its turn.
func (s *Server) pass(st *stream, m wire.Message, read time.Duration) bool {
	if _, ok := m.(*wire.Inventory); !ok {
		return s.post(func() { s.received(st, m, read) })
	}
	ack := time.NewTicker(cmp.Or(s.cfg.Lease, 5*time.Second) / 4)
	defer ack.Stop()
	for {
		select {
		case s.inventories <- struct{}{}:
			return s.post(func() {
				defer func() { <-s.inventories }()
				s.received(st, m, read)
			})
		case <-ack.C:
			st.queue.Put(&wire.Ack{})
		case <-s.done:
			return false
		}
	}
}

func (s *Server) received(st *stream, m wire.Message, read time.Duration) {
	if s.streams[st.id] != st {
		return
	}
	if hello, ok := m.(*wire.Hello); ok {
		s.cfg.Logger.Debug("hello", "tracker", hello.Tracker, "stream", st.id)
	}
	s.step(core.FromTracker{Stream: st.id, Message: m, ReadAt: read})
}

func (s *Server) streamEnded(st *stream) {
	if s.streams[st.id] == st {
		delete(s.streams, st.id)
		s.step(core.StreamClosed{Stream: st.id})
	}
}

// closeUnwelcomed closes a stream if its tracker has not registered.
func (s *Server) closeUnwelcomed(st *stream) {
	if s.streams[st.id] == st && !st.welcomed {
		s.cfg.Logger.Warn("closed a stream: its tracker did not register in time", "stream", st.id)
		s.closeStream(st.id)
		s.step(core.StreamClosed{Stream: st.id})
	}
}

// send queues a message. If the queue is full, it closes the tracker's stream.
func (s *Server) send(c core.Send) {
	st := s.streams[c.Stream]
	if st == nil {
		return
	}
	switch m := c.Message.(type) {
	case *wire.Welcome:
		st.welcomed = true
	case *wire.Refuse:
		level := slog.LevelWarn
		if strings.HasPrefix(m.Reason, core.ErrNotLeader.Error()) {
			level = slog.LevelDebug // trackers try all job trackers
		} else if at, ok := s.refused[m.Reason]; ok && s.now()-at < refusedPause {
			level = slog.LevelDebug // trackers retry
		} else {
			if len(s.refused) >= maxRefused {
				clear(s.refused)
			}
			s.refused[m.Reason] = s.now()
		}
		s.cfg.Logger.Log(context.Background(), level, "a tracker is refused", "stream", st.id, "reason", m.Reason)
	}
	if st.queue.Put(c.Message) {
		return
	}
	s.cfg.Logger.Warn("a tracker does not keep up: its stream is closed", "stream", st.id)
	delete(s.streams, st.id)
	st.queue.Close()
	st.conn.Close()
	s.backlog = append(s.backlog, core.StreamClosed{Stream: st.id})
}

// closeStream closes a stream after its queued messages.
func (s *Server) closeStream(id core.Stream) {
	st := s.streams[id]
	if st == nil {
		return
	}
	delete(s.streams, id)
	st.queue.Close()
	time.AfterFunc(closeWait, func() { st.conn.Close() })
}

// write sends queued messages until the queue is closed and empty.
func (st *stream) write() {
	defer st.conn.Close()
	for m := range st.queue.All() {
		if err := st.conn.Send(m); err != nil {
			return // the reader sees the end of the connection too
		}
	}
}
