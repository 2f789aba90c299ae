// Package web is a job tracker's HTTP interface and its client: what mrsubmit and
// other programs ask, and the streams of task trackers. It decides nothing and
// keeps nothing: a handler hands requests to a [JobTracker], and [Client] finds
// the job tracker that leads.
//
// # Routes
//
//	GET    /v1/stream                Upgrade: quern-stream/1; then wire frames both ways
//	POST   /v1/submissions           body: one frame of a wire.Submission; answers {"jobs": [id, …]}
//	GET    /v1/jobs                  {"jobs": [Job, …]}, oldest first, without counters and troubles
//	GET    /v1/jobs/ID               Job
//	POST   /v1/jobs/ID/kill          body: {"reason": text}
//	POST   /v1/jobs/ID/terms         body: Change, of the submission that the job is of
//	GET    /v1/jobs/ID/attempts      Attempts; with the job's token for whom that is
//	GET    /v1/jobs/ID/explain       Explanation
//	GET    /v1/explain               {"jobs": [Explanation, …]}, of jobs that have not ended, by id
//	GET    /v1/watch?job=ID&job=ID   lines, see below
//	GET    /v1/cluster               Cluster; of a follower without task trackers
//	GET    /healthz                  {"id": own, "led": it knows a leader}; of a follower too
//	POST   /v1/cluster/scheduling    body: Scheduling
//	POST   /v1/cluster/drains        body: {"tracker": id, "undo": false}
//	POST   /v1/cluster/voters        body: Voter
//	DELETE /v1/cluster/voters/ID
//
// # Who may
//
// Where peers have certificates, each route serves some roles: the stream task
// trackers, what changes something users, all else users and job trackers. A job
// tracker may ask for its own vote. Of users
//
//	submissions         are of whoever sends them, whatever they say
//	kill, terms         are for the job's owner and administrators, by the core
//	attempts            are told to all; the token, to owner and administrators
//	POST and DELETE     below /v1/cluster are for administrators
//
// Whoever is refused gets 403 and the code forbidden, admission.ErrNotAllowed, and the job
// tracker logs it.
//
// Bodies are JSON but for the submission, which is the frame that is staged too. In JSON,
// here and in what mrsubmit tells with -json, ids and states are texts, times are RFC 3339,
// and durations are in milliseconds.
// Every failure is an [Error] with a code. A job tracker that does not lead
// answers 421 with the leader, as far as it knows, to everything but
// /v1/cluster, /healthz and /v1/stream; a tracker that comes there is refused by the core.
//
// # Watching
//
// A watch is one JSON object a line:
//
//	{"leader": id, "epoch": n}     the first line
//	{"jobs": [Job, …]}             all of them, whenever one has changed
//	{"beat": true}                 nothing else for [beat]: the leader lives, and leads
//	{"end": true}                  the last line: all have ended
//	{"error": Error}               the last line: the watch has failed
//
// A watch that ends otherwise was cut off. A client that hears nothing for a few
// beats looks for another leader.
//
// # Invariants
//
//	W1  Nothing is read without a bound in bytes or written without one in time.
//	W2  A sentinel of the core is the same sentinel at the client (errors.Is).
//	W3  A request that changes something and comes from a web page is refused, so
//	    that no page can use a browser beside the job tracker.
//	W4  What a client may have brought about without hearing of it is told as
//	    client.ErrUndecided, never as a failure.
//
// # Files
//
// A thing that can be asked about is a file, with its form in JSON, its handlers and the
// Client's methods: submit, jobs, explain, settings, cluster, drain, voters, watch. What all
// of them need is below: handlers (a route's frame), admit (who may), problem (errors on
// their way), client, which finds the leader by package seek. follow is the client's side of
// watch. A route is a handler and a method in such a file, a line in handler.routes, one in
// the table above, and one in docs/reference.md; CONTRIBUTING.md names what it takes from the
// core to mrsubmit.
//
// A handler and a Client may be used by many goroutines.
package web

import (
	"context"
	"iter"
	"log/slog"
	"net/http"
	"time"

	"github.com/quernmr/quern/identity"
	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/wire"
)

