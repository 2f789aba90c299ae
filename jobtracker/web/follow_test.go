package web

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/quernmr/quern/internal/membound"
	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/jobtracker/core/admission"
	"github.com/quernmr/quern/jobtracker/web/seek"
	"github.com/quernmr/quern/wire"
)

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

// TestFollowAll: Follow yields all jobs, and then those that change.
func TestFollowAll(t *testing.T) {
	f, c := startOne(t)
	for _, key := range []string{"k1", "k2"} {
		if _, err := c.Submit(t.Context(), submission(key)); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	events := 0
	for jobs, err := range c.Follow(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		switch events++; {
		case events == 1:
			if len(jobs) != 2 {
				t.Fatalf("the first event has %d jobs, want 2", len(jobs))
			}
			f.log.setState(job1, wire.Succeeded)
		case len(jobs) > 0 && jobs[0].State == wire.Succeeded.String():
			return
		}
	}
	t.Error("the stream has ended")
}
