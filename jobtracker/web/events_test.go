package web

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/quernmr/quern/wire"
)

// openEvents opens the stream of events of the first job. beats gets a value for each beat.
func openEvents(t *testing.T, addr, last string, beats func()) (*http.Response, *eventReader) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr+eventsPath+"?job=job_7_0001", nil)
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
	f, c := startOne(t)
	if _, err := c.Submit(t.Context(), submission("k")); err != nil {
		t.Fatal(err)
	}
	n := 0
	resp, in := openEvents(t, f.addr, "2", func() {
		if n++; n == 2 {
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
	if got := strings.Join(names, " "); n < 2 || got != "leader jobs jobs end" || in.err != nil {
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
	_, in := openEvents(t, f.addr, "", func() {
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
		resp, _ := openEvents(t, f.addr, last, func() {})
		body, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode == http.StatusOK || !strings.Contains(string(body), want) {
			t.Errorf("last event %s: %s %s, %v", last, resp.Status, body, err)
		}
		checkAnswer(t, http.MethodGet, eventsPath, resp.StatusCode, resp.Header, body)
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
