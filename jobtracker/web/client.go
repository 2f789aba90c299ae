package web

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/quernmr/quern/client"
	"github.com/quernmr/quern/identity"
	"github.com/quernmr/quern/jobtracker/web/seek"
)

// Client sends requests to the leader of a cluster over HTTP. It knows addresses of some job
// trackers, and finds the leader again after a change. Set its fields before the first call.
type Client struct {
	// Patience is how long a request looks for a leader, and how long it is repeated while the
	// cluster is busy; default 30 s. A busy cluster does not end a watch.
	Patience time.Duration
	// WatchPatience is how long a watch that has lost its leader looks for one; default 5 min.
	WatchPatience time.Duration
	// Note, if not nil, gets a line when a watch has found another leader, when the search for a
	// leader takes long, and when a request waits for a busy cluster.
	Note func(line string)

	known  *seek.Known
	http   *http.Client
	scheme string // of the job trackers' URLs

	busy struct {
		mu    sync.Mutex
		noted time.Time // the last note that a request waits
	}
}

var _ client.Cluster = (*Client)(nil)

// maxAnswer limits the bytes of an answer, and of a line of a watch. maxHistory limits those of a history: 100,000 attempts
// with error texts have 90 MB.
const (
	maxAnswer  = 64 << 20
	maxHistory = 256 << 20
)

// NewClient makes a client of the cluster with job trackers at these host:port addresses. It
// connects at the first request.
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
		identity.Secure(c.http.Transport.(*http.Transport), config)
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
	method      string
	path        string
	contentType string
	body        []byte
	maxAnswer   int // bytes; 0: maxAnswer
}

func jsonRequest(method, path string, v any) request {
	body, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("web: a request cannot be encoded: %v", err)) // our types can always be encoded
	}
	return request{method: method, path: path, contentType: "application/json", body: body}
}

// send finds the leader, sends it the request, and decodes the answer. It returns uncertain if a
// leader may have executed the request although no answer came.
func (c *Client) send(ctx context.Context, q request, answer any) (uncertain bool, err error) {
	s, busy := c.known.Search(c.Patience), busyWaiter{c: c, patience: c.Patience}
	for {
		addr, limit, err := s.Next(ctx)
		if err != nil {
			return uncertain, err
		}
		err = c.sendTo(ctx, addr, limit, q, answer)
		if err == nil {
			c.known.SetLeader(addr)
			return uncertain, nil
		}
		uncertain = uncertain || !hadNoEffect(err)
		if q.path != submissionsPath {
			if again, failed := busy.again(ctx, err); failed != nil {
				return uncertain, failed
			} else if again {
				s = c.known.Search(c.Patience)
				continue
			}
		}
		if !retryable(err) {
			return uncertain, err
		}
		c.failed(s, addr, err)
	}
}

// failed records that a job tracker did not serve a request. Once per search, it notes that the
// search takes long.
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

// hadNoEffect reports whether a failed request certainly had no effect.
func hadNoEffect(err error) bool {
	var e *Error
	var op *net.OpError
	switch {
	case errors.As(err, &e):
		// Other codes are refusals by the leader.
		return e.Untouched || e.Code != codeInternal && !retryable(e)
	case errors.As(err, &op):
		return op.Op == "dial"
	}
	return errors.Is(err, errForeign) || errors.Is(err, seek.ErrProtection) || errors.Is(err, identity.ErrNotAdmitted)
}

// errForeign reports an answer that is not from a job tracker.
var errForeign = errors.New("not a job tracker of this version")

func (c *Client) sendTo(ctx context.Context, addr string, limit time.Duration, q request, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, q.method, c.scheme+addr+q.path, bytes.NewReader(q.body))
	if err != nil {
		return fmt.Errorf("%w: %w", errForeign, err)
	}
	if q.contentType != "" {
		r.Header.Set("Content-Type", q.contentType)
	}
	resp, err := c.http.Do(r)
	if err != nil {
		return shortError(addr, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return answerError(addr, resp)
	}
	body, err := readAll(resp.Body, cmp.Or(q.maxAnswer, maxAnswer))
	if err != nil {
		return fmt.Errorf("%s: read answer: %w", addr, err)
	}
	if err := json.Unmarshal(body, answer); err != nil {
		return fmt.Errorf("%s: read answer: %w", addr, err)
	}
	return nil
}

// shortError replaces the method and the URL in an error of net/http by the address.
func shortError(addr string, err error) error {
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
	case errors.Is(err, http.ErrSchemeMismatch):
		return fmt.Errorf("%s: %w: it uses none, so it may be another user's process; if the cluster runs with -insecure, give -insecure here, too", addr, seek.ErrProtection)
	}
	return fmt.Errorf("%s: %w", addr, err)
}

// answerError decodes the error in an answer with another status than 200.
func answerError(addr string, resp *http.Response) error {
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	e := new(Error)
	if bytes.Contains(body, []byte("HTTP request to an HTTPS server")) { // the text of net/http
		return fmt.Errorf("%s: %w: the cluster does, so leave out -insecure and QUERN_INSECURE", addr, seek.ErrProtection)
	}
	if err != nil || json.Unmarshal(body, e) != nil || e.Code == "" {
		return fmt.Errorf("%s answered %q: %w", addr, resp.Status, errForeign)
	}
	return e
}

func readAll(r io.Reader, most int) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(r, int64(most)+1))
	if err == nil && len(body) > most {
		err = fmt.Errorf("it is longer than %d bytes", most)
	}
	return body, err
}

// errUncertain reports a change that may have been made. It is safe to repeat.
var errUncertain = errors.New("it is not known whether the change was made")

// change sends a change that is safe to repeat.
func (c *Client) change(ctx context.Context, path string, body any) error {
	uncertain, err := c.send(ctx, jsonRequest(http.MethodPost, path, body), &struct{}{})
	if err != nil && uncertain {
		return fmt.Errorf("%w: %w", errUncertain, err)
	}
	return err
}
