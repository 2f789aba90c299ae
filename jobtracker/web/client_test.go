package web

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quernmr/quern/client"
	"github.com/quernmr/quern/jobtracker"
	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/jobtracker/core/admission"
	"github.com/quernmr/quern/jobtracker/web/seek"
	"github.com/quernmr/quern/wire"
)

var job1 = wire.JobID{Start: 7, N: 1}

// three starts a cluster of three job trackers; the first one leads.
func startThree(t *testing.T) (l *fakeLog, all []*fake, stops []func()) {
	t.Helper()
	l = newFakeLog()
	for i := range 3 {
		f, stop := l.start(t, fmt.Sprintf("jt%d", i+1))
		all, stops = append(all, f), append(stops, stop)
	}
	l.setLeader(all[0])
	return l, all, stops
}

// TestRemoveVoterAgain: a repeated removal of a voter succeeds if the first one worked, but its
// answer was lost.
func TestRemoveVoterAgain(t *testing.T) {
	t.Parallel()
	_, all, _ := startThree(t)
	all[0].voter, all[0].removeErr = []Voter{{ID: "jt1", Addr: "h:1"}, {ID: "jt4", Addr: "h:4"}}, context.DeadlineExceeded
	c := testClient(t, all[0].addr)
	if err := c.RemoveVoter(t.Context(), "jt4"); err != nil || len(all[0].voter) != 1 {
		t.Errorf("%v, %v", all[0].voter, err)
	}
	if err := c.RemoveVoter(t.Context(), "jt9"); !errors.Is(err, ErrNotVoter) {
		t.Errorf("a job tracker without a vote: %v", err)
	}
}

func TestAnyAddressFindsLeader(t *testing.T) {
	t.Parallel()
	_, all, _ := startThree(t)
	c := testClient(t, closedAddr(t), all[2].addr) // a follower names the leader
	ids, err := c.Submit(t.Context(), submission("k"))
	if err != nil || len(ids) != 1 || ids[0] != job1 {
		t.Fatalf("%v, %v", ids, err)
	}
	cluster, err := c.Cluster(t.Context())
	if err != nil || !cluster.IsLeader || cluster.Leader != "jt1" || len(cluster.Trackers) != 1 || !cluster.Wall.Equal(time.UnixMilli(99)) {
		t.Errorf("%+v, %v", cluster, err)
	}
	jobs, err := c.Jobs(t.Context(), core.Query{})
	if err != nil || len(jobs) != 1 || jobs[0].ID != job1.String() {
		t.Errorf("%+v, %v", jobs, err)
	}
	attempts, err := c.Attempts(t.Context(), job1)
	if err != nil || len(attempts.Items) != 1 || attempts.Items[0].State != "failed" || attempts.Owner != "ann" || attempts.Token != wire.LogToken("secret", "") {
		t.Errorf("%+v, %v", attempts, err)
	}
	x, err := c.Explain(t.Context(), job1)
	if err != nil || x.Scheduler != "flex" || len(x.Phases) != 1 || x.Phases[0].End.UnixMilli() != 9000 || x.Shuffle.Share != 0.5 ||
		x.Holds[0].Until.UnixMilli() != 8000 || x.Now.UnixMilli() != 99 || !x.Deadline.IsZero() {
		t.Errorf("%+v, %v", x, err)
	}
	if every, err := c.Explanations(t.Context()); err != nil || len(every) != 1 || every[0].Job != x.Job {
		t.Errorf("%+v, %v", every, err)
	}
	if _, err := c.Explain(t.Context(), wire.JobID{Start: 7, N: 9}); !errors.Is(err, admission.ErrUnknownJob) {
		t.Errorf("explain an unknown job: %v", err)
	}
	if err := errors.Join(c.AddVoter(t.Context(), Voter{ID: "jt/4", Addr: "h:4"}), c.RemoveVoter(t.Context(), "jt/4")); err != nil || len(all[0].voter) != 0 {
		t.Errorf("%v, %v", all[0].voter, err)
	}
	if err := c.Kill(t.Context(), job1, "enough"); err != nil {
		t.Error(err)
	}
	if err := c.Kill(t.Context(), job1, "more"); !errors.Is(err, admission.ErrJobEnded) {
		t.Errorf("second kill: %v", err)
	}
	attempt := wire.AttemptID{Task: wire.TaskID{Job: job1, Kind: wire.Map}, N: 1000}
	if err := errors.Join(c.EndAttempt(t.Context(), attempt, false, "stuck"), c.EndAttempt(t.Context(), attempt, true, "")); err != nil || strings.Join(all[0].ended, ", ") != "attempt_7_0001_m_000000_1000 false stuck, attempt_7_0001_m_000000_1000 true " {
		t.Errorf("ended %q, %v", all[0].ended, err)
	}
	if recent, err := c.Recent(t.Context()); err != nil || len(recent.Items) == 0 {
		t.Errorf("recent attempts %+v, %v", recent, err)
	}
	if _, err := c.Job(t.Context(), wire.JobID{Start: 7, N: 9}); !errors.Is(err, admission.ErrUnknownJob) {
		t.Errorf("unknown job: %v", err)
	}
	if _, err := c.Submit(t.Context(), submission("")); !errors.Is(err, admission.ErrBadSubmission) || errors.Is(err, client.ErrUndecided) {
		t.Errorf("bad submission: %v", err)
	}
}

