package web

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/wire"
)

// Exclusion says that a task tracker gets no new work.
type Exclusion struct {
	Tracker    string    `json:"tracker"`
	Operator   bool      `json:"operator"`       // an operator excludes it, else the leader
	By         string    `json:"by,omitempty"`   // the operator
	Reason     string    `json:"reason"`         // an operator's may be empty
	Since      time.Time `json:"since,omitzero"` // not set: an earlier leader excludes it
	Until      time.Time `json:"until,omitzero"` // not set: until an operator readmits it
	Registered bool      `json:"registered"`
}

func exclusionsOf(list []wire.ExclusionStatus) []Exclusion {
	var all []Exclusion
	for _, x := range list {
		all = append(all, Exclusion{
			Tracker: x.Tracker, Operator: x.Operator, By: x.By, Reason: x.Reason, Since: timeOf(x.Since), Until: timeOf(x.Until), Registered: x.Registered,
		})
	}
	return all
}

// OperatorExclusion returns an operator's exclusion of a task tracker, or nil if there is none.
func (c *Cluster) OperatorExclusion(tracker string) *Exclusion { return c.exclusion(tracker, true) }

// LeaderExclusion returns the leader's exclusion of a task tracker, or nil if there is none.
func (c *Cluster) LeaderExclusion(tracker string) *Exclusion { return c.exclusion(tracker, false) }

func (c *Cluster) exclusion(tracker string, operator bool) *Exclusion {
	for i := range c.Exclusions {
		if x := &c.Exclusions[i]; x.Tracker == tracker && x.Operator == operator {
			return x
		}
	}
	return nil
}

// ExclusionRequest asks to exclude a task tracker, or to readmit it.
type ExclusionRequest struct {
	Tracker string `json:"tracker"`
	Undo    bool   `json:"undo,omitempty"`   // readmit it
	By      string `json:"by,omitempty"`     // the operator, if the cluster is not protected
	Reason  string `json:"reason,omitempty"` // why it is excluded
	Millis  int64  `json:"millis,omitempty"` // how long; 0: until it is readmitted
}

// Limits of an ExclusionRequest, which stays in the log.
const (
	maxExclusionText = 1000 // bytes
	maxExclusion     = 10 * 365 * 24 * time.Hour
)

func (r *ExclusionRequest) check() error {
	switch {
	case r.Tracker == "":
		return badRequest("the request names no tracker")
	case r.Undo && (r.Reason != "" || r.Millis != 0):
		return badRequest("a readmission has no reason and no time")
	case len(r.Reason) > maxExclusionText || len(r.By) > maxExclusionText:
		return badRequest(fmt.Sprintf("reason and name must have at most %d bytes, got %d and %d", maxExclusionText, len(r.Reason), len(r.By)))
	case r.Millis < 0 || r.Millis > maxExclusion.Milliseconds():
		return badRequest(fmt.Sprintf("millis must be from 0 to %d, got %d", maxExclusion.Milliseconds(), r.Millis))
	}
	return nil
}

func (h *handler) exclude(ctx context.Context, r *http.Request) (any, error) {
	var body ExclusionRequest
	if err := readJSON(r.Body, &body); err != nil {
		return nil, err
	}
	if err := body.check(); err != nil {
		return nil, err
	}
	auditedOf(r).on, auditedOf(r).detail = body.Tracker, jsonText(&body)
	if err := h.requireAdmin(r, "exclude task trackers"); err != nil {
		return nil, err
	}
	if _, err := h.requireLeader(); err != nil {
		return nil, err
	}
	by := cmp.Or(h.caller(r).Name, body.By)
	if body.Undo {
		h.Logger.Info("readmit", "tracker", body.Tracker, "by", by, "asked by", r.RemoteAddr)
	} else {
		h.Logger.Info("exclude", "tracker", body.Tracker, "reason", body.Reason, "by", by, "asked by", r.RemoteAddr)
	}
	return struct{}{}, h.Server.Exclude(ctx, core.Exclude{
		Tracker: body.Tracker, Undo: body.Undo, By: by, Reason: body.Reason, For: time.Duration(body.Millis) * time.Millisecond,
	})
}

// Exclude keeps a task tracker from new work, or readmits it. It is safe to repeat.
// core.ErrUnknownTracker: the cluster does not know the tracker.
func (c *Client) Exclude(ctx context.Context, r ExclusionRequest) error {
	return c.change(ctx, "/v1/cluster/exclusions", r)
}
