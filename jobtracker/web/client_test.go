package web

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quernmr/quern/client"
	"github.com/quernmr/quern/internal/membound"
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

// watchResults has the states, notes and result of a watch.
type watchResults struct {
	states chan string
	notes  chan string
	end    chan error
}

func watchJob(t *testing.T, c *Client) *watchResults {
	t.Helper()
	w := &watchResults{states: make(chan string, 100), notes: make(chan string, 100), end: make(chan error, 1)}
	c.Note = func(line string) { w.notes <- line }
	go func() {
		var last error
		for statuses, err := range c.Watch(t.Context(), []wire.JobID{job1}) {
			if last = err; err == nil {
				w.states <- statuses[0].State.String()
			}
		}
		w.end <- last
	}()
	return w
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

// TestWatchFollowsLeader: a watch continues after a change of the leader and after its crash, until
// the job ends.
func TestWatchFollowsLeader(t *testing.T) {
	t.Parallel()
	l, all, stops := startThree(t)
	c := testClient(t, all[2].addr, all[1].addr, all[0].addr)
	if _, err := c.Submit(t.Context(), submission("k")); err != nil {
		t.Fatal(err)
	}
	w := watchJob(t, c)
	if s := await(t, "state", w.states); s != "running" {
		t.Errorf("first %s", s)
	}
	l.setLeader(all[1])
	if s := await(t, "state of the second leader", w.states); s != "running" {
		t.Errorf("then %s", s)
	}
	if note := await(t, "note", w.notes); !strings.Contains(note, "leader changed: jt2 at "+all[1].addr+" leads now, before it jt1") {
		t.Errorf("note %q", note)
	}
	stops[1]()
	l.setLeader(all[2])
	if s := await(t, "state of the third leader", w.states); s != "running" {
		t.Errorf("then %s", s)
	}
	await(t, "note", w.notes)
	l.setState(job1, wire.Succeeded)
	if s := await(t, "end", w.states); s != "succeeded" {
		t.Errorf("last %s", s)
	}
	if err := await(t, "end", w.end); err != nil {
		t.Error(err)
	}
}

// TestWatchLeavesSilentLeader: a watch looks for another leader if it gets no lines, even if the
// connection stays open.
func TestWatchLeavesSilentLeader(t *testing.T) {
	t.Parallel()
	l, all, _ := startThree(t)
	stuck, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer stuck.Close()
	go func() {
		for {
			conn, err := stuck.Accept()
			if err != nil {
				return
			}
			defer conn.Close()
			http.ReadRequest(bufio.NewReader(conn))
			io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"+leaderText)
		}
	}()
	c := testClient(t, stuck.Addr().String(), all[0].addr)
	l.jobs = []wire.JobStatus{{ID: job1, State: wire.Succeeded}}
	c.known.SetLeader(stuck.Addr().String())
	w := watchJob(t, c)
	if s := await(t, "state", w.states); s != "succeeded" {
		t.Error(s)
	}
	note := await(t, "note", w.notes)
	for strings.Contains(note, "still looking") { // the machine is busy
		note = await(t, "note", w.notes)
	}
	if !strings.Contains(note, "leader changed: jt1") {
		t.Error(note)
	}
	if err := await(t, "end", w.end); err != nil {
		t.Error(err)
	}
}

// leaderText is the first event of a job tracker that has led an earlier epoch.
const leaderText = "event: leader\nid: 1\ndata: {\"leader\":\"jt0\",\"epoch\":1}\n\n"

// TestWatchCutOff: an incomplete event is dropped, and a malformed one ends the watch.
func TestWatchCutOff(t *testing.T) {
	t.Parallel()
	l, all, _ := startThree(t)
	l.jobs = []wire.JobStatus{{ID: job1, State: wire.Succeeded}}
	for _, c := range []struct {
		text string
		want string // part of the error; empty: the next leader is tried
	}{
		{"", ""},
		{leaderText + "event: jobs\ndata: " + `{"items":[{"id":"job_7_0001","sta`, ""},
		{leaderText + "event: jobs\ndata: " + `{"items":[{"id":"job_7_0001","state":"running"}]}` + "\n", ""},
		{leaderText + "event: problem\ndata: " + `{"code":"stopped","detail":"stopped"}` + "\n\n", ""},
		{leaderText + "event: problem\ndata: " + `{"code":"not-leader","detail":"x","addr":"` + all[0].addr + `"}` + "\n\n", ""},
		{leaderText + "event: jobs\ndata: " + `{"items":[{"id":"job_7_0001","state":"flying"}]}` + "\n\n", "malformed event: job_7_0001: unknown state"},
		{leaderText + "event: jobs\ndata: " + `{"items":[]}` + "\n\n", "the event lacks job_7_0001"},
		{leaderText + "event: jobs\ndata: garbage\n\n", "malformed event"},
		{"garbage\n", ""},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", eventsType)
			io.WriteString(w, c.text)
			http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}))
		addr := strings.TrimPrefix(server.URL, "http://")
		client := testClient(t, addr, all[0].addr)
		client.known.SetLeader(addr)
		w := watchJob(t, client)
		err := await(t, "end", w.end)
		if c.want == "" && (err != nil || await(t, "state", w.states) != "succeeded") || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%q: %v, want %q", c.text, err, c.want)
		}
		server.Close()
	}
}

