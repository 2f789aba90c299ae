package pages

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/quernmr/quern/jobtracker/web"
)

// problem is an error that a page shows.
type problem struct {
	Status int
	Text   string
	Leader string // host:port of the leader's API, if another job tracker leads
}

func (p *problem) Error() string { return p.Text }

func asProblem(err error) *problem {
	var p *problem
	if errors.As(err, &p) {
		return p
	}
	return &problem{Status: http.StatusInternalServerError, Text: err.Error()}
}

// leaderURL is the page of a request at another job tracker.
func leaderURL(r *http.Request, addr string) string {
	u := url.URL{Scheme: "http", Host: addr, Path: r.URL.Path, RawQuery: r.URL.RawQuery}
	if r.TLS != nil {
		u.Scheme = "https"
	}
	return u.String()
}

// answer records an answer of the API.
type answer struct {
	head   http.Header
	status int
	body   bytes.Buffer
}

func (a *answer) Header() http.Header         { return a.head }
func (a *answer) WriteHeader(status int)      { a.status = status }
func (a *answer) Write(p []byte) (int, error) { return a.body.Write(p) }

// get asks the API as the user of a page's request, and decodes the answer.
func (h *handler) get(page *http.Request, path string, query url.Values, into any) error {
	r, err := http.NewRequestWithContext(page.Context(), http.MethodGet, path, nil)
	if err != nil {
		return fmt.Errorf("ask %s: %w", path, err)
	}
	r.TLS, r.RemoteAddr, r.Host, r.URL.RawQuery = page.TLS, page.RemoteAddr, page.Host, query.Encode()
	a := &answer{head: make(http.Header), status: http.StatusOK}
	h.api.ServeHTTP(a, r)
	if a.status != http.StatusOK {
		e := new(web.Error)
		if err := json.Unmarshal(a.body.Bytes(), e); err != nil {
			return fmt.Errorf("ask %s: status %d", path, a.status)
		}
		return &problem{Status: a.status, Text: e.Text, Leader: e.Addr}
	}
	if err := json.Unmarshal(a.body.Bytes(), into); err != nil {
		return fmt.Errorf("ask %s: read answer: %w", path, err)
	}
	return nil
}

// maxRows limits the entries of a page. The page says how many it leaves out.
const maxRows = 2000
