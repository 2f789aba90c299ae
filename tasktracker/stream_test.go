package tasktracker

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/dfs/local"
	"github.com/quernmr/quern/tasktracker/isolation"
	"github.com/quernmr/quern/wire"
)

func TestStagingNonce(t *testing.T) {
	l := startUnregistered(t, Config{ID: "t1", Dir: t.TempDir()})
	file := nonceFile(t)
	ask := func() {
		l.accept()
		l.send(&wire.Staging{File: "file://" + file})
	}
	ask()
	if m := await[*wire.NoStaging](l, nil); !strings.Contains(m.Reason, file) {
		t.Errorf("no staging: %q", m.Reason)
	}
	l.send(&wire.Refuse{Reason: "staging is not shared"})
	if err := os.WriteFile(file, []byte("n1"), 0o666); err != nil {
		t.Fatal(err)
	}
	ask()
	if m := await[*wire.Hello](l, nil); m.Nonce != "n1" {
		t.Errorf("nonce is %q", m.Nonce)
	}
	l.send(&wire.Welcome{Epoch: 1, Incarnation: 9, Lease: l.lease, Cluster: "c1"})
	await[*wire.Inventory](l, nil)
	l.conn.Close()
	if l.connect(2); l.hello.Nonce != "n1" {
		t.Errorf("later nonce is %q", l.hello.Nonce)
	}
}

// nonceFile makes a cluster's nonce file.
func nonceFile(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), wire.StagingClusters)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "c1")
}

// hangingFS blocks when its file is opened, until it is released.
type hangingFS struct {
	local.FS
	file       string
	opened     chan struct{} // gets a value when an Open blocks
	release    chan struct{}
	hanging    atomic.Int32 // blocked calls now
	maxHanging atomic.Int32 // highest value of hanging
}

func (fs *hangingFS) Open(name string) (dfs.File, error) {
	if name == fs.file {
		n := fs.hanging.Add(1)
		for maxHanging := fs.maxHanging.Load(); n > maxHanging && !fs.maxHanging.CompareAndSwap(maxHanging, n); maxHanging = fs.maxHanging.Load() {
		}
		fs.opened <- struct{}{}
		<-fs.release
		fs.hanging.Add(-1)
	}
	return fs.FS.Open(name)
}

// TestStagingHangs: if several streams need the nonce, only one reads the file.
func TestStagingHangs(t *testing.T) {
	file := nonceFile(t)
	if err := os.WriteFile(file, []byte("n1"), 0o666); err != nil {
		t.Fatal(err)
	}
	fs := &hangingFS{file: "file://" + file, opened: make(chan struct{}, 10), release: make(chan struct{})}
	l := startUnregistered(t, Config{ID: "t1", Dir: t.TempDir(), FS: fs})
	for range 2 {
		l.accept()
		l.send(&wire.Staging{File: fs.file})
		l.send(&wire.Staging{File: fs.file}) // a second Staging is an error, which ends the stream
		for range l.received {
		}
	}
	receive(t, fs.opened, "the first read of the file")
	l.accept()
	l.send(&wire.Staging{File: fs.file})
	close(fs.release)
	if m := await[*wire.Hello](l, nil); m.Nonce != "n1" {
		t.Errorf("nonce is %q", m.Nonce)
	}
	if n := fs.maxHanging.Load(); n != 1 {
		t.Errorf("%d concurrent reads of the file, want 1", n)
	}
}

func TestHint(t *testing.T) {
	l := startUnregistered(t, Config{ID: "t1", Dir: t.TempDir()})
	l.accept()
	l.send(&wire.Refuse{Reason: "j2 leads", Leader: "j2:1"})
	l.connect(1)
	l.conn.Close()
	l.connect(2)
	for _, want := range []string{"", "j2:1", ""} {
		if got := receive(t, l.hints, "a dial"); got != want {
			t.Errorf("dialled with hint %q, want %q", got, want)
		}
	}
}

