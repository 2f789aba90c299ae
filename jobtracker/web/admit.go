package web

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/quernmr/quern/identity"
	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/jobtracker/core/admission"
)

// handle registers a route, for its roles only.
func (h *handler) handle(mux *http.ServeMux, x route) {
	if !h.Identified {
		mux.HandleFunc(x.pattern, x.serve)
		return
	}
	mux.HandleFunc(x.pattern, func(w http.ResponseWriter, r *http.Request) {
		peer, ok := identity.PeerOf(r.TLS)
		if !ok || !slices.Contains(x.roles, peer.Role) {
			h.fail(w, r, forbidden("a %s may not use this route", peer.Role))
			return
		}
		x.serve(w, r)
	})
}

func forbidden(format string, args ...any) error {
	return &Error{Code: codeForbidden, Text: fmt.Sprintf(format, args...), Untouched: true}
}

// caller returns the user of a request for the core. A daemon gets a name with a blank, which no
// user has, so it owns no job.
func (h *handler) caller(r *http.Request) core.Caller {
	if !h.Identified {
		return core.Caller{}
	}
	peer, ok := identity.PeerOf(r.TLS)
	if !ok || peer.Role != identity.Client {
		return core.Caller{Name: strings.TrimSpace("daemon " + peer.String())}
	}
	return core.Caller{Name: peer.Name, Admin: slices.Contains(h.Admins, peer.Name)}
}

// administers refuses users who are not administrators.
func (h *handler) administers(r *http.Request, do string) error {
	if by := h.caller(r); by.Known() && !by.Admin {
		return forbidden("%v: %s may not %s: only administrators (%s) may", admission.ErrNotAllowed, by.Name, do, strings.Join(h.Admins, ", "))
	}
	return nil
}

// logRefusal logs a request without the right to it.
func (h *handler) logRefusal(r *http.Request, err error) {
	peer, _ := identity.PeerOf(r.TLS)
	h.Logger.Warn("a request is refused", "peer", peer, "addr", r.RemoteAddr, "method", r.Method, "path", r.URL.Path, "reason", err)
}
