package web

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/quernmr/quern/client"
	"github.com/quernmr/quern/jobtracker/web/seek"
)

// Client sends requests to a cluster's job trackers over HTTP. It knows some of their
// addresses, and finds the leader, also after a change. It is a client.Cluster. Set its fields
// before its use.
type Client struct {
	// Patience is how long a request looks for a leader; default 30 s.
	Patience time.Duration
	// WatchPatience is how long a watch that has lost its leader looks for one; default 5 min.
	WatchPatience time.Duration
	// Note, if not nil, gets a line when a watch has found another leader, and when the
	// search for one takes long.
	Note func(line string)

	known  *seek.Known
	http   *http.Client
	scheme string // of the job trackers' URLs
}

var _ client.Cluster = (*Client)(nil)

// maxAnswer bounds an answer, and a line of a watch.
const maxAnswer = 64 << 20

// NewClient makes a client of the job trackers at the host:port addresses. It connects at the
// first request.
func NewClient(addrs []string) *Client {
	dialer := net.Dialer{Timeout: dialWait}
	return &Client{
		Patience:      30 * time.Second,
		WatchPatience: 5 * time.Minute,
		known:         seek.New(addrs),
		scheme:        "http://",
		http: &http.Client{
			Transport: &http.Transport{
				DialContext:            dialer.DialContext, // without a proxy
				MaxIdleConnsPerHost:    2,
				IdleConnTimeout:        idleWait / 2, // before the server's
				MaxResponseHeaderBytes: maxHeader,
				DisableCompression:     true,
			},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// Secure makes the client use mutual TLS.
func (c *Client) Secure(config *tls.Config) {
	if config != nil {
		c.http.Transport.(*http.Transport).TLSClientConfig = config
		c.scheme = "https://"
	}
}

func (c *Client) note(format string, args ...any) {
	if c.Note != nil {
		c.Note(fmt.Sprintf(format, args...))
	}
}

// Close ends idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// request is a request to the leader.
type request struct {
	method string
	path   string
	kind   string // content type of the body
	body   []byte
}

func asJSON(method, path string, v any) request {
	body, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("web: a request cannot be encoded: %v", err)) // a defect of our types
	}
	return request{method: method, path: path, kind: "application/json", body: body}
}

// ask finds the leader and sends it the request. Maybe: the leader, or an earlier one, may have
// executed the request although no answer came.
func (c *Client) ask(ctx context.Context, q request, answer any) (maybe bool, err error) {
	s := c.known.Search(c.Patience)
	for {
		addr, limit, err := s.Next(ctx)
		if err != nil {
			return maybe, err
		}
		err = c.try(ctx, addr, limit, q, answer)
		if err == nil {
			c.known.SetLeader(addr)
			return maybe, nil
		}
		maybe = maybe || !untouched(err)
		if !retryable(err) {
			return maybe, err
		}
		c.failed(s, addr, err)
	}
}

// failed records that a job tracker is not the leader, and notes once that a search takes long.
func (c *Client) failed(s *seek.Search, addr string, err error) {
	var e *Error
	if errors.As(err, &e) {
		s.Answered(addr, err, e.Addr)
	} else {
		s.Failed(addr, err)
	}
	if since, slow := s.Slow(); slow {
		c.note("no leader found for %v, still looking: %v", since.Round(time.Second), err)
	}
}

// untouched reports whether a failed request had certainly no effect.
func untouched(err error) bool {
	var e *Error
	var op *net.OpError
	switch {
	case errors.As(err, &e):
		// All other codes are refusals by the leader.
		return e.Untouched || e.Code != codeInternal && !retryable(e)
	case errors.As(err, &op):
		return op.Op == "dial"
	}
	return errors.Is(err, errForeign)
}

// errForeign reports an answer that is not from a job tracker.
var errForeign = errors.New("not a job tracker of this version")

func (c *Client) try(ctx context.Context, addr string, limit time.Duration, q request, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, q.method, c.scheme+addr+q.path, bytes.NewReader(q.body))
	if err != nil {
		return fmt.Errorf("%w: %w", errForeign, err)
	}
	if q.kind != "" {
		r.Header.Set("Content-Type", q.kind)
	}
	resp, err := c.http.Do(r)
	if err != nil {
		return brief(addr, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return failure(addr, resp)
	}
	body, err := readAll(resp.Body)
	if err != nil {
		return fmt.Errorf("%s: read answer: %w", addr, err)
	}
	if err := json.Unmarshal(body, answer); err != nil {
		return fmt.Errorf("%s: read answer: %w", addr, err)
	}
	return nil
}

// brief removes the method and the URL from an error of net/http, since callers add the address.
func brief(addr string, err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	var op *net.OpError
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%s does not answer: %w", addr, err)
	case errors.As(err, &op) && op.Op == "dial":
		return err // it has the address
	}
	return fmt.Errorf("%s: %w", addr, err)
}

// failure reads the error in an answer other than 200.
func failure(addr string, resp *http.Response) error {
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxSmall))
	e := new(Error)
	if err != nil || json.Unmarshal(body, e) != nil || e.Code == "" {
		return fmt.Errorf("%s answered %q: %w", addr, resp.Status, errForeign)
	}
	return e
}

func readAll(r io.Reader) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(r, maxAnswer+1))
	if err == nil && len(body) > maxAnswer {
		err = fmt.Errorf("it is longer than %d bytes", maxAnswer)
	}
	return body, err
}

// errMaybe reports a change that may have been made. It is safe to repeat.
var errMaybe = errors.New("it is not known whether the change was made")

// change requests a change that is safe to repeat.
func (c *Client) change(ctx context.Context, path string, body any) error {
	maybe, err := c.ask(ctx, asJSON(http.MethodPost, path, body), &struct{}{})
	if err != nil && maybe {
		return fmt.Errorf("%w: %w", errMaybe, err)
	}
	return err
}
