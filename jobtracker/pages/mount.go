package pages

import (
	"net/http"
	"strings"
)

// Mount adds the pages to an API: reads outside the API's paths get a page, and so does the form of the scheduler.
// All other requests go to the API.
func Mount(api http.Handler) http.Handler {
	pages := New(api)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		read := r.Method == http.MethodGet || r.Method == http.MethodHead
		form := r.Method == http.MethodPost && r.URL.Path == "/scheduler"
		if p := r.URL.Path; !read && !form || strings.HasPrefix(p, "/v1/") || p == "/healthz" || p == "/metrics" || strings.HasPrefix(p, "/debug/") {
			api.ServeHTTP(w, r)
			return
		}
		pages.ServeHTTP(w, r)
	})
}
