package jobtracker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/dfs/mem"
	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/jobtracker/core/admission"
	"github.com/quernmr/quern/jobtracker/core/facts"
	"github.com/quernmr/quern/scheduler"
	"github.com/quernmr/quern/wire"
)

const splitsHash = 77

// patience limits every wait of these tests.
const patience = 2 * time.Minute

// start runs a Server until the test ends.
func start(t *testing.T, change func(*Config)) *Server {
	t.Helper()
	cfg := Config{
		Log: NewMemoryLog(), FS: mem.New(1 << 20), Staging: "mem://s/staging",
		ReadSplits: func(_ dfs.FS, staging string, _ wire.JobID) ([]core.Split, uint64, error) {
			if !strings.HasPrefix(staging, "mem://s/staging/") {
				return nil, 0, fmt.Errorf("wrong staging directory %s", staging)
			}
			return make([]core.Split, 5), splitsHash, nil
		},
	}
	if change != nil {
		change(&cfg)
	}
	if err := cfg.FS.MkdirAll("mem://s/staging/a"); err != nil {
		t.Fatal(err)
	}
	s := New(cfg)
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-ran:
			if err != nil {
				t.Errorf("Run: %v", err)
			}
		case <-time.After(patience):
			t.Error("Run does not end")
		}
	})
	return s
}

func testContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

func submission(key string, reduces int) wire.Submission {
	return wire.Submission{
		Key: key, Staging: "mem://s/staging/" + key,
		Plan: wire.Plan{Jobs: []wire.JobPlan{{Name: "count", Reduces: reduces}}},
	}
}

// finish watches jobs until they end and returns their last statuses.
func finish(t *testing.T, s *Server, ids []wire.JobID) []wire.JobStatus {
	t.Helper()
	var last []wire.JobStatus
	for statuses, err := range s.Watch(testContext(t), ids) {
		if err != nil {
			t.Fatalf("%v; last %+v", err, last)
		}
		last = statuses
	}
	return last
}

func TestJobRuns(t *testing.T) {
	f := mem.New(1 << 20)
	s := start(t, func(c *Config) { c.FS = f })
	for _, name := range []string{"t1", "t2"} {
		go attach(t, s, name, 1, 5).run()
	}
	if err := f.MkdirAll("mem://s/staging/a"); err != nil {
		t.Fatal(err)
	}
	ids, err := s.Submit(testContext(t), core.Caller{}, submission("a", 3))
	if err != nil || len(ids) != 1 {
		t.Fatal(ids, err)
	}
	last := finish(t, s, ids)[0]
	if last.State != wire.Succeeded || last.Maps.Done != 5 || last.Reduces.Done != 3 || last.Counters.Get("g", "MAPS") != 5 {
		t.Errorf("ended as %+v", last)
	}
	again, err := s.Submit(testContext(t), core.Caller{}, submission("a", 3))
	if err != nil || !slices.Equal(again, ids) {
		t.Errorf("the same key gave %v, %v", again, err)
	}
	if err := s.Kill(testContext(t), core.Caller{}, ids[0], "late"); !errors.Is(err, admission.ErrJobEnded) {
		t.Errorf("kill of an ended job: %v", err)
	}
	if _, err := s.Submit(testContext(t), core.Caller{}, submission("", 1)); !errors.Is(err, admission.ErrBadSubmission) {
		t.Errorf("bad submission: %v", err)
	}
	for _, err := range s.Watch(testContext(t), []wire.JobID{{Start: 1, N: 9}}) {
		if !errors.Is(err, admission.ErrUnknownJob) {
			t.Errorf("watch of an unknown job: %v", err)
		}
	}
	waitFor(t, "staging to be removed", func() bool {
		_, err := f.Stat("mem://s/staging/a")
		return errors.Is(err, fs.ErrNotExist)
	})
}

// waitFor polls a condition that has no event.
func waitFor(t *testing.T, what string, done func() bool) {
	t.Helper()
	deadline := time.After(patience)
	for tick := time.NewTicker(time.Millisecond); !done(); {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("waited too long for %s", what)
		}
	}
}

func TestTrackerDies(t *testing.T) {
	s := start(t, func(c *Config) { c.Lease = 2 * time.Second })
	first := attach(t, s, "t1", 1, 5)
	hangs := make(chan struct{}, 10)
	first.onMap = func(*wire.Launch) bool { hangs <- struct{}{}; return false }
	go first.run()
	ids, err := s.Submit(testContext(t), core.Caller{}, submission("a", 1))
	if err != nil {
		t.Fatal(err)
	}
	<-hangs
	first.conn.Close()
	<-first.ended
	go attach(t, s, "t2", 1, 5).run()
	if last := finish(t, s, ids)[0]; last.State != wire.Succeeded {
		t.Errorf("ended as %+v", last)
	}
}

