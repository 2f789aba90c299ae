package web

import (
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"

	"github.com/quernmr/quern/audit"
	"github.com/quernmr/quern/identity"
	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/jobtracker/core/admission"
	"github.com/quernmr/quern/sparselog"
	"github.com/quernmr/quern/wire"
)

// handle registers a route.
func (h *handler) handle(mux *http.ServeMux, x route) {
	mux.HandleFunc(x.pattern, func(w http.ResponseWriter, r *http.Request) { h.audit(&x, w, r) })
}

// admit serves a request. If callers have certificates, it refuses other roles than the route's.
func (h *handler) admit(x *route, w http.ResponseWriter, r *http.Request) {
	if h.Identified {
		peer, ok := identity.PeerOf(r.TLS)
		if !ok {
			h.fail(w, r, forbidden("a peer without a name and role in its certificate may not use this route"))
			return
		}
		if !slices.Contains(x.roles, peer.Role) {
			h.fail(w, r, forbidden("a peer with the role %s may not use this route", peer.Role))
			return
		}
	}
	if why, ok := r.Context().Value(refusalKey{}).(error); ok {
		h.fail(w, r, forbidden("%v", why))
		return
	}
	if err := x.checkQuery(r); err != nil {
		h.fail(w, r, err)
		return
	}
	x.serve(w, r)
}

func forbidden(format string, args ...any) error {
	return &Error{Code: codeForbidden, Text: fmt.Sprintf(format, args...), Untouched: true}
}

// caller returns the user of a request. A daemon gets a name with a blank: no user has such a name,
// so a daemon owns no job, and is in no group.
func (h *handler) caller(r *http.Request) core.Caller {
	var c core.Caller
	if h.Groups != nil {
		c.Groups = h.Groups()
	}
	if !h.Identified {
		return c
	}
	peer, ok := identity.PeerOf(r.TLS)
	if !ok || peer.Role != identity.Client {
		c.Name = strings.TrimSpace("daemon " + peer.String())
		return c
	}
	admins := wire.ACL{Users: h.Admins, Groups: h.AdminGroups}
	c.Name = peer.Name
	c.Admin = admins.Admits(peer.Name, func(group string) bool { return c.Groups.Has(group, peer.Name) })
	return c
}

// requireAdmin fails if the user of a request is known and no administrator.
func (h *handler) requireAdmin(r *http.Request, do string) error {
	if caller := h.caller(r); caller.Known() && !caller.Admin {
		names := slices.Clone(h.Admins)
		for _, group := range h.AdminGroups {
			names = append(names, "group "+group)
		}
		return forbidden("%v: %s may not %s: only administrators (%s) may", admission.ErrNotAllowed, caller.Name, do, strings.Join(names, ", "))
	}
	return nil
}

// refuseHost answers requests for another host, see [listen.Names]. A web page can send many, so it does not log
// all of them.
func refuseHost(logger *slog.Logger, record func(audit.Event)) func(http.ResponseWriter, *http.Request, error) {
	h := &handler{Config: Config{Logger: slog.New(sparselog.Handler(logger.Handler()))}}
	return func(w http.ResponseWriter, r *http.Request, err error) {
		if record != nil {
			record(audit.ForeignHost(who(r), r, err))
		}
		h.fail(w, r, forbidden("%v", err))
	}
}

// logRefusal logs a request that its peer may not make, unless there are too many. The audit log has all, see audit.
func (h *handler) logRefusal(r *http.Request, err error) {
	peer, _ := identity.PeerOf(r.TLS)
	h.refusals.forbid(h.Logger, "a request is refused", "peer", peer, "addr", r.RemoteAddr, "method", r.Method, "path", r.URL.Path, "reason", err)
}
