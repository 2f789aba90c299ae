package tasktracker

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/quernmr/quern/audit"
	"github.com/quernmr/quern/identity"
	"github.com/quernmr/quern/listen"
	"github.com/quernmr/quern/shuffle"
	"github.com/quernmr/quern/sparselog"
	"github.com/quernmr/quern/tasktracker/token"
	"github.com/quernmr/quern/wire"
)

// Timeouts of a connection: a client that hangs must not hold a goroutine or a file for
// ever. Long answers get more time as they are read, see packages attemptlog and shuffle.
const (
	headerWait = 10 * time.Second // to read a request, which has no body
	answerWait = time.Minute      // to write an answer
	idleWait   = 2 * time.Minute  // for the next request; longer than fetching trackers keep a connection
	maxHeader  = 16 << 10         // bytes
)

// Service configures the HTTP server for map outputs and logs.
type Service struct {
	Listen    string // address; port 0 takes a free one
	Advertise string // host:port that other machines can reach; empty: the listening address

	// Serve and Dial are the TLS configurations of the server and of fetches from other
	// trackers; nil: no TLS.
	Serve, Dial *tls.Config

	Names  listen.Names  // names of this machine that requests may use, beside addresses and localhost
	Limits listen.Limits // of connections

	// Audit records reads of logs and of profiles, and refusals, and must not wait; nil: they are not recorded.
	Audit func(audit.Event)

	// Metrics serves /metrics, and Profiles /debug/pprof/; nil: there is no such route.
	Metrics, Profiles http.Handler
	Admins            []string // with Serve, the users who may read profiles
}

// newServer returns the HTTP server of a task tracker. ReadTimeout also ends each
// request's context after headerWait, so handlers of long answers must not use that
// context.
func newServer(routes http.Handler, errorLog *log.Logger) *http.Server {
	return listen.Server(&http.Server{
		Handler:           routes,
		ReadHeaderTimeout: headerWait,
		ReadTimeout:       headerWait,
		WriteTimeout:      answerWait,
		IdleTimeout:       idleWait,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          errorLog,
	})
}

// serve starts the HTTP server.
func (l *loop) serve(listener net.Listener) {
	routes := http.NewServeMux()
	refusals := slog.New(sparselog.Handler(l.cfg.Logger.Handler()))
	routes.Handle("/shuffle/{job}/", l.guard(refusals, identity.TaskTracker, token.ForShuffle, shuffle.Handler(l.disks.OutputPath, l.meters.served)))
	routes.Handle("GET /logs/{job}/{attempt}/{stream}", l.guard(refusals, identity.Client, token.ForLogs, http.HandlerFunc(l.serveLog)))
	routes.HandleFunc("GET /healthz", l.serveHealth) // for every peer with a certificate
	l.observe(routes)
	level := slog.LevelDebug
	if l.cfg.Service.Serve != nil {
		level = slog.LevelWarn // only this log shows peers without a certificate
	}
	l.server = newServer(l.cfg.Service.Names.Handler(routes, l.refuseHost(refusals)), slog.NewLogLogger(sparselog.Handler(l.cfg.Logger.Handler()), level))
	limits := l.cfg.Service.Limits
	limits.Logger = l.cfg.Logger
	listener = listen.Limit(listener, limits)
	l.wait.Go(func() {
		if l.cfg.Service.Serve != nil {
			listener = identity.Listen(listener, l.cfg.Service.Serve)
		}
		if err := l.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			l.cancel(fmt.Errorf("serve fetches: %w", err))
		}
	})
}

// refuseHost answers requests for another host, see [listen.Names].
func (l *loop) refuseHost(log *slog.Logger) func(http.ResponseWriter, *http.Request, error) {
	return func(w http.ResponseWriter, r *http.Request, err error) {
		peer, _ := identity.PeerOf(r.TLS)
		if record := l.cfg.Service.Audit; record != nil {
			record(audit.ForeignHost(who(r), r, err))
		}
		log.Warn("a request is refused", "peer", peer, "addr", r.RemoteAddr, "path", r.URL.Path, "reason", err)
		fail(w, r, err.Error(), http.StatusForbidden)
	}
}

// fail answers a request with an error. Fetches get plain text, as other versions expect.
func fail(w http.ResponseWriter, r *http.Request, text string, status int) {
	if strings.HasPrefix(r.URL.Path, "/shuffle/") {
		http.Error(w, text, status)
		return
	}
	listen.Fail(w, r, text, status)
}

// guard passes on requests with the job's token. With TLS, the peer must also have the
// role. It refuses and logs other requests.
func (l *loop) guard(log *slog.Logger, role identity.Role, use token.Use, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		peer, known := identity.PeerOf(r.TLS)
		record := func(outcome, reason string) {
			if l.cfg.Service.Audit != nil && (use == token.ForLogs || outcome != audit.Done) {
				l.cfg.Service.Audit(audit.Event{Who: who(r), From: r.RemoteAddr, Action: readActions[use], On: r.URL.Path, Outcome: outcome, Reason: reason})
			}
		}
		refuse := func(status int, err error) {
			record(audit.Refused, err.Error())
			log.Warn("a request is refused", "peer", peer, "addr", r.RemoteAddr, "path", r.URL.Path, "reason", err)
			fail(w, r, err.Error(), status)
		}
		if l.cfg.Service.Serve != nil && (!known || peer.Role != role) {
			refuse(http.StatusForbidden, fmt.Errorf("only a %s may request this", role))
			return
		}
		job, err := wire.ParseJobID(r.PathValue("job"))
		if err != nil {
			fail(w, r, err.Error(), http.StatusBadRequest)
			return
		}
		presented, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		switch err := l.tokens.Check(job, presented, use, peer.Name); {
		case errors.Is(err, token.ErrNoToken):
			w.Header().Set("WWW-Authenticate", "Bearer")
			refuse(http.StatusUnauthorized, err)
		case err != nil:
			refuse(http.StatusForbidden, err)
		default:
			record(audit.Done, "")
			h.ServeHTTP(w, r)
		}
	})
}

// who returns the role and name of a request's peer.
func who(r *http.Request) string {
	if peer, ok := identity.PeerOf(r.TLS); ok {
		return peer.String()
	}
	return "unidentified"
}

// readActions are the names of uses of a token in the audit log.
var readActions = map[token.Use]string{token.ForShuffle: "fetch map output", token.ForLogs: "read log"}

// serveHealth reports whether the loop answers.
func (l *loop) serveHealth(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), headerWait)
	defer cancel()
	answer := make(chan bool, 1)
	select {
	case l.inbox <- func() { answer <- l.stream != nil && l.stream == l.registered }:
	case <-l.done:
	case <-ctx.Done():
	}
	select {
	case registered := <-answer:
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(struct { // an error means that the client has gone
			ID  string `json:"id"`
			Led bool   `json:"led"`
		}{l.cfg.ID, registered})
	case <-l.done:
		listen.Fail(w, r, "the task tracker is shutting down", http.StatusServiceUnavailable)
	case <-ctx.Done():
		listen.Fail(w, r, "the loop of the task tracker does not answer", http.StatusServiceUnavailable)
	}
}
