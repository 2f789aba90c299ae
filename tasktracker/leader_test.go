package tasktracker

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quernmr/quern/dfs/local"
	"github.com/quernmr/quern/wire"
)

// deadline is much longer than any event that a test waits for.
const deadline = 2 * time.Minute

func jobN(n int) wire.JobID { return wire.JobID{Start: 1, N: n} }

// leader is a job tracker for a tracker under test.
type leader struct {
	t           *testing.T
	tracker     *Tracker
	dir         string // directory of the tracker
	staging     string
	dials       chan *wire.Conn // the leader's ends of the tracker's streams
	conn        *wire.Conn
	received    chan wire.Message // on conn
	hello       *wire.Hello
	addr        string
	stop        func() error // ends the tracker
	ended       func() error // waits for its end
	lastAttempt int

	hints       chan string  // leader argument of each dial
	noAcks      *atomic.Bool // heartbeats are not acknowledged
	incarnation uint64
	lease       time.Duration
}

// startTracker starts a tracker that runs this test's binary, and registers it.
func startTracker(t *testing.T, id, dir string, args ...string) *leader {
	t.Helper()
	l := startUnregistered(t, Config{ID: id, Dir: dir}, args...)
	l.connect(1)
	return l
}

// startUnregistered starts a tracker without a Welcome.
func startUnregistered(t *testing.T, cfg Config, args ...string) *leader {
	t.Helper()
	l := &leader{
		t: t, dir: cfg.Dir, dials: make(chan *wire.Conn, 1), staging: stage(t, args...),
		hints: make(chan string, 1000), noAcks: new(atomic.Bool), incarnation: 9,
		lease: time.Minute, // so that a late heartbeat or Ack ends no stream
	}
	cfg.Embedded = cfg.Staging == "" // for submissions outside a staging directory, without a hash
	ready := make(chan string, 1)
	cfg.Host, cfg.Service.Listen, cfg.MapSlots, cfg.ReduceSlots = "here", "127.0.0.1:0", 2, 2
	if cfg.FS == nil {
		cfg.FS = local.FS{}
	}
	cfg.Ready = func(addr string) { ready <- addr }
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	tracker, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	l.tracker = tracker
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- tracker.Run(ctx, func(ctx context.Context, leaderAddr string) (*wire.Conn, error) {
			l.hints <- leaderAddr
			trackerEnd, leaderEnd := wire.Pipe()
			select {
			case l.dials <- leaderEnd:
				return trackerEnd, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		})
	}()
	l.ended = sync.OnceValue(func() error { return receive(t, ended, "the end of the tracker") })
	l.stop = func() error {
		cancel()
		return l.ended()
	}
	t.Cleanup(func() { l.stop() })
	l.addr = receive(t, ready, "the shuffle service")
	return l
}

// trackerDir returns a directory with a tracker's marker.
func trackerDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, layout.Marker), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// stage stages a submission of this test's binary.
func stage(t *testing.T, args ...string) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return stageProgram(t, "file://"+path, args...)
}

func stageProgram(t *testing.T, path string, args ...string) string {
	t.Helper()
	return stageProgramAs(t, wire.Program{Path: path, Args: args})
}

func stageProgramAs(t *testing.T, program wire.Program) string {
	t.Helper()
	return stageSubmission(t, &wire.Submission{Program: program})
}

func stageSubmission(t *testing.T, sub *wire.Submission) string {
	t.Helper()
	dir := t.TempDir()
	frame, err := wire.Append(nil, sub)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, wire.StagedSubmission), frame, 0o666); err != nil {
		t.Fatal(err)
	}
	return "file://" + dir
}

// digestOf returns the digest of the submission at a staging URL; nil: there is none.
func digestOf(staging string) []byte {
	content, err := os.ReadFile(filepath.Join(strings.TrimPrefix(staging, "file://"), wire.StagedSubmission))
	if err != nil {
		return nil
	}
	return wire.StagedDigest(content)
}

// receive waits for a value, with a deadline.
func receive[T any](t *testing.T, from <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(deadline):
		t.Fatalf("waited too long for %s", what)
	}
	panic("unreachable")
}

// connect accepts the tracker's next stream and registers it.
func (l *leader) connect(epoch uint64) *wire.Inventory {
	l.t.Helper()
	l.accept()
	l.send(&wire.Welcome{Epoch: epoch, Incarnation: l.incarnation, Lease: l.lease, Cluster: "c1"})
	return await[*wire.Inventory](l, nil)
}