func TestKill(t *testing.T) {
	s := start(t, nil)
	f := attach(t, s, "t1", 1, 5)
	hangs := make(chan struct{}, 10)
	f.onMap = func(*wire.Launch) bool { hangs <- struct{}{}; return false }
	go f.run()
	ids, err := s.Submit(testContext(t), core.Caller{}, submission("a", 1))
	if err != nil {
		t.Fatal(err)
	}
	<-hangs
	if err := s.Kill(testContext(t), core.Caller{}, ids[0], "enough"); err != nil {
		t.Fatal(err)
	}
	if last := finish(t, s, ids)[0]; last.State != wire.Killed || last.Error != "enough" {
		t.Errorf("ended as %+v", last)
	}
	if f.launches(wire.Cleanup) != 1 {
		t.Errorf("%d cleanups", f.launches(wire.Cleanup))
	}
}

// stuckPolicy is a policy that waits until the test sends a value or closes it.
type stuckPolicy chan struct{}

func (p stuckPolicy) Plan(s scheduler.Snapshot) (scheduler.Plan, error) {
	<-p
	return scheduler.Plan{}, nil
}

// policyFunc is a function as a policy.
type policyFunc func(s scheduler.Snapshot) (scheduler.Plan, error)

func (f policyFunc) Plan(s scheduler.Snapshot) (scheduler.Plan, error) { return f(s) }

// TestBadPolicies: with a bad policy, jobs run without a plan, and the cluster shows the error. A
// client can still choose another policy.
func TestBadPolicies(t *testing.T) {
	loops := make(stuckPolicy)
	defer close(loops)
	unknown := wire.JobID{Start: 1, N: 99}
	for _, c := range []struct {
		name   string
		policy scheduler.Policy
		want   string
	}{
		{"panics", policyFunc(func(scheduler.Snapshot) (scheduler.Plan, error) { panic("boom") }), "the policy panicked: boom"},
		{"loops", loops, ErrPolicyDeadline.Error()},
		{"fails", policyFunc(func(scheduler.Snapshot) (scheduler.Plan, error) { return scheduler.Plan{}, errors.New("no idea") }), "no idea"},
		{"names an unknown job", policyFunc(func(scheduler.Snapshot) (scheduler.Plan, error) {
			return scheduler.Plan{Targets: []scheduler.Target{{Job: unknown, Slots: 1}}}, nil
		}), "plan names " + unknown.String()},
		{"gives too many slots", policyFunc(func(s scheduler.Snapshot) (scheduler.Plan, error) {
			return scheduler.Plan{Targets: []scheduler.Target{{Job: s.Jobs[0].ID, Slots: 1000}}}, nil
		}), "1000 slots of at most"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := start(t, func(cfg *Config) {
				cfg.PolicyDeadline, cfg.Period = 5*time.Millisecond, 10*time.Millisecond
				cfg.Policies = func(name string) (scheduler.Policy, error) {
					if name == "fair" {
						return scheduler.Fair{}, nil
					}
					return c.policy, nil
				}
			})
			tracker := attach(t, s, "t1", 1, 5)
			hangs := make(chan *wire.Launch, 10)
			tracker.onMap = func(m *wire.Launch) bool { hangs <- m; return false }
			go tracker.run()
			ids, err := s.Submit(testContext(t), core.Caller{}, submission("a", 1))
			if err != nil {
				t.Fatal(err)
			}
			<-hangs // a map runs without any plan
			noPlan := func() string {
				status, err := s.Cluster(testContext(t))
				if err != nil {
					t.Fatal(err)
				}
				return status.NoPlan
			}
			waitFor(t, "the cluster to show "+c.want, func() bool { return strings.Contains(noPlan(), c.want) })
			if err := s.Schedule(testContext(t), wire.Scheduling{Scheduler: "fair"}); err != nil {
				t.Fatal(err)
			}
			waitFor(t, "a plan of another policy", func() bool { return noPlan() == "" })
			if err := s.Kill(testContext(t), core.Caller{}, ids[0], "enough"); err != nil {
				t.Fatal(err)
			}
			finish(t, s, ids)
		})
	}
}