// TestSilentLeader: the stream to a leader that does not answer heartbeats is closed.
func TestSilentLeader(t *testing.T) {
	l := startUnregistered(t, Config{ID: "t1", Dir: t.TempDir()})
	l.accept()
	l.noAcks.Store(true)
	l.send(&wire.Welcome{Epoch: 1, Incarnation: 9, Lease: 2 * time.Second})
	await[*wire.Inventory](l, nil)
	running := l.launch(wire.Map, 0, doCommit)
	inventory := l.connect(2)
	if as := inventory.Attempts; len(as) != 1 || as[0].Attempt != running {
		t.Errorf("inventory is %+v", inventory)
	}
}

// TestCluster: a directory belongs to the first cluster that it was used for.
func TestCluster(t *testing.T) {
	dir := t.TempDir()
	l := startTracker(t, "t1", dir)
	l.succeed(wire.Map, 0, doSucceed)
	if err := l.stop(); err != nil {
		t.Fatal(err)
	}
	l = startUnregistered(t, Config{ID: "t1", Dir: dir})
	l.accept()
	l.send(&wire.Welcome{Epoch: 1, Incarnation: 9, Lease: l.lease, Cluster: "c2"})
	for range l.received { // until the tracker closes the stream
	}
	err := l.ended()
	for _, want := range []string{dir, "c1", "c2"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("it ended by %v, which does not name %s", err, want)
		}
	}
}

// TestNewIncarnation: attempts of a lost incarnation are killed.
func TestNewIncarnation(t *testing.T) {
	l := startTracker(t, "t1", t.TempDir())
	id := l.launch(wire.Map, 0, doCommit)
	await(l, func(r *wire.Report) bool { return r.Attempt == id && r.State == wire.AttemptReady })
	l.conn.Close()
	l.incarnation++
	l.connect(2)
	if r := l.final(id, wire.AttemptKilled); !strings.Contains(r.Error, "lost") {
		t.Errorf("error is %q", r.Error)
	}
}

// TestSecondDisk: two trackers cannot use the same disk.
func TestSecondDisk(t *testing.T) {
	disk := t.TempDir()
	startUnregistered(t, Config{ID: "t1", Dir: t.TempDir(), Disks: []string{disk}})
	second, err := New(Config{ID: "t2", Host: "here", Service: Service{Listen: "127.0.0.1:0"}, Dir: t.TempDir(), Disks: []string{disk}, FS: local.FS{}})
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Run(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("second tracker: %v", err)
	}
}

// TestMachineReported: a heartbeat has the space on the tracker's disks, and the load if the system tells it.
func TestMachineReported(t *testing.T) {
	disk := t.TempDir()
	l := startUnregistered(t, Config{ID: "t1", Dir: t.TempDir(), Disks: []string{disk}})
	l.lease = 10 * time.Second // for a heartbeat every 3 s
	l.connect(1)
	m := await(l, func(h *wire.Heartbeat) bool { return h.Machine != nil && h.Machine.Disks[0].Total > 0 }).Machine
	if d := m.Disks[0]; len(m.Disks) != 2 || d.Path != disk || d.Free <= 0 || d.Free > d.Total || d.Failed != "" {
		t.Errorf("the disks are %+v", m.Disks)
	}
	for text, want := range map[string]float64{"1.25 0.5 0.1 1/234 567\n": 1.25, "": 0, "NaN": 0, "-1": 0} {
		if got := parseLoad(text); got != want {
			t.Errorf("the load of %q is %v, want %v", text, got, want)
		}
	}
}

