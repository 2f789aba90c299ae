package web

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/quernmr/quern/identity"
	"github.com/quernmr/quern/wire"
)

const ofJob1 = "?job=job_7_0001"

// openEvents opens a stream of events. It calls beats for each beat.
func openEvents(t *testing.T, addr, query, last string, beats func()) (*http.Response, *eventReader) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr+eventsPath+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	if last != "" {
		r.Header.Set(lastEventID, last)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return resp, newEventReader(resp.Body, func(comment bool) {
		if comment {
			beats()
		}
	})
}

// TestEvents: a stream of events takes longer than ReadTimeout, which limits other requests. The events have the
// described forms.
func TestEvents(t *testing.T) {
	l := newFakeLog()
	l.readLimit = time.Second
	f, c := l.startOne(t)
	if _, err := c.Submit(t.Context(), submission("k")); err != nil {
		t.Fatal(err)
	}
	n := 0
	resp, in := openEvents(t, f.addr, ofJob1, "2", func() {
		if n++; n == int(2*l.readLimit/beat) {
			f.log.setState(job1, wire.Succeeded)
		}
	})
	if kind := resp.Header.Get("Content-Type"); kind != eventsType || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s, %s", resp.Status, kind)
	}
	var names []string
	for in.next() {
		names = append(names, in.name)
		if err := answers().check(in.data, "paths", eventsPath, "get", "responses", "200", "content", eventsType, "x-events", in.name); err != nil {
			t.Errorf("%s: %s\n%v", in.name, in.data, err)
		}
	}
	if got := strings.Join(names, " "); n < int(2*l.readLimit/beat) || got != "leader jobs jobs end" || in.err != nil {
		t.Errorf("after %d beats: %s, %v", n, got, in.err)
	}
}

// TestEventsOfOldEpoch: a stream ends if its leader leads a later epoch: other ones may have led in between.
func TestEventsOfOldEpoch(t *testing.T) {
	f, c := startOne(t)
	if _, err := c.Submit(t.Context(), submission("k")); err != nil {
		t.Fatal(err)
	}
	n := 0
	_, in := openEvents(t, f.addr, ofJob1, "", func() {
		if n++; n == 1 {
			f.log.setLeader(f)
		}
	})
	for in.next() && in.name != eventProblem {
	}
	if text := string(in.data); !strings.Contains(text, `"detail":"events of epoch 2 in epoch 3`) || !strings.Contains(text, `"code":"not-leader"`) {
		t.Errorf("the last event is %s %s", in.name, text)
	}
}

// TestLastEvent: a job tracker that led an earlier epoch than that of the client's last event refuses to send events.
func TestLastEvent(t *testing.T) {
	f, c := startOne(t)
	if _, err := c.Submit(t.Context(), submission("k")); err != nil {
		t.Fatal(err)
	}
	for last, want := range map[string]string{"3": `"code":"not-leader"`, "x": `header Last-Event-ID: want the id of an event`} {
		resp, _ := openEvents(t, f.addr, ofJob1, last, func() {})
		body, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode == http.StatusOK || !strings.Contains(string(body), want) {
			t.Errorf("last event %s: %s %s, %v", last, resp.Status, body, err)
		}
		checkAnswer(t, http.MethodGet, eventsPath, resp.StatusCode, resp.Header, body)
	}
}

// TestSelectedEvents: a stream with a filter has the jobs that the filter selects, and each change of them; a job
// that it no longer selects comes once more.
func TestSelectedEvents(t *testing.T) {
	f, c := startOne(t)
	submit := func(key string, names ...string) {
		sub := submission(key)
		sub.Plan.Jobs = make([]wire.JobPlan, len(names))
		for i, name := range names {
			sub.Plan.Jobs[i].Name = name
		}
		if _, err := c.Submit(t.Context(), sub); err != nil {
			t.Fatal(err)
		}
	}
	submit("k1", "daily-a", "hourly", "daily-b", "daily-c")
	_, in := openEvents(t, f.addr, "?state=running&name=daily-*", "", func() {})
	next := func(what, want string) {
		t.Helper()
		if !in.next() || in.name == eventLeader && !in.next() {
			t.Fatalf("%s: no event, %v", what, in.err)
		}
		var event JobsEvent
		if err := json.Unmarshal(in.data, &event); err != nil || in.name != eventJobs {
			t.Fatalf("%s: %s %s, %v", what, in.name, in.data, err)
		}
		var got []string
		for i := range event.Items {
			got = append(got, event.Items[i].Name+" "+event.Items[i].State)
		}
		if text := strings.Join(got, ", "); text != want {
			t.Errorf("%s: %s, want %s", what, text, want)
		}
	}
	next("first states", "daily-c running, daily-b running, daily-a running")
	f.log.setState(wire.JobID{Start: 7, N: 3}, wire.Failed)
	next("the end of a job", "daily-a running, daily-b failed, daily-c running")
	f.log.setState(wire.JobID{Start: 7, N: 1}, wire.Killed)
	next("the end of another job", "daily-a killed, daily-c running")
	submit("k2", "daily-d", "weekly")
	next("a new job", "daily-c running, daily-d running")
}

// TestSelectedEventsAreHidden: a stream with a filter shows of other users' jobs what a list shows, and no filter
// of names finds them.
func TestSelectedEventsAreHidden(t *testing.T) {
	for user, sees := range map[string]bool{"vera": true, "bob": false} {
		for query, found := range map[string]bool{"": true, "?owner=ann": true, "?name=secret*": sees} {
			l := newFakeLog()
			f := &fake{log: l, id: "jt1"}
			l.setLeader(f)
			l.jobs = []wire.JobStatus{secretJob()}
			ctx, cancel := context.WithCancel(t.Context())
			r := httptest.NewRequestWithContext(ctx, http.MethodGet, eventsPath+query, nil)
			r.TLS = peerState(identity.Client, user)
			near, far := io.Pipe()
			served := make(chan struct{})
			go func() {
				defer close(served)
				New(Config{Server: f, Identified: true}).ServeHTTP(&pipeWriter{far, make(http.Header)}, r)
				far.Close()
			}()
			in := newEventReader(near, func(bool) {})
			for in.name != eventJobs {
				if !in.next() {
					t.Fatal("no events")
				}
			}
			if text := string(in.data); strings.Contains(text, "secret") != (sees && found) || strings.Contains(text, `"owner":"ann"`) != found {
				t.Errorf("%s gets for %q %s", user, query, text)
			}
			l.change(func() { l.jobs[0].Error = "another secret" })
			if found && in.next() && strings.Contains(string(in.data), "secret") != sees {
				t.Errorf("%s then gets for %q %s", user, query, in.data)
			}
			cancel()
			near.Close()
			<-served
		}
	}
}

// TestEventReader reads events in all forms that the standard of server-sent events allows for ours.
func TestEventReader(t *testing.T) {
	text := "event: a\ndata: 1\n\n: comment\n\nevent:b\r\ndata:2\r\ndata: 3\r\nid: 7\r\n\r\nevent: without data\n\ndata\n\nretry: 5\nevent: cut\ndata: x\n"
	beats := 0
	in := newEventReader(strings.NewReader(text), func(comment bool) {
		if comment {
			beats++
		}
	})
	var got []string
	for in.next() {
		got = append(got, in.name+"="+string(in.data))
	}
	if all := strings.Join(got, "|"); all != "a=1|b=2\n3|=" || beats != 1 || in.err != nil {
		t.Errorf("%q, %d comments, %v", all, beats, in.err)
	}
}
