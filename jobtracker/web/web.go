// Package web is a job tracker's HTTP interface and its client. It serves requests of mrsubmit and
// other programs, and the streams of task trackers. A handler passes requests to a [JobTracker] and
// has no state. [Client] finds the leader.
//
// # Routes
//
// The table in routes.go has a row for each route: pattern, roles, rule for users, handler, and a description
// of its requests and answers. The mux, the checks of access and of query parameters, openapi.json (OpenAPI
// 3.1, served as /v1/openapi.json) and the tables of docs/reference.md come from it. After a change of the table
// or of a type, run
//
//	go test ./jobtracker/web -rewrite
//
// and read the differences. The texts of openapi.json about types and fields are the comments of the types here.
//
// # Access
//
// If peers have certificates, each route serves only some roles. The stream serves task trackers,
// changes serve users, and all other routes serve users and job trackers. Besides, a job tracker
// may add itself as a voter, and task trackers may call /healthz. The role metrics reads /metrics and
// /healthz. For users:
//
//	submissions         the user becomes the owner, even if the submission names another one
//	jobs, histories     all users; of a job that the user may not see, only id, flow, owner, state,
//	                    pool and time
//	explain, attempts   all users, without the jobs that the user may not see
//	events              as jobs; with ids of jobs, as jobs/ID
//	jobs/ID             users who may see the job, see admission.AccessOf; so its attempts and their
//	                    token, its explanation, and its history
//	kill, settings      users who may change the job; the core decides
//	POST and DELETE     below /v1/cluster: administrators
//	debug/pprof         administrators; each use is in the audit log
//
// The leader looks up the groups of users when a request arrives, and passes them on with it. So a
// core decides by values alone, whatever another job tracker's file of groups has.
//
// Each route states its rule, see rule. Other users get 403 with the code forbidden (admission.ErrNotAllowed), and the job tracker logs
// the request.
//
// # Forms
//
// Bodies are JSON, except for a submission, which is a wire frame like the staged one. In this
// JSON, and in the output of mrsubmit -json, ids and states are strings, times are RFC 3339, and
// durations are milliseconds.
//
// Every failure is an [Error], a problem of RFC 9457 with a code. All job trackers serve /v1/cluster, /healthz, /metrics,
// /debug/pprof/ and /v1/stream, where a follower's core refuses the task tracker. Only the leader serves other
// requests: followers answer 421 and name the leader, if they know it. A request that exceeds a
// limit for now gets 429 with the code busy and Retry-After.
//
// # Lists
//
// Each list is a [Page], or has its members and more: "items", and "next" unless it is the last page. The same
// request with ?after= and this id gets the next page. A page may be empty although others follow it. An id that
// no page can have had is refused. Pages of a list are read one after the other: an entry may change in between,
// but is never missing or listed twice.
//
// Lists of jobs and histories take filters, and are newest first. The leader filters; each page reads a
// limited number of entries, so with a filter that few jobs pass, pages are short or empty. A name matches only
// jobs that the user may see. A parameter that a route does not know, or a value that it does not understand,
// is refused with an error that names it.
//
// # Events
//
// Server-sent events tell of changes of the jobs that a request names, or of all that filters select:
//
//	leader     the first event: [LeaderEvent]; its id is the epoch
//	jobs       [JobsEvent]: first all jobs, then those that have changed
//	end        the last event: all jobs that the request names have ended
//	problem    the last event: the stream has failed with this [Error]
//
// After [beat], a comment says that the leader still leads. A stream that ends otherwise was cut off. A client
// that gets nothing for a few beats looks for another leader. It sends the last id as Last-Event-ID; so a job
// tracker that does not know yet that it was replaced refuses it. A new stream begins with the states of all
// jobs, so no change is missing.
//
// # Invariants
//
//	W1  Every read is limited in bytes, every write in time, and requests in number, see
//	    [Limits].
//	W2  A sentinel of the core is the same sentinel at the client (errors.Is).
//	W3  A change that a web page requests is refused, and every request for a host name that
//	    is not the job tracker's. So pages cannot use a browser which can reach it.
//	W4  If a client does not know whether the cluster accepted its submission, the error is
//	    client.ErrUndecided.
//
// # Files
//
// Each topic has a file with its JSON types, handlers and methods of Client: submit, submission, jobs, breakdown, flow, history, recent, plans, whatif, explain,
// settings, cluster, drain, exclusions, voters, and events (follow has its client). Common parts are in sharing (values that clients share), routes (the
// table), describe (its description), handlers (answers), query (parameters), pages (lists), admit and access (who may
// do what), limits (too many requests), refusals (their log lines), problem (errors), audit (the audit log), observe
// (metrics and profiles, which the command provides), and
// client, which finds the leader with package seek. To add a route, write a handler and a method in such a file, and a
// row in the table. CONTRIBUTING.md lists the other places, from the core to mrsubmit.
//
// Many goroutines may use a handler or a Client at once.
package web

import (
	"context"
	"iter"
	"log/slog"
	"net/http"
	"time"

	"github.com/quernmr/quern/audit"
	"github.com/quernmr/quern/groups"
	"github.com/quernmr/quern/history"
	"github.com/quernmr/quern/jobtracker"
	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/jobtracker/core/pastplans"
	"github.com/quernmr/quern/listen"
	"github.com/quernmr/quern/sparselog"
	"github.com/quernmr/quern/wire"
)

