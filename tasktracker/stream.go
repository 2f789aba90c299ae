package tasktracker

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"strings"
	"time"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/sparselog"
	"github.com/quernmr/quern/tasktracker/core"
	"github.com/quernmr/quern/wire"
)

// Pauses between two dials double, with jitter. They stay at electionDialPause for electionDials
// dials, the two seconds of an election, since no task is assigned until this tracker finds the new
// leader. Then they grow: each dial of thousands of trackers costs a job tracker a TLS handshake.
// They begin again when a job tracker names another leader, or welcomes this tracker.
const (
	minDialPause      = 50 * time.Millisecond
	electionDialPause = 250 * time.Millisecond
	electionDials     = 12
	maxDialPause      = 4 * time.Second
)

// dialPause is the next pause, the leader of the last Welcome, or of a later Refuse that named one, and
// the lease of the last Welcome.
type dialPause struct {
	dials  int
	limit  time.Duration
	leader string
	lease  time.Duration
}

// after returns the pause after a dial or stream. It is shorter than half a lease: a new leader treats
// a tracker as lost that does not register within a lease.
func (p *dialPause) after(end streamResult) time.Duration {
	if end.registered {
		*p = dialPause{lease: end.lease, leader: end.leader}
	}
	if end.leader != "" && end.leader != p.leader {
		p.dials, p.limit, p.leader = 0, 0, end.leader
	}
	limit := max(p.limit, minDialPause)
	p.limit = min(2*limit, maxDialPause)
	if p.dials++; p.dials < electionDials {
		p.limit = min(p.limit, electionDialPause)
	}
	if p.lease > 0 {
		p.limit = min(p.limit, p.lease/2)
	}
	return limit/2 + rand.N(limit/2)
}

// dialWait is the timeout of a dial. It is long: a job tracker that works on the handshakes of all
// task trackers would work in vain for those that give up.
const dialWait = 10 * time.Second

// streamQueue bounds the messages that wait to be sent to the job tracker.
const streamQueue = 1 << 16

// stream is one connection to a job tracker.
type stream struct {
	conn  *wire.Conn
	queue *wire.Queue[wire.Message]

	written chan struct{} // closed when nothing more is written
}

// link is the state of streams to job trackers. The loop's goroutine owns it.
type link struct {
	stream        *stream         // nil: none
	registered    *stream         // last stream with a Welcome
	failures      sparselog.Limit // of lines about failed attempts
	hangupReasons map[string]bool // logged reasons of ended streams, since the last Welcome
	nonce         struct {
		busy bool            // a read is running
		next *core.ReadNonce // to read after it; nil: none
	}
}

// send queues a message. If the queue is full, it closes the stream: the next stream begins
// with an inventory, so nothing is lost.
func (s *stream) send(m wire.Message) {
	if !s.queue.Put(m) {
		s.conn.Close()
	}
}

// write sends queued messages until the queue is closed and empty.
func (s *stream) write() {
	defer close(s.written)
	for m := range s.queue.All() {
		if err := s.conn.Send(m); err != nil {
			s.conn.Close() // this ends the reader
			return
		}
	}
}

// A tracker without a job tracker logs a warning after noLeaderAfter, which is longer than
// a restart or an election, and then every noLeaderRepeat.
const (
	noLeaderAfter  = 5 * time.Second
	noLeaderRepeat = time.Minute
)

// connect keeps a stream open until the context ends.
func (l *loop) connect(dial Dial) {
	var pauses dialPause
	leader := ""
	last := time.Now() // end of the last stream, or time of the last warning
	warnAfter := cmp.Or(l.cfg.hooks.noLeaderAfter, noLeaderAfter)
	for l.ctx.Err() == nil {
		ctx, cancel := context.WithTimeout(l.ctx, dialWait)
		conn, err := dial(ctx, leader)
		cancel()
		var end streamResult
		if err != nil {
			if l.ctx.Err() == nil && time.Since(last) >= warnAfter {
				l.cfg.Logger.Warn("no job tracker is found, still looking", "error", err)
				last, warnAfter = time.Now(), noLeaderRepeat
			}
		} else {
			end = l.serveStream(conn, pauses.leader)
			last, warnAfter = time.Now(), cmp.Or(l.cfg.hooks.noLeaderAfter, noLeaderAfter)
		}
		leader = end.leader
		if end.silent {
			leader = ""
		}
		pause := time.NewTimer(pauses.after(end))
		select {
		case <-pause.C:
		case <-l.ctx.Done():
			pause.Stop()
			return
		}
	}
}

