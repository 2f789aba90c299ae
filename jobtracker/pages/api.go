package pages

import (
	"errors"
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

// get asks the API as the user of a page's request.
func (h *handler) get(page *http.Request, path string, query url.Values, into any) error {
	return refused(web.Ask(h.api, page, path, query, into))
}

// tell requests a change of the API as the user of a page's request.
func (h *handler) tell(page *http.Request, path string, change any) error {
	return refused(web.Tell(h.api, page, path, change))
}

// refused makes the problem of an answer of the API; nil: it has no error.
func refused(status int, err error) error {
	if err == nil {
		return nil
	}
	p := &problem{Status: status, Text: err.Error()}
	if e := new(web.Error); errors.As(err, &e) {
		p.Leader = e.Addr
	}
	return p
}