// TestPolicyBreaks: if a policy begins to fail, its previous plan stays in force.
func TestPolicyBreaks(t *testing.T) {
	var bad atomic.Bool
	s := start(t, func(cfg *Config) {
		cfg.Period = 10 * time.Millisecond
		cfg.Policies = func(string) (scheduler.Policy, error) {
			return policyFunc(func(s scheduler.Snapshot) (scheduler.Plan, error) {
				if bad.Load() {
					return scheduler.Plan{}, errors.New("no idea")
				}
				return scheduler.Fair{}.Plan(s)
			}), nil
		}
	})
	tracker := attach(t, s, "t1", 1, 5)
	hangs := make(chan *wire.Launch, 10)
	tracker.onMap = func(m *wire.Launch) bool { hangs <- m; return false }
	go tracker.run()
	ids, err := s.Submit(testContext(t), core.Caller{}, submission("a", 1))
	if err != nil {
		t.Fatal(err)
	}
	<-hangs
	planned := func() bool {
		x, err := s.Explain(testContext(t), ids[0])
		if err != nil {
			t.Fatal(err)
		}
		return len(x.Phases) > 0 && x.Phases[0].Place == 1
	}
	waitFor(t, "a plan", planned)
	bad.Store(true)
	waitFor(t, "the cluster to show the error", func() bool {
		status, err := s.Cluster(testContext(t))
		return err == nil && strings.Contains(status.NoPlan, "no idea")
	})
	if !planned() {
		t.Error("the previous plan is no longer in force")
	}
	if err := s.Kill(testContext(t), core.Caller{}, ids[0], "enough"); err != nil {
		t.Fatal(err)
	}
	finish(t, s, ids)
}

// TestPolicyHangs: if the policy never answers, a job ends without any plan.
func TestPolicyHangs(t *testing.T) {
	policy := make(stuckPolicy)
	defer close(policy)
	s := start(t, func(c *Config) {
		c.PolicyDeadline = time.Millisecond
		c.Policies = func(string) (scheduler.Policy, error) { return policy, nil }
	})
	go attach(t, s, "t1", 1, 5).run()
	ids, err := s.Submit(testContext(t), core.Caller{}, submission("a", 1))
	if err != nil {
		t.Fatal(err)
	}
	if last := finish(t, s, ids)[0]; last.State != wire.Succeeded {
		t.Errorf("ended as %+v", last)
	}
}

const poolsURL = "mem://s/pools.xml"

