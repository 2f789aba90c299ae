package web

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// Limits are how many requests a job tracker serves at a time; 0 means no limit. A request beyond
// its limit is refused with the code busy before its body is read. Streams of task trackers,
// /healthz, /metrics and /debug/pprof/ have no limit.
type Limits struct {
	Submissions int
	Watches     int
	Requests    int // others
}

// busyWait is how long a client should wait after such a refusal.
const busyWait = time.Second

// counted limits the requests of one kind.
type counted struct {
	name    string // of the limit
	limit   int
	serving atomic.Int64
}

// counters are the limits in use.
type counters struct{ submissions, watches, requests counted }

func newCounters(l Limits) *counters {
	c := new(counters)
	c.submissions.name, c.submissions.limit = "submissions", l.Submissions
	c.watches.name, c.watches.limit = "watches", l.Watches
	c.requests.name, c.requests.limit = "requests", l.Requests
	return c
}

// of returns the limit of a route; nil: it has none.
func (c *counters) of(pattern string) *counted {
	switch _, path, _ := strings.Cut(pattern, " "); path {
	case "/v1/stream", "/healthz", "/metrics", "/debug/pprof/":
		return nil
	case submissionsPath:
		return &c.submissions
	case eventsPath:
		return &c.watches
	}
	return &c.requests
}

// inUse lists the limits and how much of them is used.
func (c *counters) inUse() (all []Limit) {
	for _, x := range []*counted{&c.submissions, &c.watches, &c.requests} {
		if x.limit > 0 {
			all = append(all, Limit{Name: x.name, Used: min(int(x.serving.Load()), x.limit), Max: x.limit})
		}
	}
	return all
}

// limit makes a handler that refuses requests beyond the limit of a route.
func (h *handler) limit(c *counted, serve http.HandlerFunc) http.HandlerFunc {
	if c == nil || c.limit == 0 {
		return serve
	}
	return func(w http.ResponseWriter, r *http.Request) {
		defer c.serving.Add(-1)
		if c.serving.Add(1) > int64(c.limit) {
			err := &Error{
				Code: codeBusy, RetrySeconds: int(busyWait / time.Second), Untouched: true,
				Text: fmt.Sprintf("requests that the job tracker serves: at most %d at a time (%s)", c.limit, c.name),
			}
			h.refusals.add(c.name, c.limit, err)
			h.fail(w, r, err)
			return
		}
		serve(w, r)
	}
}

// maxRetrySeconds bounds what another process may ask.
const maxRetrySeconds = 3600

// RetryAfter returns how long to wait before the request is repeated; ok is false if repeating does
// not help.
func (e *Error) RetryAfter() (wait time.Duration, ok bool) {
	return time.Duration(min(max(e.RetrySeconds, 1), maxRetrySeconds)) * time.Second, e.Code == codeBusy
}

// busyNoteEvery is the time between two notes of a client that waits.
const busyNoteEvery = time.Minute

// busyWaiter repeats a request that job trackers refuse with the code busy.
type busyWaiter struct {
	c        *Client
	patience time.Duration // 0: without limit
	began    time.Time     // of the first refusal
}

// again reports whether err is such a refusal, after a pause. Many clients wait different times. It
// fails if the patience is over, or ctx has ended.
func (b *busyWaiter) again(ctx context.Context, err error) (bool, error) {
	var e *Error
	if !errors.As(err, &e) {
		return false, nil
	}
	wait, busy := e.RetryAfter()
	if !busy {
		return false, nil
	}
	if b.began.IsZero() {
		b.began = time.Now()
	}
	waited := time.Since(b.began)
	if b.patience > 0 && waited >= b.patience {
		return false, fmt.Errorf("refused for %v: %w", waited.Round(time.Second), err)
	}
	b.c.noteBusy(err)
	timer := time.NewTimer(wait + rand.N(wait))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true, nil
	case <-ctx.Done():
		return false, fmt.Errorf("%w: %w", context.Cause(ctx), err)
	}
}

// noteBusy notes that a request waits, once a minute for all requests of the client.
func (c *Client) noteBusy(err error) {
	c.busy.mu.Lock()
	defer c.busy.mu.Unlock()
	if now := time.Now(); c.busy.noted.IsZero() || now.Sub(c.busy.noted) >= busyNoteEvery {
		c.busy.noted = now
		c.note("waiting until the cluster accepts the request: %v", err)
	}
}
