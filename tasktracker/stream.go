package tasktracker

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/tasktracker/core"
	"github.com/quernmr/quern/wire"
)

// Pauses between two dials: doubled each time, with jitter, and short again after a stream
// on which this tracker was registered. Assignments wait for this when the leader dies.
// After a refusal that only an administrator can fix, the pause is longer.
const (
	minDialPause    = 50 * time.Millisecond
	maxDialPause    = 250 * time.Millisecond
	needsAdminPause = 2 * time.Second
)

// dialWait is the timeout of a dial.
const dialWait = 2 * time.Second

// streamQueue bounds the messages that wait to be sent to the job tracker.
const streamQueue = 1 << 16

// stream is one connection to a job tracker.
type stream struct {
	conn  *wire.Conn
	queue *wire.Queue[wire.Message]
}

// link is the state of streams to job trackers. The loop's goroutine owns it.
type link struct {
	stream        *stream         // nil: none
	registered    *stream         // the last one with a Welcome
	hangupReasons map[string]bool // logged reasons of ended streams, since the last Welcome
	nonce         struct {
		busy bool            // it is being read
		next *core.ReadNonce // to read after that; nil: none
	}
}

// send queues a message. If the queue is full, the stream is closed; the next one starts
// with an inventory.
func (s *stream) send(m wire.Message) {
	if !s.queue.Put(m) {
		s.conn.Close()
	}
}

// write sends queued messages until the queue is closed and empty.
func (s *stream) write() {
	for m := range s.queue.All() {
		if err := s.conn.Send(m); err != nil {
			s.conn.Close() // this ends the reader
			return
		}
	}
}

// A tracker without a job tracker logs this after noLeaderAfter, when a restart or an
// election should be over, and then every noLeaderAgain.
const (
	noLeaderAfter  = 5 * time.Second
	noLeaderRepeat = time.Minute
)

// connect keeps a stream open until the context ends.
func (l *loop) connect(dial Dial) {
	wait, leader := minDialPause, ""
	last := time.Now() // last stream, or last log line
	patience := cmp.Or(l.cfg.hooks.noLeaderAfter, noLeaderAfter)
	for l.ctx.Err() == nil {
		ctx, cancel := context.WithTimeout(l.ctx, dialWait)
		conn, err := dial(ctx, leader)
		cancel()
		leader = ""
		most := maxDialPause
		if err != nil {
			if l.ctx.Err() == nil && time.Since(last) >= patience {
				l.cfg.Logger.Warn("no job tracker is found, still looking", "error", err)
				last, patience = time.Now(), noLeaderRepeat
			}
		} else {
			end := l.serveStream(conn)
			last, patience = time.Now(), cmp.Or(l.cfg.hooks.noLeaderAfter, noLeaderAfter)
			leader = end.leader
			if end.registered {
				wait = minDialPause
			}
			if end.nonceRequested && !end.registered {
				most = needsAdminPause
			}
		}
		pause := time.NewTimer(wait/2 + rand.N(wait/2))
		select {
		case <-pause.C:
		case <-l.ctx.Done():
			pause.Stop()
			return
		}
		wait = min(2*wait, most)
	}
}

// streamResult describes an ended stream.
type streamResult struct {
	registered     bool
	nonceRequested bool   // the job tracker asked for the nonce
	leader         string // address of the leader, if the job tracker named it
}

// serveStream serves a stream until it ends.
func (l *loop) serveStream(conn *wire.Conn) (end streamResult) {
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
		switch m := m.(type) {
		case *wire.Welcome:
			end.registered = true
		case *wire.Staging:
			end.nonceRequested = true
		case *wire.Refuse:
			end.leader = m.Leader
		}
		l.post(func() {
			if l.stream == s {
				l.fromLeader(m)
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
	return end
}

func (l *loop) fromLeader(m wire.Message) {
	if w, ok := m.(*wire.Welcome); ok {
		clear(l.hangupReasons)
		l.registered = l.stream
		l.cfg.Logger.Info("registered", "cluster", w.Cluster, "epoch", w.Epoch, "incarnation", w.Incarnation)
	}
	job, _ := jobOf(m)
	had := l.core.HasJob(job)
	l.storeToken(m)
	l.step(core.FromLeader{Message: m})
	switch has := l.core.HasJob(job); {
	case has && !had:
		l.cfg.Logger.Info("job begins here", "job", job)
	case had && !has:
		l.cfg.Logger.Info("job has ended, removing its files", "job", job)
	}
	if m, ok := m.(*wire.DropJob); ok {
		l.jobDropped(m.Job)
	}
}

// maxHangupReasons bounds the reasons that are remembered.
const maxHangupReasons = 100

// hangup closes the stream for the core. The same reason is logged once until a Welcome;
// job trackers that do not lead add other reasons meanwhile.
func (l *loop) hangup(c core.Hangup) {
	level := slog.LevelWarn
	if c.NeedsAdmin {
		level = slog.LevelError
	}
	if l.hangupReasons[c.Reason] {
		level = slog.LevelDebug
	} else if len(l.hangupReasons) >= maxHangupReasons {
		clear(l.hangupReasons)
	}
	l.hangupReasons[c.Reason] = true
	l.cfg.Logger.Log(l.ctx, level, "stream to the job tracker ended", "reason", c.Reason)
	if s := l.stream; s != nil {
		l.stream = nil
		s.conn.Close()
	}
}

// maxNonce bounds the size of the nonce file, which proves a shared staging directory.
const maxNonce = 1 << 10

// requestNonce reads the nonce, one read at a time: if the staging directory hangs, every
// new stream requests it again.
func (l *loop) requestNonce(c core.ReadNonce) {
	l.nonce.next = &c
	l.nextNonce()
}

func (l *loop) nextNonce() {
	c := l.nonce.next
	if c == nil || l.nonce.busy {
		return
	}
	l.nonce.next, l.nonce.busy = nil, true
	l.detached(func() {
		ev := l.readNonce(*c)
		l.post(func() {
			l.nonce.busy = false
			l.step(ev)
			l.nextNonce()
		})
	})
}

func (l *loop) readNonce(c core.ReadNonce) core.NonceRead {
	ev := core.NonceRead{Stream: c.Stream}
	text, err := readFile(l.cfg.FS, c.File, maxNonce)
	if err != nil {
		ev.Error = err.Error()
	}
	ev.Nonce = string(text)
	return ev
}

func readFile(fs dfs.FS, name string, most int64) ([]byte, error) {
	f, err := fs.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, most))
}
