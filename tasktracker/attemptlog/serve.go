package attemptlog

import (
	"errors"
	"io"
	"io/fs"
	"net/http"
	"time"
)

// Serve answers with the current text of a log, or with its last bytes if tail is not
// negative. Each Write of the answer may take as long as wait.
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

// deadlineWriter extends the deadline with each Write: a long answer has many.
type deadlineWriter struct {
	http.ResponseWriter
	control *http.ResponseController
	wait    time.Duration
}

// Write implements io.Writer.
func (p deadlineWriter) Write(b []byte) (int, error) {
	_ = p.control.SetWriteDeadline(time.Now().Add(p.wait)) // some writers have no deadline
	return p.ResponseWriter.Write(b)
}