// TestSubmitAgain: after a lost answer the client submits again, and gets the same ids.
func TestSubmitAgain(t *testing.T) {
	for name, lose := range map[string]func(l *fakeLog, f, next *fake, stop func()) error{
		"deposed": func(l *fakeLog, _, next *fake, _ func()) error {
			l.setLeader(next)
			return core.ErrNotLeader
		},
		"stopped": func(l *fakeLog, _, next *fake, _ func()) error {
			l.setLeader(next)
			return jobtracker.ErrStopped
		},
		"killed": func(l *fakeLog, _, next *fake, stop func()) error {
			go stop()
			l.setLeader(next)
			return errors.New("not sent")
		},
	} {
		t.Run(name, func(t *testing.T) {
			l, all, stops := startThree(t)
			once := sync.OnceValue(func() error { return lose(l, all[0], all[1], stops[0]) })
			killed := name == "killed"
			all[0].after = func(wire.Submission) error {
				err := once()
				if killed {
					// The server closes the connection without an answer.
					panic(http.ErrAbortHandler)
				}
				return err
			}
			c := testClient(t, all[0].addr, all[1].addr, all[2].addr)
			ids, err := c.Submit(t.Context(), submission("k"))
			if err != nil || len(ids) != 1 || l.submits != 1 {
				t.Errorf("%v, %v, submitted %d times", ids, err, l.submits)
			}
		})
	}
}

// TestKillAgain: a repeated kill succeeds if the first one worked, but its answer was lost.
func TestKillAgain(t *testing.T) {
	t.Parallel()
	l, all, _ := startThree(t)
	c := testClient(t, all[0].addr)
	if _, err := c.Submit(t.Context(), submission("k")); err != nil {
		t.Fatal(err)
	}
	var once sync.Once
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		New(Config{Server: all[0]}).ServeHTTP(httptest.NewRecorder(), r)
		cut := false
		once.Do(func() { cut = true })
		if cut {
			panic(http.ErrAbortHandler)
		}
		w.WriteHeader(http.StatusBadGateway)
	}))
	defer front.Close()
	addr := strings.TrimPrefix(front.URL, "http://")
	c = testClient(t, addr, all[0].addr)
	go l.change(func() { all[0].hint = "" })
	c.known.SetLeader(addr)
	if err := c.Kill(t.Context(), job1, "enough"); err != nil {
		t.Error(err)
	}
}

