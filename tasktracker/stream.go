package tasktracker

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"time"

	"github.com/quernmr/quern/tasktracker/core"
	"github.com/quernmr/quern/wire"
)

// Waits between two dials: doubled each time, with jitter, and short again after
// a stream on which a job tracker has answered.
const (
	dialLeast = 50 * time.Millisecond
	dialMost  = 2 * time.Second
)

// streamQueue bounds the messages that wait for the job tracker.
const streamQueue = 1 << 16

// stream is one connection to a job tracker.
type stream struct {
	conn  *wire.Conn
	queue *wire.Queue[wire.Message]
}

// send queues a message. A job tracker that does not keep up loses its stream,
// and gets an inventory on the next one.
func (s *stream) send(m wire.Message) {
	if !s.queue.Put(m) {
		s.conn.Close()
	}
}

// write sends what is queued until the queue is closed and empty.
func (s *stream) write() {
	for {
		batch := s.queue.Take()
		if batch == nil {
			return
		}
		for _, m := range batch {
			if err := s.conn.Send(m); err != nil {
				s.conn.Close() // which ends the reader
				return
			}
		}
	}
}

// connect keeps a stream open until the context ends.
func (l *loop) connect(dial Dial) {
	wait := dialLeast
	for {
		conn, err := dial(l.ctx, "")
		if err != nil {
			l.cfg.Logger.Debug("no job tracker", "error", err)
		} else if l.converse(conn) {
			wait = dialLeast
		}
		pause := time.NewTimer(wait/2 + rand.N(wait/2))
		select {
		case <-pause.C:
		case <-l.ctx.Done():
			pause.Stop()
			return
		}
		wait = min(2*wait, dialMost)
	}
}

// converse serves a stream until it ends, and says whether it was welcomed.
func (l *loop) converse(conn *wire.Conn) (welcomed bool) {
	s := &stream{conn: conn, queue: wire.NewQueue[wire.Message](streamQueue)}
	stop := context.AfterFunc(l.ctx, func() { conn.Close() })
	defer stop()
	l.wait.Go(s.write)
	l.post(func() {
		l.stream = s
		l.step(core.StreamUp{})
	})
	for {
		m, err := conn.Receive()
		if err != nil {
			if !errors.Is(err, io.EOF) && l.ctx.Err() == nil {
				l.cfg.Logger.Info("stream to the job tracker ended", "error", err)
			}
			break
		}
		if _, ok := m.(*wire.Welcome); ok {
			welcomed = true
		}
		l.post(func() {
			if l.stream == s {
				l.step(core.FromLeader{Message: m})
			}
		})
	}
	conn.Close()
	s.queue.Close()
	l.post(func() {
		if l.stream == s {
			l.stream = nil
			l.step(core.StreamDown{})
		}
	})
	return welcomed
}

// hangup ends the stream at the core's wish.
func (l *loop) hangup() {
	if s := l.stream; s != nil {
		l.stream = nil
		s.conn.Close()
	}
}