// JobTracker has the methods of jobtracker.Server that a handler calls.
type JobTracker interface {
	Submit(ctx context.Context, caller core.Caller, sub wire.Submission) ([]wire.JobID, error)
	Kill(ctx context.Context, caller core.Caller, job wire.JobID, reason string) error
	EndAttempt(ctx context.Context, caller core.Caller, attempt wire.AttemptID, fail bool, reason string) error
	Change(ctx context.Context, caller core.Caller, job wire.JobID, change wire.Change) error
	Schedule(ctx context.Context, scheduling wire.Scheduling) error
	Drain(ctx context.Context, tracker string, undo bool) error
	Exclude(ctx context.Context, x core.Exclude) error                                 // sets Token and Wall
	Changes(ctx context.Context, jobs []wire.JobID) iter.Seq2[[]wire.JobStatus, error] // first of all jobs
	Follow(ctx context.Context) iter.Seq2[[]core.Listed, error]                        // all jobs that change after the call; ctx must end
	Jobs(ctx context.Context, q core.Query) (page []wire.JobStatus, next wire.JobID, err error)
	Attempts(ctx context.Context, caller core.Caller, job wire.JobID, after wire.AttemptID) (wire.JobAttempts, error)
	Recent(ctx context.Context) (*core.Recent, error)
	PastPlans(ctx context.Context) ([2]pastplans.View, error)                // maps, reduces
	CheckView(ctx context.Context, caller core.Caller, job wire.JobID) error // nil, too, if only the history knows who may see the job
	History(ctx context.Context, caller core.Caller, job wire.JobID) (*history.Record, error)
	Histories(ctx context.Context, q core.Query) (*history.Page, error) // with who may see the jobs
	Submission(ctx context.Context, caller core.Caller, job wire.JobID) (wire.JobSubmission, error)
	ProgramBytes(x *wire.JobSubmission) (int64, error)
	Breakdown(ctx context.Context, job wire.JobID) (*jobtracker.JobBreakdown, error) // checks no permission
	WhatIf(ctx context.Context) (*jobtracker.WhatIf, error)
	Explain(ctx context.Context, job wire.JobID) (wire.Explanation, error)
	Explanations(ctx context.Context, after wire.JobID) (page []wire.Explanation, next wire.JobID, err error)
	Cluster(ctx context.Context) (wire.ClusterStatus, error) // answers on followers too
	Leadership() core.Leadership                             // answers at once
	Attach(conn *wire.Conn, tracker string) error            // tracker is the name in its certificate; empty: any
}

// Stored is a log that counts its writes since it was opened.
type Stored interface {
	Stored() (entries, bytes int64)
}

// Config configures a handler. Server must be set.
type Config struct {
	ID     string // of this job tracker
	Server JobTracker
	Voters Voters       // nil: the log has no voters
	Log    Stored       // nil: writes are not reported
	Logger *slog.Logger // nil: silent

	// Metrics serves /metrics, and Profiles /debug/pprof/; nil: there is no such route.
	Metrics, Profiles http.Handler

	// Audit records changes and refusals, and must not wait; nil: they are not recorded.
	Audit func(audit.Event)

	// Identified: every peer has a certificate of package identity. Then each route
	// serves only its roles, and the core knows the caller.
	Identified bool

	// Admins and the users in AdminGroups are the administrators, if Identified.
	Admins, AdminGroups []string

	// Groups returns the groups of users, for ACLs and AdminGroups; nil: groups have no users.
	Groups func() *groups.Table

	// UsersStage: each user stages in a directory of their own. Needs Identified.
	UsersStage bool

	Limits Limits // of requests

	now        func() time.Time // default: time.Now
	helloLimit time.Duration    // limit until a stream's first byte; default helloWait
}

// Limits of bytes from the network, and of times.
const (
	maxHeader   = 64 << 10 // bytes, with the URL
	maxBody     = 64 << 10 // bytes of a JSON body
	headerWait  = 10 * time.Second
	requestWait = 30 * time.Second // to serve a request, and again to send its answer
	idleWait    = 2 * time.Minute
	helloWait   = 10 * time.Second // from a stream's upgrade to its first byte
	lineWait    = 10 * time.Second // to send one event
)

// beat is the time between two beats in a stream of events.
const beat = 500 * time.Millisecond

// API is the handler of all routes.
type API struct {
	http.Handler
	leadership func() core.Leadership
}

// Term is the number of the latest term that this job tracker knows, and whether it leads in it.
func (a *API) Term() (epoch uint64, leads bool) {
	l := a.leadership()
	return l.Epoch, l.Leads
}

// New makes the handler of all routes.
func New(cfg Config) *API {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.now == nil {
		cfg.now = time.Now
	}
	if cfg.helloLimit == 0 {
		cfg.helloLimit = helloWait
	}
	h := &handler{
		Config: cfg, counters: newCounters(cfg.Limits), refusals: &refusals{logger: cfg.Logger}, first: make(chan struct{}, firstLists), shared: newShared(&cfg),
	}
	mux := http.NewServeMux()
	for _, r := range h.routes() {
		r.serve = h.limit(h.counters.of(r.pattern), r.serve)
		h.handle(mux, r)
	}
	mux.HandleFunc("/", h.jsonHandler(func(_ context.Context, r *http.Request) (any, error) {
		return nil, &Error{Code: codeNotFound, Text: "no such route: " + r.Method + " " + r.URL.Path}
	}))
	return &API{mux, func() core.Leadership { return cfg.Server.Leadership() }}
}

// NewServer makes the HTTP server for a handler of [New], with bounds for sizes and times. It serves
// requests for these names. Refusals of other names go to record, see Config.Audit. The caller listens,
// serves and closes.
func NewServer(h http.Handler, names listen.Names, logger *slog.Logger, record func(audit.Event)) *http.Server {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	return listen.Server(&http.Server{
		Handler:           names.Handler(h, refuseHost(logger, record)),
		ReadHeaderTimeout: headerWait,
		ReadTimeout:       requestWait,
		IdleTimeout:       idleWait,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          slog.NewLogLogger(sparselog.Handler(logger.Handler()), slog.LevelWarn),
	})
}
