package attemptlog

import (
	"errors"
	"io"
	"io/fs"
	"net/http"
	"time"
)

// Serve answers with a log that may be growing: what it has now, or the last bytes of
// it, unless tail is negative. The reader has a time for each piece of it.
func Serve(w http.ResponseWriter, r *http.Request, file string, tail int64, wait time.Duration) {
	text, err := Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		http.Error(w, "no such log here", http.StatusNotFound)
		return
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer text.Close()
	from, size := int64(0), text.size
	if tail >= 0 {
		from = max(size-tail, 0)
	}
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff")
	http.ServeContent(deadlineWriter{w, http.NewResponseController(w), wait}, r, "", time.Time{}, io.NewSectionReader(text, from, size-from))
}

// patient gives whoever reads an answer the time of a whole one for each piece of it,
// of which there are many in a file.
type deadlineWriter struct {
	http.ResponseWriter
	control *http.ResponseController
	wait    time.Duration
}

// Write implements io.Writer.
func (p deadlineWriter) Write(b []byte) (int, error) {
	_ = p.control.SetWriteDeadline(time.Now().Add(p.wait)) // a writer that knows none does without
	return p.ResponseWriter.Write(b)
}