func writePools(t *testing.T, f dfs.FS, text string) {
	t.Helper()
	if err := f.Remove(poolsURL); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	w, err := f.Create(poolsURL)
	if err == nil {
		_, err = io.WriteString(w, text)
	}
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestPools: the allocation file is read again when it changes. If it is broken or missing,
// the old table stays, and the cluster shows the error.
func TestPools(t *testing.T) {
	files := mem.New(1 << 20)
	s := start(t, func(c *Config) { c.FS, c.Pools, c.PoolsEvery = files, poolsURL, time.Millisecond })
	status := func() wire.ClusterStatus {
		c, err := s.Cluster(testContext(t))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	shows := func(text string) {
		t.Helper()
		waitFor(t, "the cluster to show "+text, func() bool { return strings.Contains(status().Pools, text) })
	}
	shows("none: ") // no such file
	good := `<allocations><pool name="etl"><minMaps>3</minMaps></pool></allocations>`
	writePools(t, files, good)
	waitFor(t, "the pools", func() bool { return len(status().InPools) == 1 })
	if c := status(); c.Pools != poolsURL || c.InPools[0].Name != "etl" || c.InPools[0].Min[0] != 3 {
		t.Errorf("%q %+v", c.Pools, c.InPools)
	}
	sub := submission("a", 1)
	sub.Settings.Pool = "adhoc"
	if _, err := s.Submit(testContext(t), core.Caller{}, sub); !errors.Is(err, admission.ErrBadSettings) || !strings.Contains(err.Error(), `pool "adhoc" is unknown; there are [default etl]`) {
		t.Error(err)
	}
	writePools(t, files, "<allocations>\n<pool name=\"adhoc\"><minMaps>few</minMaps></pool></allocations>")
	shows(poolsURL + ": the last valid version is in force: " + poolsURL + `:2: minMaps is "few"`)
	writePools(t, files, "<allocations>\n<queue name=\"adhoc\"><maxChildResources>4 vcores</maxChildResources></queue></allocations>")
	shows("in force: " + poolsURL + ":2: maxChildResources of pool adhoc is not supported")
	writePools(t, files, strings.Repeat(" ", maxPoolsFile)+good)
	shows("in force: " + poolsURL + ": longer than")
	if err := files.Remove(poolsURL); err != nil {
		t.Fatal(err)
	}
	shows("in force: ")
	if c := status(); len(c.InPools) != 1 || c.InPools[0].Min[0] != 3 {
		t.Errorf("%+v", c.InPools)
	}
	writePools(t, files, `<allocations><pool name="adhoc"/><defaultPoolSchedulingMode>fifo</defaultPoolSchedulingMode></allocations>`)
	waitFor(t, "other pools", func() bool { return status().InPools[0].Name == "adhoc" })
	if c := status(); c.Pools != poolsURL || len(c.PoolNotes) != 1 {
		t.Errorf("%q %q", c.Pools, c.PoolNotes)
	}
	if _, err := s.Submit(testContext(t), core.Caller{}, sub); err != nil {
		t.Error(err)
	}
}

// sameTime is a file system that reports the same modification time for all files.
type sameTime struct{ dfs.FS }

func (f sameTime) Stat(name string) (dfs.Info, error) {
	info, err := f.FS.Stat(name)
	info.Modified = time.Unix(1, 0)
	return info, err
}

// TestPoolsSameSize: a changed allocation file is read again even with the same size and time.
func TestPoolsSameSize(t *testing.T) {
	files := sameTime{mem.New(1 << 20)}
	writePools(t, files, `<allocations><pool name="abc"/></allocations>`)
	s := start(t, func(c *Config) { c.FS, c.Pools, c.PoolsEvery = files, poolsURL, time.Millisecond })
	has := func(name string) {
		t.Helper()
		waitFor(t, "pool "+name, func() bool {
			c, err := s.Cluster(testContext(t))
			return err == nil && len(c.InPools) == 1 && c.InPools[0].Name == name
		})
	}
	has("abc")
	writePools(t, files, `<allocations><pool name="xyz"/></allocations>`)
	has("xyz")
}

// TestRefusals: repeated refusals of a tracker are logged once.
func TestRefusals(t *testing.T) {
	var logged bytes.Buffer // owned by Run's goroutine
	s := start(t, func(c *Config) { c.Logger = slog.New(slog.NewTextHandler(&logged, nil)) })
	for range 3 {
		trackerEnd, serverEnd := wire.Pipe()
		go s.Attach(serverEnd, "")
		if err := trackerEnd.Send(&wire.Hello{Version: wire.Version + 1, Tracker: "t1", Process: 1}); err != nil {
			t.Fatal(err)
		}
		m, err := trackerEnd.Receive()
		if r, ok := m.(*wire.Refuse); !ok || !strings.Contains(r.Reason, "protocol version") {
			t.Fatalf("got %T %v %v", m, m, err)
		}
		if m, err := trackerEnd.Receive(); err == nil {
			t.Fatalf("the stream goes on after the refusal with %T", m)
		}
	}
	text := make(chan string, 1)
	s.post(func() { text <- logged.String() })
	if got := <-text; strings.Count(got, "a tracker is refused") != 1 {
		t.Errorf("logged\n%s", got)
	}
}

// TestTrackerDoesNotRead: a task tracker that reads no messages delays neither other trackers nor
// the end of Run.
func TestTrackerDoesNotRead(t *testing.T) {
	s := start(t, nil)
	attach(t, s, "t0", 1, 5) // sends Hello and reads no messages
	go attach(t, s, "t1", 1, 5).run()
	ids, err := s.Submit(testContext(t), core.Caller{}, submission("a", 1))
	if err != nil {
		t.Fatal(err)
	}
	if last := finish(t, s, ids)[0]; last.State != wire.Succeeded {
		t.Errorf("ended as %+v", last)
	}
}

// futureLog commits proposals as entries of a later version.
type futureLog struct{ *MemoryLog }

func (l futureLog) Propose(key string, data []byte) {
	l.MemoryLog.Propose(key, append([]byte{99}, data[1:]...))
}

func TestUnknownVersion(t *testing.T) {
	s := New(Config{Log: futureLog{NewMemoryLog()}, FS: mem.New(1 << 20)})
	if err := s.Run(testContext(t)); !errors.Is(err, facts.ErrUnknownFact) {
		t.Fatalf("Run: %v", err)
	}
	if _, err := s.Submit(testContext(t), core.Caller{}, submission("a", 1)); !errors.Is(err, ErrStopped) {
		t.Errorf("submit after the end: %v", err)
	}
}
