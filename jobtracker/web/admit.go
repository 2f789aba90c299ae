package web

import (
	"net/http"
	"slices"

	"github.com/quernmr/quern/identity"
)

// handle serves a route for some roles.
func (h *handler) handle(mux *http.ServeMux, admitted []identity.Role, route string, serve http.HandlerFunc) {
	if !h.Identified {
		mux.HandleFunc(route, serve)
		return
	}
	mux.HandleFunc(route, func(w http.ResponseWriter, r *http.Request) {
		peer, ok := identity.PeerOf(r.TLS)
		if !ok || !slices.Contains(admitted, peer.Role) {
			h.Logger.Warn("a request is refused", "peer", peer, "addr", r.RemoteAddr, "method", r.Method, "path", r.URL.Path)
			reply(w, http.StatusForbidden, &Error{Code: codeForbidden, Text: "this is not for a " + string(peer.Role), Untouched: true})
			return
		}
		serve(w, r)
	})
}
