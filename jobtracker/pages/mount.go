package pages

import (
	"net/http"
	"strings"

	"github.com/klauspost/compress/gzhttp"
)

// Mount adds the pages to an API: reads outside the API's paths get a page, and so does the form of the scheduler.
// All other requests go to the API. Pages and the API's JSON are compressed for clients that accept it; its streams
// are not.
func Mount(api http.Handler) http.Handler {
	// The padding hides the lengths of pages with tokens. The cheapest level makes pages a tenth as long.
	compress, err := gzhttp.NewWrapper(gzhttp.CompressionLevel(1), gzhttp.RandomJitter(32, 0, false), gzhttp.ContentTypes([]string{"text/html", "text/css", "text/javascript", "image/svg+xml", "application/json"}))
	if err != nil {
		panic(err) // the options are constants
	}
	pages, answers := compress(New(api)), compress(api)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		read := r.Method == http.MethodGet || r.Method == http.MethodHead
		form := r.Method == http.MethodPost && r.URL.Path == "/scheduler"
		switch p := r.URL.Path; {
		case read && strings.HasPrefix(p, "/v1/") && p != "/v1/events" && p != "/v1/stream":
			answers.ServeHTTP(w, r)
		case !read && !form || strings.HasPrefix(p, "/v1/") || p == "/healthz" || p == "/metrics" || strings.HasPrefix(p, "/debug/"):
			api.ServeHTTP(w, r)
		default:
			pages.ServeHTTP(w, r)
		}
	})
}
