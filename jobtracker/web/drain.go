package web

import (
	"context"
	"net/http"

	"github.com/quernmr/quern/wire"
)

// Drain is the state of a drain.
type Drain struct {
	Tracker    string `json:"tracker"`
	Drained    bool   `json:"drained"`         // no job needs the task tracker
	Registered bool   `json:"here"`            // the task tracker is registered, perhaps again after the drain
	Needs      string `json:"needs,omitempty"` // what jobs still need of it
}

func drainsOf(list []wire.DrainStatus) []Drain {
	var all []Drain
	for _, d := range list {
		all = append(all, Drain(d))
	}
	return all
}

// Drain returns the drain of a task tracker, or nil if there is none.
func (c *Cluster) Drain(tracker string) *Drain {
	for i := range c.Drains {
		if c.Drains[i].Tracker == tracker {
			return &c.Drains[i]
		}
	}
	return nil
}

type drainRequest struct {
	Tracker string `json:"tracker"`
	Undo    bool   `json:"undo,omitempty"`
}

func (h *handler) drain(ctx context.Context, r *http.Request) (any, error) {
	var body drainRequest
	if err := readJSON(r.Body, &body); err != nil {
		return nil, err
	}
	if body.Tracker == "" {
		return nil, badRequest("the request names no tracker")
	}
	auditedOf(r).on, auditedOf(r).detail = body.Tracker, jsonText(&body)
	if err := h.requireAdmin(r, "drain task trackers"); err != nil {
		return nil, err
	}
	if _, err := h.requireLeader(); err != nil {
		return nil, err
	}
	do := "drain"
	if body.Undo {
		do = "undrain"
	}
	h.Logger.Info(do, "tracker", body.Tracker, "asked by", r.RemoteAddr)
	return struct{}{}, h.Server.Drain(ctx, body.Tracker, body.Undo)
}

// Drain takes a task tracker out of service once no job needs its outputs; undo puts it back.
// It is safe to repeat. core.ErrUnknownTracker: the cluster does not know the tracker.
func (c *Client) Drain(ctx context.Context, tracker string, undo bool) error {
	return c.change(ctx, "/v1/cluster/drains", drainRequest{tracker, undo})
}
