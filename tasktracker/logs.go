package tasktracker

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/quernmr/quern/tasktracker/core"
	"github.com/quernmr/quern/wire"
)

// serveLog answers with an attempt's stdout or stderr. Nothing of the request but
// ids in their one spelling becomes part of a path.
func (l *loop) serveLog(w http.ResponseWriter, r *http.Request) {
	job, errJob := wire.ParseJobID(r.PathValue("job"))
	attempt, errAttempt := wire.ParseAttemptID(r.PathValue("attempt"))
	stream := r.PathValue("stream")
	err := errors.Join(errJob, errAttempt)
	switch {
	case err != nil:
	case attempt.Task.Job != job:
		err = fmt.Errorf("%v is no attempt of %v", attempt, job)
	case stream != "stdout" && stream != "stderr":
		err = fmt.Errorf("an attempt has stdout and stderr, no %q", stream)
	}
	tail := int64(-1)
	if text := r.URL.Query().Get("tail"); err == nil && text != "" {
		if tail, err = strconv.ParseInt(text, 10, 64); err == nil && tail < 0 {
			err = fmt.Errorf("tail of %d bytes", tail)
		}
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	serveText(w, r, filepath.Join(core.LogPath(l.cfg.Dir, attempt), stream), tail)
}

// serveText answers with a file that may be growing: what it has now.
func serveText(w http.ResponseWriter, r *http.Request, file string, tail int64) {
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		http.Error(w, "no such log here", http.StatusNotFound)
		return
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	from, size := int64(0), info.Size()
	if tail >= 0 {
		from = max(size-tail, 0)
	}
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff")
	http.ServeContent(w, r, "", time.Time{}, io.NewSectionReader(f, from, size-from))
}
