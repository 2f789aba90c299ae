package jobtracker

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/dfs/mem"
	"github.com/quernmr/quern/history"
	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/jobtracker/core/admission"
	"github.com/quernmr/quern/wire"
)

const staging = "mem://s/staging"

// newCluster configures a new cluster with a nonce.
func newCluster(t *testing.T, f dfs.FS, c *Config) {
	t.Helper()
	var err error
	if c.Cluster, c.Nonce, err = NewCluster(f, staging); err != nil {
		t.Fatal(err)
	}
	c.FS = f
}

// TestNoncePowerCut: a cluster's nonce survives a power failure.
func TestNoncePowerCut(t *testing.T) {
	for seed := range uint64(10) {
		f := mem.New(1 << 20)
		f.Settle()
		cluster, nonce, err := NewCluster(f, staging)
		if err != nil {
			t.Fatal(err)
		}
		f.PowerCut(rand.New(rand.NewPCG(seed, 0)))
		info, err := f.Stat(dfs.Join(staging, wire.StagingClusters, cluster))
		if err != nil || info.Size != int64(len(nonce)) {
			t.Errorf("seed %d: %+v, %v", seed, info, err)
		}
	}
}

// TestNonce: the job tracker welcomes a task tracker that can read the nonce, and refuses others.
func TestNonce(t *testing.T) {
	f := mem.New(1 << 20)
	var cluster string
	s := start(t, func(c *Config) { newCluster(t, f, c); cluster = c.Cluster })
	hello := &wire.Hello{Version: wire.Version, Tracker: "t1", Process: 1, MapSlots: 1}
	receive := func(conn *wire.Conn) wire.Message {
		t.Helper()
		m, err := conn.Receive()
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	open := func() (*wire.Conn, string) {
		trackerEnd, serverEnd := wire.Pipe()
		go s.Attach(serverEnd, "")
		if err := trackerEnd.Send(hello); err != nil {
			t.Fatal(err)
		}
		ask, ok := receive(trackerEnd).(*wire.Staging)
		if !ok {
			t.Fatal("the tracker is not asked to read the staging directory")
		}
		return trackerEnd, ask.File
	}
	noStaging, _ := open()
	if err := noStaging.Send(&wire.NoStaging{Reason: "no such file"}); err != nil {
		t.Fatal(err)
	}
	want := "staging directory " + staging + " is not shared with tracker t1: no such file"
	if m, ok := receive(noStaging).(*wire.Refuse); !ok || m.Reason != want {
		t.Errorf("the tracker without the staging directory got %+v", m)
	}
	withStaging, name := open()
	file, err := f.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	nonce, err := io.ReadAll(file)
	if err != nil {
		t.Fatal(err)
	}
	again := *hello
	again.Nonce = string(nonce)
	if err := withStaging.Send(&again); err != nil {
		t.Fatal(err)
	}
	if m, ok := receive(withStaging).(*wire.Welcome); !ok || m.Cluster != cluster {
		t.Errorf("the tracker with the staging directory got %+v", m)
	}
	if err := withStaging.Send(&wire.Heartbeat{}); err != nil {
		t.Fatal(err)
	}
	if m, ok := receive(withStaging).(*wire.Ack); !ok {
		t.Errorf("a heartbeat is answered by %T", m)
	}
}

func TestHistory(t *testing.T) {
	f := mem.New(1 << 20)
	s := start(t, func(c *Config) { c.FS, c.History = f, true })
	go attach(t, s, "t1", 1, 5).run()
	ids, err := s.Submit(testContext(t), core.Caller{}, submission("a", 2))
	if err != nil {
		t.Fatal(err)
	}
	last := finish(t, s, ids)[0]
	a, err := s.Attempts(testContext(t), core.Caller{}, ids[0], wire.AttemptID{})
	if err != nil || len(a.Attempts) != 1+5+2+1 || a.Attempts[0].Tracker != "t1" || a.Attempts[0].State != wire.AttemptSucceeded || a.Token == "" {
		t.Errorf("attempts %+v, %v", a, err)
	}
	r, err := history.Find(f, staging, ids[0])
	if err != nil || r.Job.State != last.State || r.Job.Counters.Get("g", "MAPS") != 5 || r.Plan.Name != "count" || r.Job.Elapsed != last.Elapsed {
		t.Errorf("history %+v, %v; the job %+v", r, err, last)
	}
	if _, err := s.Attempts(testContext(t), core.Caller{}, wire.JobID{Start: 1, N: 9}, wire.AttemptID{}); !errors.Is(err, admission.ErrUnknownJob) {
		t.Errorf("attempts of an unknown job: %v", err)
	}
	if _, err := s.Submit(testContext(t), core.Caller{}, submission("b", 1)); err != nil {
		t.Fatal(err)
	}
	jobs, _, err := s.Jobs(testContext(t), core.Query{Oldest: true})
	if err != nil || len(jobs) != 2 || jobs[0].ID != ids[0] || jobs[0].State != wire.Succeeded {
		t.Errorf("jobs %+v, %v", jobs, err)
	}
	c, err := s.Cluster(testContext(t))
	if err != nil || !c.IsLeader || c.Leader != "jobtracker" || c.Epoch != 1 || len(c.Trackers) != 1 || !c.Trackers[0].Connected {
		t.Errorf("cluster %+v, %v", c, err)
	}
}

// TestHistoryFails: a job succeeds if its history cannot be written, and its troubles say so.
func TestHistoryFails(t *testing.T) {
	f := mem.New(1 << 20)
	s := start(t, func(c *Config) { c.FS, c.History = f, true })
	go attach(t, s, "t1", 1, 5).run()
	if err := f.SetFaults("mkdirall /staging/history/**"); err != nil {
		t.Fatal(err)
	}
	ids, err := s.Submit(testContext(t), core.Caller{}, submission("a", 1))
	if err != nil {
		t.Fatal(err)
	}
	if last := finish(t, s, ids)[0]; last.State != wire.Succeeded || !strings.Contains(strings.Join(last.Troubles, "\n"), "history could not be written") {
		t.Errorf("ended as %+v", last)
	}
	if _, err := s.Attempts(testContext(t), core.Caller{}, ids[0], wire.AttemptID{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("attempts: %v", err)
	}
}

// scriptedLog is a log that returns events from the test and drops proposals.
type scriptedLog struct {
	ready chan struct{}
	mu    sync.Mutex
	queue []LogEvent
	term  uint64
}

func newScriptedLog() *scriptedLog { return &scriptedLog{ready: make(chan struct{}, 1)} }

func (l *scriptedLog) play(events ...core.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, ev := range events {
		l.queue = append(l.queue, LogEvent{Event: ev})
		switch ev := ev.(type) {
		case core.Elected:
			l.term = ev.Term
		case core.Deposed:
			l.term = 0
		}
	}
	select {
	case l.ready <- struct{}{}:
	default:
	}
}

func (l *scriptedLog) Propose(string, []byte) {}
func (l *scriptedLog) Ready() <-chan struct{} { return l.ready }
func (l *scriptedLog) Close() error           { return nil }
func (l *scriptedLog) Confirm(answer func(term uint64)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	answer(l.term)
}
func (l *scriptedLog) Take() []LogEvent {
	l.mu.Lock()
	defer l.mu.Unlock()
	queue := l.queue
	l.queue = nil
	return queue
}

// proposedEntries makes a job tracker leader in term 1, feeds it the events more, and returns all
// entries that it proposes.
func proposedEntries(cfg core.Config, more ...core.Event) []core.Event {
	c := core.New(cfg)
	var entries []core.Event
	var feed func(core.Event)
	feed = func(ev core.Event) {
		for _, cmd := range c.Step(0, ev) {
			if p, ok := cmd.(core.Propose); ok {
				e := core.Entry{Index: uint64(len(entries) + 1), Term: 1, Data: p.Data}
				entries = append(entries, e)
				feed(e)
			}
		}
	}
	feed(core.Elected{Term: 1, Wall: 1_700_000_000_000})
	for _, ev := range more {
		feed(ev)
	}
	return entries
}

// TestFollower: a follower describes the cluster, and refuses all else with the leader's name. The
// refusals do not name the request, since the client adds it.
func TestFollower(t *testing.T) {
	log := newScriptedLog()
	s := start(t, func(c *Config) { c.Log, c.ID = log, "b" })
	sub := submission("a", 1)
	log.play(proposedEntries(core.Config{ID: "a", Addr: "a:1", Staging: staging, Cluster: "c"}, core.Submit{Submission: &sub})...)
	waitFor(t, "the entries to arrive", func() bool {
		c, err := s.Cluster(testContext(t))
		return err == nil && c.Jobs == 1 && c.Leader == "a" && c.Addr == "a:1" && c.Cluster == "c" && !c.IsLeader
	})
	id := wire.JobID{Start: 1_700_000_000_000, N: 1}
	_, submitErr := s.Submit(testContext(t), core.Caller{}, submission("b", 1))
	_, _, jobsErr := s.Jobs(testContext(t), core.Query{})
	_, attemptsErr := s.Attempts(testContext(t), core.Caller{}, id, wire.AttemptID{})
	var watchErr error
	for _, watchErr = range s.Watch(testContext(t), []wire.JobID{id}) {
	}
	_, _, explainErr := s.Explanations(testContext(t), wire.JobID{})
	for what, err := range map[string]error{
		"submit": submitErr, "kill": s.Kill(testContext(t), core.Caller{}, id, ""), "jobs": jobsErr, "attempts": attemptsErr, "watch": watchErr,
		"explain": explainErr, "change": s.Change(testContext(t), core.Caller{}, id, wire.Change{}),
		"schedule": s.Schedule(testContext(t), wire.Scheduling{}), "drain": s.Drain(testContext(t), "t1", false),
		"end attempt": s.EndAttempt(testContext(t), core.Caller{}, wire.AttemptID{Task: wire.TaskID{Job: id}}, false, ""),
		"exclude":     s.Exclude(testContext(t), core.Exclude{Tracker: "t1"}),
	} {
		var hint *core.NotLeaderError
		if !errors.Is(err, core.ErrNotLeader) || !errors.As(err, &hint) || hint.Addr != "a:1" {
			t.Errorf("%s: %v", what, err)
		}
		if what != "attempts" && err.Error() != hint.Error() { // attempts has a prefix, since other commands call it too
			t.Errorf("%s: %q says more than %q", what, err, hint)
		}
	}
}

// TestDeposed: a query waits while the job tracker is elected but does not lead yet. A watch ends
// when the job tracker no longer leads.
func TestDeposed(t *testing.T) {
	log := newScriptedLog()
	s := start(t, func(c *Config) { c.Log, c.ID = log, "a" })
	sub := submission("a", 1)
	entries := proposedEntries(core.Config{ID: "a", Addr: "a:1", Staging: staging}, core.Submit{Submission: &sub})
	log.play(core.Elected{Term: 1})
	queried := make(chan error, 1)
	go func() {
		_, _, err := s.Jobs(testContext(t), core.Query{})
		queried <- err
	}()
	log.play(entries...)
	if err := <-queried; err != nil {
		t.Errorf("a query before the job tracker leads: %v", err)
	}
	waitFor(t, "the job tracker to lead", func() bool { c, err := s.Cluster(testContext(t)); return err == nil && c.IsLeader && c.Jobs == 1 })
	states := 0
	for _, err := range s.Watch(testContext(t), []wire.JobID{{Start: 1_700_000_000_000, N: 1}}) {
		if states++; states == 1 {
			log.play(core.Deposed{})
			continue
		}
		var hint *core.NotLeaderError
		if !errors.As(err, &hint) || hint.Addr != "" {
			t.Errorf("watch ended with %v, which should not name this job tracker", err)
		}
	}
	if states != 2 {
		t.Errorf("watch yielded %d times", states)
	}
}

func TestLogFails(t *testing.T) {
	log := newScriptedLog()
	s := New(Config{Log: log, FS: mem.New(1 << 20)})
	full := errors.New("write wal/0001: no space left on device")
	log.play(core.Elected{Term: 1}, core.LogFailed{Err: full})
	if err := s.Run(testContext(t)); !errors.Is(err, full) {
		t.Errorf("Run: %v", err)
	}
}

// TestUnusedNonce: a job tracker removes its nonce if another one has bootstrapped the cluster.
func TestUnusedNonce(t *testing.T) {
	f := mem.New(1 << 20)
	log := newScriptedLog()
	var ours string
	start(t, func(c *Config) {
		newCluster(t, f, c)
		c.Log, ours = log, dfs.Join(staging, wire.StagingClusters, c.Cluster)
	})
	if _, err := f.Stat(ours); err != nil {
		t.Fatal(err)
	}
	log.play(proposedEntries(core.Config{ID: "a", Staging: staging, Cluster: "theirs", Nonce: "n"})...)
	waitFor(t, "the nonce to be removed", func() bool {
		_, err := f.Stat(ours)
		return errors.Is(err, fs.ErrNotExist)
	})
}

// TestEffectsOfEarlierEpoch: an effect of an earlier epoch does not run.
func TestEffectsOfEarlierEpoch(t *testing.T) {
	s := New(Config{Log: newScriptedLog(), FS: mem.New(1 << 20)})
	s.leadership.Store(&core.Leadership{Leads: true, Epoch: 2})
	s.runOnFiles(1, time.Nanosecond, func() core.Event { t.Error("an effect of epoch 1 in epoch 2"); return core.Tick{} })
	s.effects.Wait()
}

func TestStreamWithoutTracker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		s := New(Config{Log: NewMemoryLog(), FS: mem.New(1 << 20), Lease: time.Hour})
		ran := make(chan error, 1)
		go func() { ran <- s.Run(ctx) }()
		trackerEnd, serverEnd := wire.Pipe()
		began := time.Now()
		attached := make(chan error, 1)
		go func() { attached <- s.Attach(serverEnd, "") }()
		welcomed := attach(t, s, "t1", 1, 1)
		if _, err := welcomed.conn.Receive(); err != nil {
			t.Error(err)
		}
		if m, err := trackerEnd.Receive(); err == nil {
			t.Errorf("got %T", m)
		}
		if err := <-attached; err != nil || time.Since(began) < welcomeWait {
			t.Errorf("the stream ended after %v with %v", time.Since(began), err)
		}
		if c, err := s.Cluster(ctx); err != nil || len(c.Trackers) != 1 {
			t.Errorf("%+v %v", c, err)
		}
		cancel()
		if err := <-ran; err != nil {
			t.Error(err)
		}
		welcomed.conn.Close()
	})
}