// streamResult describes an ended stream.
type streamResult struct {
	registered bool
	lease      time.Duration // of the Welcome
	leader     string        // address of the leader, if the job tracker named it
	silent     bool          // this tracker has closed the stream to a leader
}

// serveStream serves a stream until it ends. The last named leader is lost, unless conn leads to it.
func (l *loop) serveStream(conn *wire.Conn, lostLeader string) (end streamResult) {
	s := &stream{conn: conn, queue: wire.NewQueue[wire.Message](streamQueue), written: make(chan struct{})}
	stop := context.AfterFunc(l.ctx, func() {
		<-l.done // after the farewell
		conn.Close()
	})
	defer stop()
	l.wait.Go(s.write)
	l.post(func() {
		l.stream = s
		l.step(core.StreamUp{LostLeader: lostLeader})
	})
	for {
		m, err := conn.Receive()
		if err != nil {
			end.silent = end.registered && errors.Is(err, net.ErrClosed)
			if !errors.Is(err, io.EOF) && l.ctx.Err() == nil {
				l.cfg.Logger.Info("stream to the job tracker ended", "error", err)
			}
			break
		}
		switch m := m.(type) {
		case *wire.Welcome:
			end.registered, end.lease, end.leader = true, m.Lease, m.Leader
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

// farewellWait limits the time to tell the leader that this tracker stops.
const farewellWait = time.Second

// farewell logs that the tracker stops and what it waits for, and tells the leader. The loop has
// ended.
func (l *loop) farewell() {
	l.cfg.Logger.Info("stopping: attempts get SIGTERM, and SIGKILL after -stop-grace", "attempts", l.core.Active(), "stop-grace", l.cfg.StopGrace)
	s := l.stream
	if s == nil || l.cfg.Embedded {
		return
	}
	l.step(core.Stop{}) // it may close the stream
	s.queue.Close()
	select {
	case <-s.written:
	case <-time.After(farewellWait):
	}
}

func (l *loop) fromLeader(m wire.Message) {
	if w, ok := m.(*wire.Welcome); ok {
		clear(l.hangupReasons)
		l.registered = l.stream
		l.cfg.Logger.Info("registered", "cluster", w.Cluster, "epoch", w.Epoch, "incarnation", w.Incarnation)
	}
	if m, ok := m.(*wire.Launch); ok {
		l.cfg.Logger.Debug("attempt launched here", "attempt", m.Attempt)
	}
	job, _ := jobOf(m)
	hadJob := l.core.HasJob(job)
	l.storeToken(m)
	l.step(core.FromLeader{Message: m})
	switch hasJob := l.core.HasJob(job); {
	case hasJob && !hadJob:
		l.cfg.Logger.Info("job begins here", "job", job)
	case hadJob && !hasJob:
		l.cfg.Logger.Info("job has ended, removing its files", "job", job)
	}
	if m, ok := m.(*wire.DropJob); ok {
		l.jobDropped(m.Job)
	}
}

// logEnd logs the end of an attempt. Of those that have failed, it logs only some a minute.
func (l *loop) logEnd(c core.AttemptEnded) {
	args := []any{"attempt", c.Attempt, "state", c.State, "took", c.Result.Took}
	if c.State == wire.AttemptSucceeded {
		l.cfg.Logger.Debug("attempt ended", args...)
		return
	}
	why, _, _ := strings.Cut(c.Result.Error, "\n")
	args = append(args, "why", why)
	if c.State != wire.AttemptFailed {
		l.cfg.Logger.Debug("attempt ended", args...)
		return
	}
	l.failures.Info(l.cfg.Logger, "attempt failed", args...)
}

// maxHangupReasons bounds the reasons that are remembered.
const maxHangupReasons = 100

// hangup closes the stream. It logs a reason once until the next Welcome, also if other
// job trackers gave other reasons in between.
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

// requestNonce reads the nonce, one read at a time. Otherwise every new stream would start
// another read of a staging directory that hangs.
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

func readFile(fs dfs.FS, name string, limit int64) ([]byte, error) {
	f, err := fs.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, limit))
}
