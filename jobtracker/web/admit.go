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

// handle serves a route for its roles.
func (h *handler) handle(mux *http.ServeMux, x route) {
	if !h.Identified {
		mux.HandleFunc(x.pattern, x.serve)
		return
	}
	mux.HandleFunc(x.pattern, func(w http.ResponseWriter, r *http.Request) {
		peer, ok := identity.PeerOf(r.TLS)
		if !ok || !slices.Contains(x.roles, peer.Role) {
			h.fail(w, r, forbidden("this is not for a %s", peer.Role))
			return
		}
		x.serve(w, r)
	})
}

func forbidden(format string, args ...any) error {
	return &Error{Code: codeForbidden, Text: fmt.Sprintf(format, args...), Untouched: true}
}

// asker is who asks, as the core knows him. A daemon is nobody's owner: no user has
// a name like its.
func (h *handler) asker(r *http.Request) core.Asker {
	if !h.Identified {
		return core.Asker{}
	}
	peer, ok := identity.PeerOf(r.TLS)
	if !ok || peer.Role != identity.Client {
		return core.Asker{Name: strings.TrimSpace("daemon " + peer.String())}
	}
	return core.Asker{Name: peer.Name, Admin: slices.Contains(h.Admins, peer.Name)}
}

// administers turns whoever is no administrator away from what concerns all.
func (h *handler) administers(r *http.Request, do string) error {
	if by := h.asker(r); by.Known() && !by.Admin {
		return forbidden("%v: %s cannot %s: that is for administrators (%s)", admission.ErrNotAllowed, by.Name, do, strings.Join(h.Admins, ", "))
	}
	return nil
}

// refused logs that somebody has asked for what is not for him.
func (h *handler) refused(r *http.Request, err error) {
	peer, _ := identity.PeerOf(r.TLS)
	h.Logger.Warn("a request is refused", "peer", peer, "addr", r.RemoteAddr, "method", r.Method, "path", r.URL.Path, "reason", err)
}