// TestCleanStaging: old unused files are removed; files that Quern did not make stay, and those of
// clients that wait.
func TestCleanStaging(t *testing.T) {
	const key, unused, hash = "AAAAAAAAAAAAAAAAAAAAAAAAAA", "BBBBBBBBBBBBBBBBBBBBBBBBBB", "5aff"
	f := mem.New(1 << 20)
	s := New(Config{Log: newScriptedLog(), FS: f, Staging: staging})
	for _, name := range []string{
		key + "/submission", unused + "/submission", "of the user/file", "cccccccccccccccccccccccccc/file",
		"programs/20260301/" + hash, "programs/20260301/other", "programs/20260302/other", "programs/20260305/new", "programs/mine/file",
		"programs/19691220/waits", "sessions/old/data-x/part", "clusters/c", "history/2025/01/01/job_1_0001", "history/2026/03/05/job_1_0002",
	} {
		name = dfs.Join(staging, name)
		if err := f.MkdirAll(dfs.Dir(name)); err != nil {
			t.Fatal(err)
		}
		w, err := f.Create(name)
		if err == nil {
			err = w.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	tidy := core.Tidy{Cluster: "c", Submissions: map[string]bool{key: true}, Programs: map[string]bool{hash: true}}
	wantFiles := func(want string) {
		t.Helper()
		if got := strings.Join(walk(t, f, staging), " "); got != want {
			t.Errorf("remaining files\n%s, want\n%s", got, want)
		}
	}
	const remaining = "/AAAAAAAAAAAAAAAAAAAAAAAAAA/submission /cccccccccccccccccccccccccc/file /clusters/c /history/2026/03/05/job_1_0002 " +
		"/of the user/file /programs/20260301/5aff /programs/20260305/new /programs/mine/file"
	// The file system's clock begins in 1970: nothing is old yet.
	if err := s.cleanStaging(tidy, time.Unix(100, 0)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{unused, "programs/19691220/waits", "sessions/old"} {
		if _, err := f.Stat(dfs.Join(staging, name)); err != nil {
			t.Errorf("a client that waits has just changed this directory: %v", err)
		}
	}
	now := time.Date(2026, 3, 5, 12, 0, 0, 0, time.UTC)
	// A day's directory that cannot be listed is kept: programs in it may be in use.
	if err := f.SetFaults("list /staging/programs/20260301"); err != nil {
		t.Fatal(err)
	}
	if err := s.cleanStaging(tidy, now); err == nil || !strings.Contains(err.Error(), "20260301") {
		t.Errorf("a day that cannot be listed: %v", err)
	}
	if err := f.SetFaults(""); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.cleanStaging(tidy, now); err != nil {
			t.Fatal(err)
		}
	}
	wantFiles(remaining)
	// With another cluster, only histories are removed.
	if err := f.MkdirAll(dfs.Join(staging, unused)); err != nil {
		t.Fatal(err)
	}
	tidy.Cluster = "d"
	if err := s.cleanStaging(tidy, now); err == nil || !strings.Contains(err.Error(), "clusters/c") {
		t.Errorf("with another cluster: %v", err)
	}
	if _, err := f.Stat(dfs.Join(staging, unused)); err != nil {
		t.Errorf("the other cluster's submission: %v", err)
	}
}

// walk lists the files below a directory.
func walk(t *testing.T, f dfs.FS, dir string) []string {
	t.Helper()
	infos, err := f.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, info := range infos {
		if info.Dir {
			files = append(files, walk(t, f, info.Name)...)
		} else {
			files = append(files, strings.TrimPrefix(info.Name, staging))
		}
	}
	return files
}
