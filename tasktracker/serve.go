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

	"github.com/quernmr/quern/identity"
	"github.com/quernmr/quern/shuffle"
	"github.com/quernmr/quern/tasktracker/token"
	"github.com/quernmr/quern/wire"
)

// What a connection may take, so that none holds a goroutine or a file for ever.
// Answers that are long get more time as they are read: see packages attemptlog and shuffle.
const (
	headerWait = 10 * time.Second // for a request, which has no body
	answerWait = time.Minute      // for an answer
	idleWait   = 2 * time.Minute  // for the next request; longer than those who fetch keep a connection
	maxHeader  = 16 << 10         // bytes
)

// newServer is the HTTP server of a task tracker. ReadTimeout also ends each request's
// context, headerWait after its beginning: an answer that may take longer has to leave
// that context alone.
func newServer(routes http.Handler, errorLog *log.Logger) *http.Server {
	return &http.Server{
		Handler:           routes,
		ReadHeaderTimeout: headerWait,
		ReadTimeout:       headerWait,
		WriteTimeout:      answerWait,
		IdleTimeout:       idleWait,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          errorLog,
	}
}

// serve starts the shuffle service.
func (l *loop) serve(listener net.Listener) {
	routes := http.NewServeMux()
	routes.Handle("/shuffle/{job}/", l.guard(identity.TaskTracker, token.ForShuffle, shuffle.Handler(l.disks.Output)))
	routes.Handle("GET /logs/{job}/{attempt}/{stream}", l.guard(identity.Client, token.ForLogs, http.HandlerFunc(l.serveLog)))
	routes.HandleFunc("GET /healthz", l.serveHealth) // for whoever was let in
	level := slog.LevelDebug
	if l.cfg.Service.Serve != nil {
		level = slog.LevelWarn // who has no certificate is heard of here alone
	}
	l.server = newServer(routes, slog.NewLogLogger(l.cfg.Logger.Handler(), level))
	l.wait.Go(func() {
		if l.cfg.Service.Serve != nil {
			listener = tls.NewListener(listener, l.cfg.Service.Serve)
		}
		if err := l.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			l.cancel(fmt.Errorf("serve fetches: %w", err))
		}
	})
}

// guard serves requests with the right token of the job in their path, by peers of
// a role where peers have to prove one. It refuses and logs the others.
func (l *loop) guard(role identity.Role, use token.Use, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		peer, known := identity.PeerOf(r.TLS)
		refuse := func(status int, err error) {
			l.cfg.Logger.Warn("a request is refused", "peer", peer, "addr", r.RemoteAddr, "path", r.URL.Path, "reason", err)
			http.Error(w, err.Error(), status)
		}
		if l.cfg.Service.Serve != nil && (!known || peer.Role != role) {
			refuse(http.StatusForbidden, fmt.Errorf("this is not for a %s", peer.Role))
			return
		}
		job, err := wire.ParseJobID(r.PathValue("job"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		brought, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		switch err := l.tokens.Check(job, brought, use); {
		case errors.Is(err, token.ErrNone):
			w.Header().Set("WWW-Authenticate", "Bearer")
			refuse(http.StatusUnauthorized, err)
		case err != nil:
			refuse(http.StatusForbidden, err)
		default:
			h.ServeHTTP(w, r)
		}
	})
}

// serveHealth answers whoever looks whether the loop works.
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
	case led := <-answer:
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(struct { // who has gone needs no answer
			ID  string `json:"id"`
			Led bool   `json:"led"`
		}{l.cfg.ID, led})
	case <-l.done:
		http.Error(w, "it ends", http.StatusServiceUnavailable)
	case <-ctx.Done():
		http.Error(w, "its loop does not answer", http.StatusServiceUnavailable)
	}
}
