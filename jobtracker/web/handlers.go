package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"time"

	"github.com/quernmr/quern/identity"
	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/wire"
)

type handler struct{ Config }

// frameType is the content type of a body that is one wire frame.
const frameType = "application/x-quern-frame"

// short makes a handler of a route that answers at once: with a value, as JSON, or an error.
func (h *handler) short(serve func(ctx context.Context, r *http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), requestWait)
		defer cancel()
		// The writer may be none that knows deadlines; then it needs none.
		http.NewResponseController(w).SetWriteDeadline(time.Now().Add(2 * requestWait))
		if err := fromPage(r); err != nil {
			h.fail(w, r, err)
			return
		}
		limit := int64(maxSmall)
		if r.URL.Path == "/v1/submissions" {
			limit = wire.MaxFrame + 16
		}
		r.Body = http.MaxBytesReader(w, r.Body, limit)
		answer, err := serve(ctx, r)
		if err != nil {
			h.fail(w, r, err)
			return
		}
		reply(w, http.StatusOK, answer)
	}
}

// fromPage refuses a change that a web page asks for: browsers name the origin
// of every request that is no plain look.
func fromPage(r *http.Request) error {
	if r.Method == http.MethodGet || r.Method == http.MethodHead || r.Header.Get("Origin") == "" {
		return nil
	}
	return &Error{Code: codeForbidden, Text: "requests of web pages are refused", Untouched: true}
}

func reply(w http.ResponseWriter, status int, answer any) {
	body, err := json.Marshal(answer)
	if err != nil {
		panic(fmt.Sprintf("web: an answer cannot be encoded: %v", err)) // only a map key or value of ours could
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(append(body, '\n')) // a client that has gone needs no answer
}

func (h *handler) fail(w http.ResponseWriter, r *http.Request, err error) {
	p, status := h.problem(r.Context(), err)
	switch status {
	case http.StatusInternalServerError:
		h.Logger.Warn("a request failed", "method", r.Method, "path", r.URL.Path, "error", err)
	case http.StatusForbidden:
		h.refused(r, err)
	}
	if p.Untouched {
		w.Header().Set("Connection", "close") // what is left of the body is not waited for
	}
	reply(w, status, p)
}

// problem is how an error travels: from one that does not lead, with the leader.
func (h *handler) problem(ctx context.Context, err error) (*Error, int) {
	p, status := problem(err)
	if p.Code != codeNotLeader || p.Addr != "" {
		return p, status
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	told := *p
	if c, err := h.Server.Cluster(ctx); err == nil && !c.Leads {
		told.Leader, told.Addr = c.Leader, c.Addr
	}
	return &told, status
}

// leads turns a request away that only the leader can serve.
func (h *handler) leads(ctx context.Context) (wire.ClusterStatus, error) {
	c, err := h.Server.Cluster(ctx)
	if err != nil {
		return c, err
	}
	if !c.Leads {
		return c, &Error{Code: codeNotLeader, Text: notLeading(c), Leader: c.Leader, Addr: c.Addr, Untouched: true}
	}
	return c, nil
}

func notLeading(c wire.ClusterStatus) string {
	if c.Leader == "" {
		return fmt.Sprintf("%v, and knows nobody who does", core.ErrNotLeader)
	}
	return fmt.Sprintf("%v: ask %s at %s", core.ErrNotLeader, c.Leader, c.Addr)
}

func (h *handler) submit(ctx context.Context, r *http.Request) (any, error) {
	if t, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); t != frameType {
		return nil, &Error{Code: codeBadRequest, Text: "the content type of a submission is " + frameType, Untouched: true}
	}
	if _, err := h.leads(ctx); err != nil {
		return nil, err
	}
	sub, err := readSubmission(r.Body)
	if err != nil {
		return nil, err
	}
	ids, err := h.Server.Submit(ctx, h.asker(r), *sub)
	if err != nil {
		return nil, err
	}
	answer := submitted{Jobs: make([]string, 0, len(ids))}
	for _, id := range ids {
		answer.Jobs = append(answer.Jobs, id.String())
	}
	return answer, nil
}

type submitted struct {
	Jobs []string `json:"jobs"`
}

// readSubmission reads a body that is one frame of a submission and nothing else.
func readSubmission(body io.Reader) (*wire.Submission, error) {
	sub, err := wire.ReadAs[*wire.Submission](body)
	if err == nil {
		var more [1]byte
		if n, _ := io.ReadFull(body, more[:]); n > 0 {
			err = errors.New("bytes follow the frame")
		}
	}
	var large *http.MaxBytesError
	switch {
	case err == nil:
		return sub, nil
	case errors.As(err, &large), errors.Is(err, wire.ErrFrameTooLarge), errors.Is(err, wire.ErrInflated):
		return nil, &Error{Code: codeTooLarge, Text: fmt.Sprintf("read submission: %v", err), Untouched: true}
	}
	return nil, &Error{Code: codeBadRequest, Text: fmt.Sprintf("read submission: %v", err), Untouched: true}
}

type jobList struct {
	Jobs []Job `json:"jobs"`
}

func (h *handler) jobs(ctx context.Context, r *http.Request) (any, error) {
	if _, err := h.leads(ctx); err != nil {
		return nil, err
	}
	statuses, err := h.Server.Jobs(ctx)
	if err != nil {
		return nil, err
	}
	answer := jobList{Jobs: make([]Job, 0, len(statuses))}
	for i := range statuses {
		job := jobFor(h.asker(r), &statuses[i])
		job.Counters, job.Troubles = nil, nil
		answer.Jobs = append(answer.Jobs, job)
	}
	return answer, nil
}

func pathJob(r *http.Request) (wire.JobID, error) {
	id, err := wire.ParseJobID(r.PathValue("id"))
	if err != nil {
		return id, &Error{Code: codeBadRequest, Text: err.Error(), Untouched: true}
	}
	return id, nil
}

func (h *handler) job(ctx context.Context, r *http.Request) (any, error) {
	id, err := pathJob(r)
	if err != nil {
		return nil, err
	}
	if _, err := h.leads(ctx); err != nil {
		return nil, err
	}
	for statuses, err := range h.Server.Watch(ctx, []wire.JobID{id}) {
		if err != nil {
			return nil, err
		}
		return jobFor(h.asker(r), &statuses[0]), nil
	}
	return nil, fmt.Errorf("%v: %w", id, core.ErrUnknownJob)
}

type killRequest struct {
	Reason string `json:"reason"`
}

func (h *handler) kill(ctx context.Context, r *http.Request) (any, error) {
	id, err := pathJob(r)
	if err != nil {
		return nil, err
	}
	var body killRequest
	if err := readJSON(r.Body, &body); err != nil {
		return nil, err
	}
	if _, err := h.leads(ctx); err != nil {
		return nil, err
	}
	return struct{}{}, h.Server.Kill(ctx, h.asker(r), id, body.Reason)
}

func readJSON(body io.Reader, v any) error {
	dec := json.NewDecoder(body)
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		p, _ := problem(err)
		if p.Code == codeInternal {
			p.Code = codeBadRequest
		}
		return &Error{Code: p.Code, Text: fmt.Sprintf("read body: %v", err), Untouched: true}
	}
	return nil
}

