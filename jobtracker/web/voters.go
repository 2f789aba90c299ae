package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/quernmr/quern/identity"
	"github.com/quernmr/quern/jobtracker/core/admission"
)

// Voter is a job tracker that votes in its cluster, or will.
type Voter struct {
	ID       string `json:"id"`
	Addr     string `json:"addr"`               // host:port of its log
	Nonvoter bool   `json:"nonvoter,omitempty"` // it does not vote yet: it is catching up with the log
}

// Voters lists and changes the voters of the replicated log. Only the leader changes them.
type Voters interface {
	Voters() []Voter // and nonvoters
	AddVoter(ctx context.Context, v Voter) error
	RemoveVoter(ctx context.Context, id string) error // ErrNotVoter: it is not a voter
}

// errNoVoters is the error of a change of voters if the job tracker's log is not replicated.
var errNoVoters = errors.New("this job tracker's log has no voters")

// ErrCatchingUp is the error of another voter while too many job trackers do not vote yet.
var ErrCatchingUp = errors.New("too many job trackers are catching up")

// ErrNotVoter is the error of the removal of a job tracker that is not a voter.
var ErrNotVoter = errors.New("it is not a voter")

func (h *handler) addVoter(ctx context.Context, r *http.Request) (any, error) {
	var v Voter
	if err := readJSON(r.Body, &v); err != nil {
		return nil, err
	}
	if v.ID == "" || v.Addr == "" {
		return nil, badRequest("a voter needs an id and an addr")
	}
	auditedOf(r).on, auditedOf(r).detail = v.ID, v.Addr
	if err := h.mayAdd(r, v.ID); err != nil {
		return nil, err
	}
	if err := h.mayChangeVoters(ctx); err != nil {
		return nil, err
	}
	h.Logger.Info("add voter", "id", v.ID, "addr", v.Addr, "asked by", r.RemoteAddr)
	return struct{}{}, h.Voters.AddVoter(ctx, v)
}

// mayAdd lets a job tracker add itself, and administrators any job tracker.
func (h *handler) mayAdd(r *http.Request, id string) error {
	if peer, ok := identity.PeerOf(r.TLS); h.Identified && ok && peer.Role == identity.JobTracker {
		if peer.Name != id {
			return forbidden("%v: %v may add itself as a voter, but not %s", admission.ErrNotAllowed, peer, id)
		}
		return nil
	}
	return h.requireAdmin(r, "add voters")
}

func (h *handler) removeVoter(ctx context.Context, r *http.Request) (any, error) {
	if err := h.requireAdmin(r, "remove voters"); err != nil {
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
	_, err := h.requireLeader()
	return err
}

// AddVoter makes a job tracker a voter once it has caught up. It is safe to repeat.
func (c *Client) AddVoter(ctx context.Context, v Voter) error {
	if _, err := c.send(ctx, jsonRequest(http.MethodPost, "/v1/cluster/voters", v), &struct{}{}); err != nil {
		return fmt.Errorf("add voter %s: %w", v.ID, err)
	}
	return nil
}

// RemoveVoter makes a job tracker a non-voter. It fails with ErrNotVoter if it is none already.
func (c *Client) RemoveVoter(ctx context.Context, id string) error {
	q := request{method: http.MethodDelete, path: "/v1/cluster/voters/" + url.PathEscape(id)}
	uncertain, err := c.send(ctx, q, &struct{}{})
	switch {
	case err == nil, uncertain && errors.Is(err, ErrNotVoter): // uncertain: this call has removed it, and the answer was lost
		return nil
	}
	return fmt.Errorf("remove voter %s: %w", id, err)
}