// TestChanges: changes of settings and scheduling reach the leader unchanged, and its errors
// reach the client.
func TestChanges(t *testing.T) {
	l := newFakeLog()
	follower, _ := l.start(t, "jt1")
	leader, _ := l.start(t, "jt2")
	l.setLeader(leader)
	c := testClient(t, follower.addr)
	if _, err := c.Submit(t.Context(), submission("k1")); err != nil {
		t.Fatal(err)
	}
	id := wire.JobID{Start: 7, N: 1}
	priority, weight, deadline, pool, suspended := wire.High, 2.5, -time.Nanosecond, "p", false
	for _, change := range []wire.Change{
		{Priority: &priority, Weight: &weight}, {Deadline: &deadline, SLA: &[]wire.SLAStep{}, Pool: &pool}, {Suspended: &suspended},
	} {
		if err := c.Change(t.Context(), id, change); err != nil {
			t.Error(err)
		}
	}
	want := []string{`{"priority":"HIGH","weight":2.5}`, `{"pool":"p","deadlineMillis":-1,"sla":[]}`, `{"suspended":false}`}
	if !slices.Equal(leader.changes, want) {
		t.Errorf("the leader got %q, want %q", leader.changes, want)
	}
	if err := c.Change(t.Context(), wire.JobID{Start: 7, N: 9}, wire.Change{Weight: &weight}); !errors.Is(err, admission.ErrUnknownJob) {
		t.Error(err)
	}
	pool = "nowhere"
	if err := c.Change(t.Context(), id, wire.Change{Pool: &pool}); !errors.Is(err, admission.ErrBadSettings) {
		t.Error(err)
	}
	if err := c.Schedule(t.Context(), wire.Scheduling{Scheduler: "flex", Delay: "dynamic"}); err != nil {
		t.Error(err)
	}
	if err := c.Schedule(t.Context(), wire.Scheduling{Metric: "sum-joy"}); !errors.Is(err, admission.ErrBadScheduling) {
		t.Error(err)
	}
	if err := c.Drain(t.Context(), "t1", false); err != nil {
		t.Error(err)
	}
	if err := c.Drain(t.Context(), "unknown", false); !errors.Is(err, core.ErrUnknownTracker) {
		t.Error(err)
	}
	about, err := c.Cluster(t.Context())
	if d := about.Drain("t1"); err != nil || d == nil || d.Needs == "" || about.Drain("t2") != nil {
		t.Errorf("%+v, %v", about.Drains, err)
	}
	if err != nil || about.Scheduling != (Scheduling{Scheduler: "flex", Delay: "dynamic"}) {
		t.Errorf("%+v, %v", about.Scheduling, err)
	}
}

// TestGiveUp: if no leader is found, the error lists the addresses, and is client.ErrUndecided if
// the submission may have been accepted.
func TestGiveUp(t *testing.T) {
	t.Parallel()
	l, all, _ := startThree(t)
	l.setLeader(nil)
	dead := closedAddr(t)
	foreign := httptest.NewServer(http.NotFoundHandler())
	defer foreign.Close()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	cut := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	cut.Config.ErrorLog = nil
	defer cut.Close()
	for _, g := range []struct {
		name      string
		addrs     []string
		sentinel  error
		text      string
		undecided bool
	}{
		{"dead", []string{dead}, seek.ErrUnreachable, "job tracker unreachable: tried " + dead, false},
		{"no address", nil, seek.ErrUnreachable, "no address is known", false},
		{"followers", []string{all[1].addr, dead}, seek.ErrNoLeader, "no leader among the job trackers", false},
		{"foreign", []string{strings.TrimPrefix(foreign.URL, "http://")}, seek.ErrUnreachable, "not a job tracker of this version", false},
		{"silent", []string{silent.Addr().String()}, seek.ErrUnreachable, "does not answer", true},
		{"cut", []string{strings.TrimPrefix(cut.URL, "http://")}, seek.ErrUnreachable, "EOF", true},
		{"bad address", []string{"a b"}, seek.ErrUnreachable, "a b", false},
	} {
		c := testClient(t, g.addrs...)
		c.Patience = 100 * time.Millisecond
		_, err := c.Submit(t.Context(), submission("k"))
		if !errors.Is(err, g.sentinel) || !strings.Contains(err.Error(), g.text) || errors.Is(err, client.ErrUndecided) != g.undecided {
			t.Errorf("%s: %v", g.name, err)
		}
	}
	c := testClient(t, all[1].addr)
	c.Patience = 50 * time.Millisecond
	if cluster, err := c.Cluster(t.Context()); err != nil || cluster.IsLeader || cluster.ID != "c1" {
		t.Errorf("a cluster without a leader: %+v, %v", cluster, err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("got signal interrupt"))
	if _, err := c.Submit(ctx, submission("k")); err == nil || !strings.Contains(err.Error(), "got signal interrupt") || errors.Is(err, client.ErrUndecided) {
		t.Errorf("interrupted: %v", err)
	}
}

// TestStuckLeader: if the leader does not answer, the client finds the new leader.
func TestStuckLeader(t *testing.T) {
	t.Parallel()
	l, all, _ := startThree(t)
	c := testClient(t, all[0].addr, all[1].addr)
	if _, err := c.Cluster(t.Context()); err != nil {
		t.Fatal(err)
	}
	hang := make(chan struct{})
	defer close(hang)
	all[0].hang = hang
	l.setLeader(all[1])
	if _, err := c.Submit(t.Context(), submission("k")); err != nil || l.submits != 1 {
		t.Errorf("%v, submitted %d times", err, l.submits)
	}
}

func await[T any](t *testing.T, what string, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(30 * time.Second):
		t.Fatalf("no %s", what)
		panic("unreachable")
	}
}
