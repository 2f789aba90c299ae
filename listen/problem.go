package listen

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
)

// ProblemType is the content type of an error that [Fail] sends.
const ProblemType = "application/problem+json"

// problem is a problem of RFC 9457, of the type about:blank: its status says what it is.
type problem struct {
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
}

// Fail answers a request with an error: a problem of RFC 9457, or plain text for a client that accepts HTML, as a
// browser does for a page.
func Fail(w http.ResponseWriter, r *http.Request, text string, status int) {
	if strings.Contains(strings.Join(r.Header.Values("Accept"), ","), "text/html") {
		http.Error(w, text, status)
		return
	}
	w.Header().Set("Content-Type", ProblemType)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(problem{http.StatusText(status), status, text}) // an error means that the client has gone
}

// maxError limits the bytes that Failure reads.
const maxError = 4 << 10

// Failure reads the text of an error that [Fail] or http.Error has sent.
func Failure(answer *http.Response) string {
	text, _ := io.ReadAll(io.LimitReader(answer.Body, maxError)) // of a connection that breaks, what came
	var p problem
	if answer.Header.Get("Content-Type") == ProblemType && json.Unmarshal(text, &p) == nil {
		return p.Detail
	}
	return strings.TrimSpace(string(text))
}
