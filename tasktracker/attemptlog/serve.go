package attemptlog

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/quernmr/quern/listen"
)

// EndHeader has the number of bytes that the attempt had written when its log was read. A request with
// this number as its from gets what the attempt has written since.
const EndHeader = "Quern-Log-End"

// Part is the part of a log that a request asks for; zero: all of it.
type Part struct {
	Tail *int64 // last bytes
	From int64  // without the first bytes that the attempt wrote
}

// ParsePart reads the parameters tail and from of a request.
func ParsePart(query url.Values) (p Part, err error) {
	for _, name := range []string{"tail", "from"} {
		text := query.Get(name)
		if text == "" {
			continue
		}
		n, err := strconv.ParseInt(text, 10, 64)
		switch {
		case err != nil:
			return p, fmt.Errorf("%s must be a number of bytes, got %q", name, text)
		case n < 0:
			return p, fmt.Errorf("%s must not be negative, got %d", name, n)
		case name == "from":
			p.From = n
		default:
			p.Tail = &n
		}
	}
	if p.Tail != nil && p.From > 0 {
		return p, errors.New("give tail or from, not both")
	}
	return p, nil
}

// Serve answers with a part of the current text of a log. Each Write of the answer may take as long as
// wait.
func Serve(w http.ResponseWriter, r *http.Request, file string, p Part, wait time.Duration) {
	text, err := Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		listen.Fail(w, r, "no such log here", http.StatusNotFound)
		return
	}
	if err != nil {
		listen.Fail(w, r, err.Error(), http.StatusInternalServerError)
		return
	}
	defer text.Close()
	from, size := text.Find(p.From), text.size
	if p.Tail != nil {
		from = max(size-*p.Tail, 0)
	}
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set(EndHeader, strconv.FormatInt(text.End(), 10))
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