// accept accepts the tracker's next stream and reads its hello.
func (l *leader) accept() {
	l.t.Helper()
	l.conn = receive(l.t, l.dials, "a stream")
	l.received = make(chan wire.Message, 1000)
	go func(conn *wire.Conn, received chan<- wire.Message, mute *atomic.Bool) {
		for {
			m, err := conn.Receive()
			if err != nil {
				close(received)
				return
			}
			if _, ok := m.(*wire.Heartbeat); ok && !mute.Load() && conn.Send(&wire.Ack{}) != nil {
				continue // the next Receive returns the error
			}
			received <- m
		}
	}(l.conn, l.received, l.noAcks)
	l.t.Cleanup(func() { l.conn.Close() })
	l.hello = await[*wire.Hello](l, nil)
}

// tokenOf returns the token of a job.
func tokenOf(job wire.JobID) string { return "token of " + job.String() }

func (l *leader) send(m wire.Message) {
	l.t.Helper()
	switch m := m.(type) {
	case *wire.Launch:
		m.Token = cmp.Or(m.Token, tokenOf(m.Attempt.Task.Job))
	case *wire.SetHome:
		m.Token = cmp.Or(m.Token, tokenOf(m.Job))
	}
	if err := l.conn.Send(m); err != nil {
		l.t.Fatal(err)
	}
}

// await waits for a message of type T for which wanted is true; nil: any.
func await[T wire.Message](l *leader, wanted func(T) bool) T {
	l.t.Helper()
	for {
		m, open := <-l.receivedWithin(deadline)
		if !open {
			l.t.Fatalf("the stream ended before a %T came", *new(T))
		}
		if v, ok := m.(T); ok && (wanted == nil || wanted(v)) {
			return v
		}
	}
}

// receivedWithin returns the next message, or a closed channel after the time limit.
func (l *leader) receivedWithin(limit time.Duration) <-chan wire.Message {
	one := make(chan wire.Message, 1)
	defer close(one)
	select {
	case m, open := <-l.received:
		if open {
			one <- m
		}
	case <-time.After(limit):
	}
	return one
}

var job1 = wire.JobID{Start: 1, N: 1}

// launch starts an attempt of job 1 with an action, one of the do constants.
func (l *leader) launch(kind wire.Kind, n, action int) wire.AttemptID {
	l.t.Helper()
	return l.launchAs(wire.TaskID{Job: job1, Kind: kind, N: n}, wire.Launch{Index: action})
}

// launchAs launches an attempt with the settings of m.
func (l *leader) launchAs(task wire.TaskID, m wire.Launch) wire.AttemptID {
	l.t.Helper()
	l.lastAttempt++
	m.Epoch, m.Attempt, m.Staging = 1, wire.AttemptID{Task: task, N: 1000 + l.lastAttempt}, l.staging
	m.Generation = wire.Generation{Epoch: 1, N: 1}
	m.Timeout = cmp.Or(m.Timeout, time.Minute)
	if m.Digest == nil {
		m.Digest = digestOf(l.staging)
	}
	l.send(&m)
	return m.Attempt
}

// final waits for an attempt's final report.
func (l *leader) final(id wire.AttemptID, want wire.AttemptState) *wire.Result {
	l.t.Helper()
	r := await(l, func(r *wire.Report) bool { return r.Attempt == id && r.State.Final() })
	if r.State != want {
		l.t.Fatalf("%v is %v, want %v: %+v", id, r.State, want, r.Result)
	}
	return r.Result
}

// succeed runs an attempt that must succeed.
func (l *leader) succeed(kind wire.Kind, n, action int) *wire.Result {
	l.t.Helper()
	return l.final(l.launch(kind, n, action), wire.AttemptSucceeded)
}

// fail runs an attempt that must fail.
func (l *leader) fail(action int) *wire.Result {
	l.t.Helper()
	return l.final(l.launch(wire.Map, 0, action), wire.AttemptFailed)
}

func (l *leader) path(elem ...string) string {
	return filepath.Join(append([]string{l.dir}, elem...)...)
}

func mustBeEmpty(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	for _, e := range entries {
		t.Errorf("%s was not removed", filepath.Join(dir, e.Name()))
	}
}
