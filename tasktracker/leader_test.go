package tasktracker

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/quernmr/quern/dfs/local"
	"github.com/quernmr/quern/wire"
)

// deadline is for what must happen; nothing waits so long that goes well.
const deadline = 30 * time.Second

// leader is the job tracker's side of a tracker under test.
type leader struct {
	t       *testing.T
	dir     string // the tracker's
	staging string
	dials   chan *wire.Conn // our ends of the streams the tracker opened
	conn    *wire.Conn
	heard   chan wire.Message // on conn
	hello   *wire.Hello
	addr    string
	stop    func() error // ends the tracker
	next    int
}

// startTracker starts a tracker that runs this test's binary and welcomes it.
func startTracker(t *testing.T, id, dir string, args ...string) *leader {
	t.Helper()
	l := &leader{t: t, dir: dir, dials: make(chan *wire.Conn, 1), staging: stage(t, args...)}
	ready := make(chan string, 1)
	tracker, err := New(Config{
		ID: id, Host: "here", Listen: "127.0.0.1:0", MapSlots: 2, ReduceSlots: 2, Dir: dir, FS: local.FS{},
		Ready: func(addr string) { ready <- addr }, Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- tracker.Run(ctx, func(ctx context.Context, _ string) (*wire.Conn, error) {
			near, far := wire.Pipe()
			select {
			case l.dials <- far:
				return near, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		})
	}()
	l.stop = sync.OnceValue(func() error {
		cancel()
		return receive(t, ended, "the end of the tracker")
	})
	t.Cleanup(func() { l.stop() })
	l.addr = receive(t, ready, "the shuffle service")
	l.connect(1)
	return l
}

// stage makes a staging directory of a submission of this test's binary.
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
	dir := t.TempDir()
	frame, err := wire.Append(nil, &wire.Submission{Program: wire.Program{Path: path, Args: args}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, wire.StagedSubmission), frame, 0o666); err != nil {
		t.Fatal(err)
	}
	return "file://" + dir
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

// connect takes the tracker's next stream and welcomes it.
func (l *leader) connect(epoch uint64) *wire.Inventory {
	l.t.Helper()
	l.conn = receive(l.t, l.dials, "a stream")
	l.heard = make(chan wire.Message, 1000)
	go func(conn *wire.Conn, heard chan<- wire.Message) {
		for {
			m, err := conn.Receive()
			if err != nil {
				close(heard)
				return
			}
			if _, ok := m.(*wire.Heartbeat); ok && conn.Send(&wire.Ack{}) != nil {
				continue // the next Receive tells
			}
			heard <- m
		}
	}(l.conn, l.heard)
	l.t.Cleanup(func() { l.conn.Close() })
	l.hello = await[*wire.Hello](l, nil)
	l.tell(&wire.Welcome{Epoch: epoch, Incarnation: 9, Lease: 3 * time.Second})
	return await[*wire.Inventory](l, nil)
}

func (l *leader) tell(m wire.Message) {
	l.t.Helper()
	if err := l.conn.Send(m); err != nil {
		l.t.Fatal(err)
	}
}

// await waits for a message of its type that is wanted.
func await[T wire.Message](l *leader, wanted func(T) bool) T {
	l.t.Helper()
	for {
		m, open := <-l.heardWithin(deadline)
		if !open {
			l.t.Fatalf("the stream ended before a %T came", *new(T))
		}
		if v, ok := m.(T); ok && (wanted == nil || wanted(v)) {
			return v
		}
	}
}

// heardWithin is the stream of messages, which ends when none comes for too long.
func (l *leader) heardWithin(limit time.Duration) <-chan wire.Message {
	one := make(chan wire.Message, 1)
	defer close(one)
	select {
	case m, open := <-l.heard:
		if open {
			one <- m
		}
	case <-time.After(limit):
	}
	return one
}

var job1 = wire.JobID{Start: 1, N: 1}

// launch starts an attempt of job 1 that does what one of the constants says.
func (l *leader) launch(kind wire.Kind, n, what int) wire.AttemptID {
	l.t.Helper()
	l.next++
	id := wire.AttemptID{Task: wire.TaskID{Job: job1, Kind: kind, N: n}, N: 1000 + l.next}
	l.tell(&wire.Launch{Epoch: 1, Attempt: id, Staging: l.staging, Index: what, Generation: wire.Generation{Epoch: 1, N: 1}, Timeout: time.Minute})
	return id
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
func (l *leader) succeed(kind wire.Kind, n, what int) *wire.Result {
	l.t.Helper()
	return l.final(l.launch(kind, n, what), wire.AttemptSucceeded)
}

// fail runs an attempt that must fail.
func (l *leader) fail(what int) *wire.Result {
	l.t.Helper()
	return l.final(l.launch(wire.Map, 0, what), wire.AttemptFailed)
}

func (l *leader) path(elem ...string) string {
	return filepath.Join(append([]string{l.dir}, elem...)...)
}
