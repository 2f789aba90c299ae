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
	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/wire"
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

	known  knowledge
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
		known:         knowledge{addrs: addrs},
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
	s := c.known.search(c.Patience)
	for {
		addr, limit, err := s.next(ctx)
		if err != nil {
			return maybe, err
		}
		err = c.try(ctx, addr, limit, q, answer)
		if err == nil {
			c.known.leads(addr)
			return maybe, nil
		}
		maybe = maybe || !untouched(err)
		if !elsewhere(err) {
			return maybe, err
		}
		s.failed(addr, err)
		c.tellSearch(s)
	}
}

// tellSearch tells once that a search takes long.
func (c *Client) tellSearch(s *search) {
	if since := time.Since(s.began); !s.told && since >= tellAfter {
		s.told = true
		c.note("no job tracker leads or answers for %v, still looking: %v", since.Round(time.Second), s.last)
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

// Submit implements client.Cluster. An error matches client.ErrUndecided when the
// cluster may have taken the submission; asking again with the same key tells.
func (c *Client) Submit(ctx context.Context, sub wire.Submission) ([]wire.JobID, error) {
	frame, err := wire.Append(nil, &sub)
	if err != nil {
		return nil, fmt.Errorf("submit: %w", err)
	}
	var answer submitted
	maybe, err := c.ask(ctx, request{http.MethodPost, "/v1/submissions", frameType, frame}, &answer)
	switch {
	case err == nil:
	case errors.Is(err, core.ErrBadSubmission):
		return nil, err // whoever was asked before would have said the same
	case maybe:
		return nil, fmt.Errorf("submit: %w: %w", client.ErrUndecided, err)
	default:
		return nil, fmt.Errorf("submit: %w", err)
	}
	ids := make([]wire.JobID, 0, len(answer.Jobs))
	for _, text := range answer.Jobs {
		id, err := wire.ParseJobID(text)
		if err != nil {
			return nil, fmt.Errorf("submit: %w: %w", client.ErrUndecided, err)
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// Kill implements client.Cluster.
func (c *Client) Kill(ctx context.Context, job wire.JobID, reason string) error {
	maybe, err := c.ask(ctx, asJSON(http.MethodPost, "/v1/jobs/"+job.String()+"/kill", killRequest{reason}), &struct{}{})
	if maybe && errors.Is(err, core.ErrJobEnded) {
		// Perhaps by this very kill, whose first answer was lost.
		if j, jobErr := c.Job(ctx, job); jobErr == nil && j.State == wire.Killed.String() {
			return nil
		}
	}
	return err
}

// Jobs lists all jobs that the cluster still knows, oldest first, without
// counters and troubles.
func (c *Client) Jobs(ctx context.Context) ([]Job, error) {
	var answer jobList
	if _, err := c.ask(ctx, request{method: http.MethodGet, path: "/v1/jobs"}, &answer); err != nil {
		return nil, fmt.Errorf("list jobs: %w", err)
	}
	return answer.Jobs, nil
}

// Job tells of one job. core.ErrUnknownJob: the cluster knows it not, or no longer.
func (c *Client) Job(ctx context.Context, id wire.JobID) (*Job, error) {
	job := new(Job)
	_, err := c.ask(ctx, request{method: http.MethodGet, path: "/v1/jobs/" + id.String()}, job)
	return job, err
}

// Attempts lists a job's attempts as far as the leader knows them.
func (c *Client) Attempts(ctx context.Context, id wire.JobID) (*Attempts, error) {
	answer := new(Attempts)
	_, err := c.ask(ctx, request{method: http.MethodGet, path: "/v1/jobs/" + id.String() + "/attempts"}, answer)
	return answer, err
}

// Cluster tells of the cluster: what its leader says or, when none leads, what
// somebody says who does not.
func (c *Client) Cluster(ctx context.Context) (*Cluster, error) {
	s := c.known.search(c.Patience)
	var follower *Cluster
	for {
		addr, limit, err := s.next(ctx)
		if err != nil {
			if follower != nil {
				return follower, nil
			}
			return nil, fmt.Errorf("describe cluster: %w", err)
		}
		answer := new(Cluster)
		err = c.try(ctx, addr, limit, request{method: http.MethodGet, path: "/v1/cluster"}, answer)
		switch {
		case err == nil && answer.Leads:
			c.known.leads(addr)
			return answer, nil
		case err == nil:
			follower = answer
			err = &Error{Code: codeNotLeader, Text: addr + " does not lead", Leader: answer.Leader, Addr: answer.Addr}
		case !elsewhere(err):
			return nil, fmt.Errorf("describe cluster: %w", err)
		}
		s.failed(addr, err)
		c.tellSearch(s)
	}
}

// AddVoter gives a job tracker a vote. It may be asked again.
func (c *Client) AddVoter(ctx context.Context, v Voter) error {
	if _, err := c.ask(ctx, asJSON(http.MethodPost, "/v1/cluster/voters", v), &struct{}{}); err != nil {
		return fmt.Errorf("add voter %s: %w", v.ID, err)
	}
	return nil
}

// RemoveVoter takes a job tracker's vote away. ErrNotVoter: it has none.
func (c *Client) RemoveVoter(ctx context.Context, id string) error {
	q := request{method: http.MethodDelete, path: "/v1/cluster/voters/" + url.PathEscape(id)}
	maybe, err := c.ask(ctx, q, &struct{}{})
	switch {
	case err == nil, maybe && errors.Is(err, ErrNotVoter): // by this very call, whose first answer was lost
		return nil
	}
	return fmt.Errorf("remove voter %s: %w", id, err)
}
