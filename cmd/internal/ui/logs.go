package ui

import (
	"fmt"
	"io"
	"net/http"
	"time"
)

// logWait limits the time to send a log.
const logWait = time.Minute

// newPages serves logs itself, and forwards all other requests to the leader.
func newPages(cfg Config) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", newForwarder(cfg))
	mux.HandleFunc("GET /jobs/{job}/attempts/{attempt}/{stream}", func(w http.ResponseWriter, r *http.Request) { serveLog(cfg, w, r) })
	return mux
}

// serveLog answers with a log as text: its bytes come from a job, so a browser must not interpret them.
// With ?follow it asks the browser to load the log again.
func serveLog(cfg Config, w http.ResponseWriter, r *http.Request) {
	head := w.Header()
	head.Set("Content-Type", "text/plain; charset=utf-8")
	head.Set("X-Content-Type-Options", "nosniff")
	head.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	head.Set("Cache-Control", "no-store")
	head.Set("Referrer-Policy", "no-referrer")
	stream := r.PathValue("stream")
	if stream != "stdout" && stream != "stderr" {
		http.Error(w, fmt.Sprintf("an attempt has the logs stdout and stderr, not %q", stream), http.StatusNotFound)
		return
	}
	body, err := cfg.Log(r.Context(), r.PathValue("job"), r.PathValue("attempt"), stream)
	if err != nil {
		http.Error(w, "mrsubmit ui: "+err.Error(), http.StatusBadGateway)
		return
	}
	defer body.Close()
	if r.URL.Query().Has("follow") {
		head.Set("Refresh", "2")
	}
	// An error means that the browser has closed the connection, or that the log is incomplete.
	connection := http.NewResponseController(w)
	connection.SetWriteDeadline(time.Now().Add(logWait))
	defer connection.SetWriteDeadline(time.Time{}) // the connection serves other requests
	if n, _ := io.Copy(w, body); n == 0 {
		io.WriteString(w, "The log is empty.\n")
	}
}