// TestWatchRefusesEarlierEpoch: a watch refuses a leader of an earlier epoch, which may not know
// yet that it was replaced.
func TestWatchRefusesEarlierEpoch(t *testing.T) {
	f := &clientWatch{c: NewClient(nil), leader: "jt2", epoch: 5, lastLine: time.Now()}
	if err := f.foundLeader("h:1", &LeaderEvent{Leader: "jt1", Epoch: 4}); !errors.Is(err, core.ErrNotLeader) || f.leader != "jt2" {
		t.Errorf("%v, follows %s", err, f.leader)
	}
	if err := f.foundLeader("h:1", &LeaderEvent{Leader: "jt1", Epoch: 6}); err != nil || f.leader != "jt1" {
		t.Errorf("%v, follows %s", err, f.leader)
	}
}

func TestWatchEnds(t *testing.T) {
	t.Parallel()
	_, all, stops := startThree(t)
	c := testClient(t, all[0].addr)
	for _, err := range c.Watch(t.Context(), []wire.JobID{job1}) {
		if !errors.Is(err, admission.ErrUnknownJob) {
			t.Errorf("unknown job: %v", err)
		}
	}
	if _, err := c.Submit(t.Context(), submission("k")); err != nil {
		t.Fatal(err)
	}
	for range c.Watch(t.Context(), []wire.JobID{job1}) {
		break // ends the watch
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	n := 0
	for _, err := range c.Watch(ctx, []wire.JobID{job1}) {
		if n++; n == 1 {
			cancel(errors.New("enough"))
		} else if err == nil || !strings.Contains(err.Error(), "enough") {
			t.Errorf("cancelled: %v", err)
		}
	}
	c.WatchPatience = 100 * time.Millisecond
	w := watchJob(t, c)
	await(t, "state", w.states)
	for _, stop := range stops {
		stop()
	}
	if err := await(t, "end", w.end); !errors.Is(err, seek.ErrUnreachable) {
		t.Errorf("all job trackers are stopped: %v", err)
	}
}

// FuzzWatch: a watch returns for any bytes from a server.
func FuzzWatch(f *testing.F) {
	f.Add(leaderText + "event: jobs\ndata: " + `{"items":[{"id":"job_7_0001","state":"succeeded"}]}` + "\n\nevent: end\ndata: {}\n\n")
	f.Add(beatText + "event: problem\ndata: " + `{"code":"not-leader","detail":"x","addr":"y"}` + "\n\n")
	f.Add("event: problem\ndata: " + `{"code":"unknown-job"}` + "\n\n")
	f.Add("data: garbage\n\n\n")
	f.Fuzz(func(t *testing.T, text string) {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", eventsType)
			io.WriteString(w, text)
		}))
		defer server.Close()
		c := testClient(t, strings.TrimPrefix(server.URL, "http://"))
		c.Patience, c.WatchPatience = time.Millisecond, time.Millisecond
		membound.Bound{Free: 32 << 20, PerByte: 1024}.Check(t, len(text), func() { // of 100 attempts with a connection each
			n := 0
			for _, err := range c.Watch(t.Context(), []wire.JobID{job1}) {
				if n++; err != nil || n == 100 {
					break
				}
			}
		})
	})
}
