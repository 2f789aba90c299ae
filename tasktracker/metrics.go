package tasktracker

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/quernmr/quern/audit"
	"github.com/quernmr/quern/identity"
	"github.com/quernmr/quern/listen"
	"github.com/quernmr/quern/meter"
	"github.com/quernmr/quern/tasktracker/core"
	"github.com/quernmr/quern/tasktracker/gather"
)

// meters are what the loop counts.
type meters struct {
	steps, starts *meter.Histogram
	served        *meter.Count
	starting      map[int]time.Duration // by worker: when it was started, until its first message
}

func newMeters() meters {
	return meters{
		steps: meter.NewTimes(20 * time.Microsecond), starts: meter.NewTimes(time.Millisecond), served: new(meter.Count),
		starting: make(map[int]time.Duration),
	}
}

// Metrics are the numbers of a task tracker for its metrics. The counts go on growing.
type Metrics struct {
	Registered bool
	Census     core.Census
	Gathered   *gather.Counts
	Served     *meter.Count     // bytes of map outputs sent to other task trackers
	Steps      *meter.Histogram // times of the core's Steps
	Starts     *meter.Histogram // from the start of a worker to its first message
}

// ErrNotServing is the error of Metrics while Run does not serve.
var ErrNotServing = errors.New("the task tracker does not serve")

// Metrics returns the tracker's numbers.
func (t *Tracker) Metrics(ctx context.Context) (Metrics, error) {
	l := t.running.Load()
	if l == nil {
		return Metrics{}, ErrNotServing
	}
	counted := make(chan Metrics, 1)
	count := func() {
		counted <- Metrics{
			Registered: l.stream != nil && l.stream == l.registered, Census: l.core.Census(),
			Gathered: l.gather.Counts(), Served: l.meters.served, Steps: l.meters.steps, Starts: l.meters.starts,
		}
	}
	select {
	case l.inbox <- count:
	case <-l.done:
		return Metrics{}, ErrNotServing
	case <-ctx.Done():
		return Metrics{}, fmt.Errorf("the loop of the task tracker does not answer: %w", ctx.Err())
	}
	select {
	case m := <-counted:
		return m, nil
	case <-l.done:
		return Metrics{}, ErrNotServing
	case <-ctx.Done():
		return Metrics{}, fmt.Errorf("the loop of the task tracker does not answer: %w", ctx.Err())
	}
}

// timeStep passes an event to the core, and counts how long the Step takes, and how long workers take to
// start.
func (l *loop) timeStep(ev core.Event) []core.Command {
	began := time.Since(l.started)
	commands := l.core.Step(began, ev)
	switch ev := ev.(type) {
	case core.FromWorker:
		if at, ok := l.meters.starting[ev.Worker]; ok {
			delete(l.meters.starting, ev.Worker)
			l.meters.starts.AddTime(began - at)
		}
	case core.WorkerExited:
		delete(l.meters.starting, ev.Worker)
	}
	for _, c := range commands {
		if start, ok := c.(core.StartWorker); ok {
			l.meters.starting[start.Worker] = began
		}
	}
	l.meters.steps.AddTime(time.Since(l.started) - began)
	return commands
}

// profileWait limits a request for a profile.
const profileWait = 2 * time.Minute

// observe adds the routes of metrics and profiles.
func (l *loop) observe(routes *http.ServeMux) {
	cfg := &l.cfg.Service
	if cfg.Metrics != nil {
		routes.Handle("GET /metrics", l.only([]identity.Role{identity.Metrics, identity.Client}, cfg.Metrics))
	}
	if cfg.Profiles != nil {
		routes.Handle("GET /debug/pprof/", l.only([]identity.Role{identity.Client}, http.HandlerFunc(l.serveProfile)))
	}
}

// only passes on requests of some roles, if peers have certificates. It refuses and logs others.
func (l *loop) only(roles []identity.Role, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if peer, known := identity.PeerOf(r.TLS); l.cfg.Service.Serve != nil && (!known || !slices.Contains(roles, peer.Role)) {
			l.refuse(w, r, fmt.Errorf("a peer with the role %q may not request this", peer.Role))
			return
		}
		h.ServeHTTP(w, r)
	})
}

func (l *loop) refuse(w http.ResponseWriter, r *http.Request, err error) {
	peer, _ := identity.PeerOf(r.TLS)
	l.audit(r, audit.Refused, err.Error())
	l.cfg.Logger.Warn("a request is refused", "peer", peer, "addr", r.RemoteAddr, "path", r.URL.Path, "reason", err)
	listen.Fail(w, r, err.Error(), http.StatusForbidden)
}

func (l *loop) audit(r *http.Request, outcome, reason string) {
	action := "profile"
	if r.URL.Path == "/metrics" {
		action = "metrics"
	}
	if l.cfg.Service.Audit != nil {
		l.cfg.Service.Audit(audit.Event{Who: who(r), From: r.RemoteAddr, Action: action, On: r.URL.Path, Outcome: outcome, Reason: reason})
	}
}

// serveProfile serves profiles to administrators. Their reads are in the audit log.
func (l *loop) serveProfile(w http.ResponseWriter, r *http.Request) {
	if peer, _ := identity.PeerOf(r.TLS); l.cfg.Service.Serve != nil && !slices.Contains(l.cfg.Service.Admins, peer.Name) {
		l.refuse(w, r, fmt.Errorf("%s may not profile a task tracker: only its administrators (-admins) may", peer.Name))
		return
	}
	l.audit(r, audit.Done, "")
	control, until := http.NewResponseController(w), time.Now().Add(profileWait)
	_ = control.SetReadDeadline(until) // the server's own deadline would end a long profile
	_ = control.SetWriteDeadline(until)
	l.cfg.Service.Profiles.ServeHTTP(w, r)
}
