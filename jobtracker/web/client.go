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

// Client asks a cluster's job trackers over HTTP. It knows some of their
// addresses, finds the one that leads and finds it again when another does. It is
// a client.Cluster. Its fields are set before it is used.
type Client struct {
	// Patience is how long a request looks for a leader; default 30 s.
	Patience time.Duration
	// WatchPatience is the same for a watch that had one; default 5 min.
	WatchPatience time.Duration
	// Note, when not nil, is told in a line when a watch has found another leader,
	// and when looking for one takes long.
	Note func(line string)

	known  *seek.Known
	http   *http.Client
	scheme string // of the job trackers' URLs
}

var _ client.Cluster = (*Client)(nil)

// maxAnswer bounds an answer, and a line of a watch.
const maxAnswer = 64 << 20

// NewClient makes a client of the job trackers at the host:port addresses. It
// connects to nobody before it is asked to.
func NewClient(addrs []string) *Client {
	dialer := net.Dialer{Timeout: dialWait}
	return &Client{
		Patience:      30 * time.Second,
		WatchPatience: 5 * time.Minute,
		known:         seek.New(addrs),
		scheme:        "http://",
		http: &http.Client{
			Transport: &http.Transport{
				DialContext:            dialer.DialContext, // and no proxy: job trackers are near
				MaxIdleConnsPerHost:    2,
				IdleConnTimeout:        idleWait / 2, // before the server's
				MaxResponseHeaderBytes: maxHeader,
				DisableCompression:     true,
			},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// Secure has the client prove who it is, and ask the same of job trackers.
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

// request is one thing that is asked of the leader.
type request struct {
	method string
	path   string
	kind   string // content type of the body
	body   []byte
}

func asJSON(method, path string, v any) request {
	body, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("web: a request cannot be encoded: %v", err)) // all are structs of texts
	}
	return request{method: method, path: path, kind: "application/json", body: body}
}

// ask finds the leader and has it answer. Maybe: an earlier try, or this one, may
// have been carried out although no answer came.
func (c *Client) ask(ctx context.Context, q request, answer any) (maybe bool, err error) {
	s := c.known.Search(c.Patience)
	for {
		addr, limit, err := s.Next(ctx)
		if err != nil {
			return maybe, err
		}
		err = c.try(ctx, addr, limit, q, answer)
		if err == nil {
			c.known.Leads(addr)
			return maybe, nil
		}
		maybe = maybe || !untouched(err)
		if !elsewhere(err) {
			return maybe, err
		}
		c.failed(s, addr, err)
	}
}

// failed notes that a job tracker is not the leader, and tells once that a search takes long.
func (c *Client) failed(s *seek.Search, addr string, err error) {
	var e *Error
	if errors.As(err, &e) {
		s.Answered(addr, err, e.Addr)
	} else {
		s.Failed(addr, err)
	}
	if since, slow := s.Slow(); slow {
		c.note("no job tracker leads or answers for %v, still looking: %v", since.Round(time.Second), err)
	}
}

// untouched says whether a failed request was certainly not carried out.
func untouched(err error) bool {
	var e *Error
	var op *net.OpError
	switch {
	case errors.As(err, &e):
		// Any other code is a refusal by the leader itself.
		return e.Untouched || e.Code != codeInternal && !elsewhere(e)
	case errors.As(err, &op):
		return op.Op == "dial"
	}
	return errors.Is(err, errForeign)
}

// errForeign reports an answer that is none of ours.
var errForeign = errors.New("this is no job tracker of this version")

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

// brief leaves out of an error of net/http what the caller says too: the method
// and the URL.
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
		return err // it names the address
	}
	return fmt.Errorf("%s: %w", addr, err)
}

// failure reads what an answer says that is not 200.
func failure(addr string, resp *http.Response) error {
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxSmall))
	e := new(Error)
	if err != nil || json.Unmarshal(body, e) != nil || e.Code == "" {
		return fmt.Errorf("%s answers %q: %w", addr, resp.Status, errForeign)
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

// errMaybe reports a change of which it is not known whether it was made. Asking for
// it again does no harm.
var errMaybe = errors.New("it is not known whether this was done")

// wish asks for something that may be asked for again.
func (c *Client) wish(ctx context.Context, path string, body any) error {
	maybe, err := c.ask(ctx, asJSON(http.MethodPost, path, body), &struct{}{})
	if err != nil && maybe {
		return fmt.Errorf("%w: %w", errMaybe, err)
	}
	return err
}
