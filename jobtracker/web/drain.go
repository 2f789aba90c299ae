package web

import (
	"context"
	"net/http"

	"github.com/quernmr/quern/wire"
)

// Drain is what can be seen of a task tracker that is to drain.
type Drain struct {
	Tracker string `json:"tracker"`
	Drained bool   `json:"drained"`         // nothing there is needed any more
	Here    bool   `json:"here"`            // it is registered, perhaps again after it was drained
	Needs   string `json:"needs,omitempty"` // what of it is still needed
}

func drainsOf(list []wire.DrainStatus) []Drain {
	var all []Drain
	for _, d := range list {
		all = append(all, Drain(d))
	}
	return all
}

// Drain finds what is known of a task tracker that is to drain; nil: it is not.
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
		return nil, badRequest("no tracker is named")
	}
	if err := h.administers(r, "drain task trackers"); err != nil {
		return nil, err
	}
	if _, err := h.leads(ctx); err != nil {
		return nil, err
	}
	h.Logger.Info("drain", "tracker", body.Tracker, "undo", body.Undo, "asked by", r.RemoteAddr)
	return struct{}{}, h.Server.Drain(ctx, body.Tracker, body.Undo)
}

// Drain has a task tracker leave as soon as nobody needs what it has or, undone, be
// given work again. It may be asked again. core.ErrUnknownTracker: nobody has heard of it.
func (c *Client) Drain(ctx context.Context, tracker string, undo bool) error {
	return c.wish(ctx, "/v1/cluster/drains", drainRequest{tracker, undo})
}