// Attempts are a job's attempts, and what it takes to read their logs.
type Attempts struct {
	Attempts []Attempt `json:"attempts"`
	Owner    string    `json:"owner,omitempty"`
	Token    string    `json:"token,omitempty"` // see package wire; not for everybody
}

// AttemptsOf are a job's attempts as they are told.
func AttemptsOf(a *wire.JobAttempts) *Attempts {
	told := &Attempts{Attempts: make([]Attempt, 0, len(a.Attempts)), Owner: a.Owner, Token: a.Token}
	for i := range a.Attempts {
		told.Attempts = append(told.Attempts, AttemptOf(&a.Attempts[i]))
	}
	return told
}

func (h *handler) attempts(ctx context.Context, r *http.Request) (any, error) {
	id, err := pathJob(r)
	if err != nil {
		return nil, err
	}
	if _, err := h.leads(ctx); err != nil {
		return nil, err
	}
	a, err := h.Server.Attempts(ctx, h.asker(r), id)
	if err != nil {
		return nil, err
	}
	return AttemptsOf(&a), nil
}

func (h *handler) cluster(ctx context.Context, _ *http.Request) (any, error) {
	c, err := h.Server.Cluster(ctx)
	if err != nil {
		return nil, err
	}
	voters := []Voter{}
	if h.Voters != nil {
		voters = append(voters, h.Voters.Voters()...)
	}
	answer := clusterOf(&c, h.now(), voters)
	if h.Log != nil {
		answer.Log.Entries, answer.Log.Bytes = h.Log.Stored()
	}
	return answer, nil
}

// health answers whoever looks whether this job tracker's loop works.
func (h *handler) health(ctx context.Context, _ *http.Request) (any, error) {
	c, err := h.Server.Cluster(ctx)
	if err != nil {
		return nil, err
	}
	return struct {
		ID  string `json:"id"`
		Led bool   `json:"led"`
	}{h.ID, c.Leader != ""}, nil
}

func (h *handler) addVoter(ctx context.Context, r *http.Request) (any, error) {
	var v Voter
	if err := readJSON(r.Body, &v); err != nil {
		return nil, err
	}
	if v.ID == "" || v.Addr == "" {
		return nil, &Error{Code: codeBadRequest, Text: "a voter has an id and an addr", Untouched: true}
	}
	if err := h.mayAdd(r, v.ID); err != nil {
		return nil, err
	}
	if err := h.mayChangeVoters(ctx); err != nil {
		return nil, err
	}
	h.Logger.Info("add voter", "id", v.ID, "addr", v.Addr, "asked by", r.RemoteAddr)
	return struct{}{}, h.Voters.AddVoter(ctx, v)
}

// mayAdd lets a job tracker ask for its own vote, and administrators for any.
func (h *handler) mayAdd(r *http.Request, id string) error {
	if peer, ok := identity.PeerOf(r.TLS); h.Identified && ok && peer.Role == identity.JobTracker {
		if peer.Name != id {
			return forbidden("%v: %v cannot ask for the vote of %s, only for its own", core.ErrNotAllowed, peer, id)
		}
		return nil
	}
	return h.administers(r, "give job trackers votes")
}

func (h *handler) removeVoter(ctx context.Context, r *http.Request) (any, error) {
	if err := h.administers(r, "take votes from job trackers"); err != nil {
		return nil, err
	}
	if err := h.mayChangeVoters(ctx); err != nil {
		return nil, err
	}
	id := r.PathValue("id")
	h.Logger.Info("remove voter", "id", id, "asked by", r.RemoteAddr)
	return struct{}{}, h.Voters.RemoveVoter(ctx, id)
}

func (h *handler) mayChangeVoters(ctx context.Context) error {
	if h.Voters == nil {
		return errNoVoters
	}
	_, err := h.leads(ctx)
	return err
}