// JobTracker is what the handler serves: a jobtracker.Server.
type JobTracker interface {
	Submit(ctx context.Context, by core.Asker, sub wire.Submission) ([]wire.JobID, error)
	Kill(ctx context.Context, by core.Asker, job wire.JobID, reason string) error
	Change(ctx context.Context, by core.Asker, job wire.JobID, change wire.Change) error
	Schedule(ctx context.Context, scheduling wire.Scheduling) error
	Drain(ctx context.Context, tracker string, undo bool) error
	Watch(ctx context.Context, jobs []wire.JobID) iter.Seq2[[]wire.JobStatus, error]
	Jobs(ctx context.Context) ([]wire.JobStatus, error)
	Attempts(ctx context.Context, by core.Asker, job wire.JobID) (wire.JobAttempts, error)
	Explain(ctx context.Context, job wire.JobID) (wire.Explanation, error)
	Explanations(ctx context.Context) ([]wire.Explanation, error)
	Cluster(ctx context.Context) (wire.ClusterStatus, error) // answers on followers too
	Attach(conn *wire.Conn, tracker string) error            // by its certificate; empty: anybody
}

// Stored is a log that tells how much it has written since it was opened.
type Stored interface {
	Stored() (entries, bytes int64)
}

// Config says what a handler serves. Server must be set.
type Config struct {
	ID     string // of this job tracker
	Server JobTracker
	Voters Voters       // nil: the log has no others
	Log    Stored       // nil: it is not told
	Logger *slog.Logger // nil: silent

	// Identified says that every peer has a certificate of package identity. Then
	// each route serves its roles alone, and who asks is known to the core.
	Identified bool

	// Admins are the users who may do everything, where who asks is known.
	Admins []string

	now   func() time.Time // nil: time.Now
	hello time.Duration    // 0: helloWait
}

// Bounds of what is taken from the network and of how long it may take.
const (
	maxHeader   = 64 << 10 // bytes, the URL of a watch among them
	maxSmall    = 64 << 10 // bytes of a JSON body
	headerWait  = 10 * time.Second
	requestWait = 30 * time.Second // for one request's work, and again for its answer
	idleWait    = 2 * time.Minute
	helloWait   = 10 * time.Second // from a stream's upgrade to its first byte
	lineWait    = 10 * time.Second // for one line of a watch to be taken
)

// beat is the longest that a watch is silent.
const beat = 500 * time.Millisecond

// New makes the handler of all routes.
func New(cfg Config) http.Handler {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.now == nil {
		cfg.now = time.Now
	}
	if cfg.hello == 0 {
		cfg.hello = helloWait
	}
	h := &handler{cfg}
	mux := http.NewServeMux()
	for _, r := range h.routes() {
		h.handle(mux, r)
	}
	mux.HandleFunc("/", h.short(func(_ context.Context, r *http.Request) (any, error) {
		return nil, &Error{Code: codeNotFound, Text: "no such route: " + r.Method + " " + r.URL.Path}
	}))
	return mux
}

// route is a method and a path, the roles that may ask, and the answer.
type route struct {
	pattern string
	roles   []identity.Role
	serve   http.HandlerFunc
}

// routes are those of the package comment.
func (h *handler) routes() []route {
	trackers, clients := []identity.Role{identity.TaskTracker}, []identity.Role{identity.Client}
	voters := []identity.Role{identity.JobTracker, identity.Client}
	everybody := []identity.Role{identity.Client, identity.JobTracker}
	all := []identity.Role{identity.TaskTracker, identity.Client, identity.JobTracker}
	return []route{
		{"GET /v1/stream", trackers, h.stream},
		{"GET /v1/watch", everybody, h.watch},
		{"POST /v1/submissions", clients, h.short(h.submit)},
		{"GET /v1/jobs", everybody, h.short(h.jobs)},
		{"GET /v1/jobs/{id}", everybody, h.short(h.job)},
		{"POST /v1/jobs/{id}/kill", clients, h.short(h.kill)},
		{"POST /v1/jobs/{id}/terms", clients, h.short(h.change)},
		{"GET /v1/jobs/{id}/attempts", everybody, h.short(h.attempts)},
		{"GET /v1/jobs/{id}/explain", everybody, h.short(h.explain)},
		{"GET /v1/explain", everybody, h.short(h.explainAll)},
		{"GET /v1/cluster", everybody, h.short(h.cluster)},
		{"GET /healthz", all, h.short(h.health)},
		{"POST /v1/cluster/scheduling", clients, h.short(h.schedule)},
		{"POST /v1/cluster/drains", clients, h.short(h.drain)},
		{"POST /v1/cluster/voters", voters, h.short(h.addVoter)},
		{"DELETE /v1/cluster/voters/{id}", clients, h.short(h.removeVoter)},
	}
}

// NewServer makes the HTTP server for a handler of [New], with every size and
// time bounded. Its caller listens, serves and closes.
func NewServer(h http.Handler, logger *slog.Logger) *http.Server {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: headerWait,
		ReadTimeout:       requestWait,
		IdleTimeout:       idleWait,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          slog.NewLogLogger(logger.Handler(), slog.LevelWarn),
	}
}
