package ui

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/quernmr/quern/listen"
	"github.com/quernmr/quern/wire"
)

// OpenLog opens a part of a log of an attempt, "stdout" or "stderr".
type OpenLog func(ctx context.Context, attempt wire.AttemptID, stream string, part Part) (*Log, error)

// Part is the part of a log to open.
type Part struct {
	Tail int64 // last bytes; 0: From counts
	From int64 // without the first bytes that the attempt wrote
}

// Log is the text of a part of a log. Close it.
type Log struct {
	io.ReadCloser
	End   int64 // number of bytes that the attempt had written; negative: not known
	Ended bool  // the attempt writes no more
}

const (
	logWait  = time.Minute // limits the time to send a log
	logBytes = 1 << 20     // of a log in the browser: mrsubmit logs has all of it
)

// withLogs serves the texts of logs itself, and passes all other requests on.
func withLogs(cfg Config) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", cfg.Pages)
	mux.HandleFunc("GET /jobs/{job}/attempts/{attempt}/{stream}/text", func(w http.ResponseWriter, r *http.Request) { serveLog(cfg.Log, w, r) })
	return mux
}

// serveLog answers with a part of a log as text: its bytes come from a job, so a browser must not interpret them. The
// script of the pages asks with ?tail= first, and then with ?from= and the number in Log-End. Without it, ?follow asks
// the browser to load the log again.
func serveLog(open OpenLog, w http.ResponseWriter, r *http.Request) {
	head := w.Header()
	head.Set("Content-Type", "text/plain; charset=utf-8")
	head.Set("X-Content-Type-Options", "nosniff")
	head.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	head.Set("Cache-Control", "no-store")
	head.Set("Referrer-Policy", "no-referrer")
	attempt, err := wire.ParseAttemptID(r.PathValue("attempt"))
	if job := r.PathValue("job"); err != nil || attempt.Task.Job.String() != job {
		listen.Fail(w, r, fmt.Sprintf("%s has no %s", job, r.PathValue("attempt")), http.StatusNotFound)
		return
	}
	stream := r.PathValue("stream")
	if stream != "stdout" && stream != "stderr" {
		listen.Fail(w, r, fmt.Sprintf("an attempt has the logs stdout and stderr, not %q", stream), http.StatusNotFound)
		return
	}
	query, part := r.URL.Query(), Part{Tail: logBytes}
	for name, to := range map[string]*int64{"tail": &part.Tail, "from": &part.From} {
		text := query.Get(name)
		if text == "" {
			continue
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 0 {
			listen.Fail(w, r, fmt.Sprintf("%s must be a number of bytes, got %q", name, text), http.StatusBadRequest)
			return
		}
		*to = n
	}
	if query.Has("from") {
		part.Tail = 0
	}
	log, err := openPart(r.Context(), open, attempt, stream, part)
	if err != nil {
		listen.Fail(w, r, "mrsubmit: "+err.Error(), http.StatusBadGateway)
		return
	}
	defer log.Close()
	if log.End >= 0 {
		head.Set("Log-End", strconv.FormatInt(log.End, 10))
	}
	head.Set("Log-Ended", strconv.FormatBool(log.Ended))
	if query.Has("follow") && !log.Ended {
		head.Set("Refresh", "2")
	}
	// An error means that the browser has closed the connection, or that the log is incomplete.
	connection := http.NewResponseController(w)
	connection.SetWriteDeadline(time.Now().Add(logWait))
	defer connection.SetWriteDeadline(time.Time{}) // the connection serves other requests
	if n, _ := io.Copy(w, log); n == 0 && !query.Has("tail") && !query.Has("from") {
		io.WriteString(w, "The log is empty.\n")
	}
}

// openPart opens a part of a log, or the last bytes if the part has more than logBytes.
func openPart(ctx context.Context, open OpenLog, attempt wire.AttemptID, stream string, part Part) (*Log, error) {
	log, err := open(ctx, attempt, stream, part)
	if err != nil || part.Tail > 0 || log.End-part.From <= logBytes {
		return log, err
	}
	log.Close()
	return open(ctx, attempt, stream, Part{Tail: logBytes})
}