// TestNoJobTracker: a tracker that reaches no job tracker logs the reason, repeatedly,
// until one answers.
func TestNoJobTracker(t *testing.T) {
	logged := make(chan string, 100)
	tracker, err := New(Config{
		ID: "t1", Dir: t.TempDir(), Host: "here", Service: Service{Listen: "127.0.0.1:0"}, MapSlots: 1, FS: local.FS{}, hooks: hooks{noLeaderAfter: time.Millisecond},
		Isolation: Isolation{Level: isolation.None}, // else one of root logs a warning
		Logger:    slog.New(slog.NewTextHandler(lineWriter(logged), &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	dials := 0
	go func() {
		ended <- tracker.Run(ctx, func(context.Context, string) (*wire.Conn, error) {
			if dials++; dials == 5 {
				cancel()
			}
			return nil, errors.New("j1:7400: no answer")
		})
	}()
	line := receive(t, logged, "a warning")
	if !strings.Contains(line, "no job tracker is found") || !strings.Contains(line, "j1:7400: no answer") {
		t.Errorf("it logs %s", line)
	}
	if err := receive(t, ended, "the end of the tracker"); err != nil {
		t.Error(err)
	}
	if len(logged) > 0 {
		t.Errorf("it logs again: %s", <-logged)
	}
}

// TestRefusalsAreLoggedOnce: refusals by the leader and by other job trackers are logged
// once each.
func TestRefusalsAreLoggedOnce(t *testing.T) {
	logged := make(chan string, 100)
	l := startUnregistered(t, Config{ID: "t1", Dir: t.TempDir(), Logger: slog.New(slog.NewTextHandler(lineWriter(logged), &slog.HandlerOptions{Level: slog.LevelWarn}))})
	for range 4 {
		l.accept()
		l.send(&wire.Refuse{Reason: "this one does not lead"})
		l.accept()
		l.send(&wire.Refuse{Reason: "protocol version 2"})
	}
	if err := l.stop(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"does not lead", "protocol version 2"} {
		if got := receive(t, logged, "a warning"); !strings.Contains(got, want) {
			t.Errorf("it logs %s", got)
		}
	}
	if len(logged) > 0 {
		t.Errorf("it logs again: %s", <-logged)
	}
}

type lineWriter chan<- string

func (w lineWriter) Write(line []byte) (int, error) {
	w <- string(line)
	return len(line), nil
}

// TestFarewell: a tracker that is told to stop says so to the leader, and logs the
// attempts that it waits for.
func TestFarewell(t *testing.T) {
	l := startUnregistered(t, Config{ID: "t1", Dir: t.TempDir(), Staging: "file://" + t.TempDir()})
	l.connect(1)
	if err := l.stop(); err != nil {
		t.Fatal(err)
	}
	if m := await[*wire.Capacity](l, nil); !m.Stops || m.MapSlots != 2 {
		t.Errorf("it sent %+v", m)
	}

	logged := make(chan string, 100)
	l = startUnregistered(t, Config{ID: "t2", Dir: t.TempDir(), Logger: slog.New(slog.NewTextHandler(lineWriter(logged), nil))})
	l.connect(1)
	running := l.launch(wire.Map, 0, doCommit)
	await(l, func(r *wire.Report) bool { return r.Attempt == running && r.State == wire.AttemptReady })
	if err := l.stop(); err != nil {
		t.Fatal(err)
	}
	for line := ""; !strings.Contains(line, "stopping"); {
		if line = receive(t, logged, "the line"); strings.Contains(line, "stopping") && !strings.Contains(line, running.String()) {
			t.Errorf("the line does not name %v: %s", running, line)
		}
	}
}

// TestFarewellUnread: a tracker stops even if the leader reads nothing.
func TestFarewellUnread(t *testing.T) {
	l := startUnregistered(t, Config{ID: "t1", Dir: t.TempDir(), Staging: "file://" + t.TempDir()})
	l.conn = receive(t, l.dials, "a stream")
	l.send(&wire.Welcome{Epoch: 1, Incarnation: 9, Lease: l.lease, Cluster: "c1"})
	if err := l.stop(); err != nil {
		t.Fatal(err)
	}
}
