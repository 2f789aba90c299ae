package web

import (
	"context"
	"errors"
	"net/http"

	"github.com/quernmr/quern/jobtracker/core/admission"
	"github.com/quernmr/quern/wire"
)

// endAttempt serves requests to kill an attempt, or to fail it.
func (h *handler) endAttempt(fail bool) func(ctx context.Context, r *http.Request) (any, error) {
	return func(ctx context.Context, r *http.Request) (any, error) {
		job, err := pathJob(r)
		if err != nil {
			return nil, err
		}
		id, err := wire.ParseAttemptID(r.PathValue("attempt"))
		switch {
		case err != nil:
			return nil, badRequest(err.Error())
		case id.Task.Job != job:
			return nil, badRequest(id.String() + " does not belong to " + job.String())
		}
		var body killRequest
		if err := readJSON(r.Body, &body); err != nil {
			return nil, err
		}
		auditedOf(r).detail = body.Reason
		if _, err := h.requireLeader(); err != nil {
			return nil, err
		}
		return struct{}{}, h.Server.EndAttempt(ctx, h.caller(r), id, fail, body.Reason)
	}
}

// EndAttempt kills a running attempt, or fails it, and waits until it has ended. The attempt of a task
// tracker that is not connected may be killed later.
func (c *Client) EndAttempt(ctx context.Context, id wire.AttemptID, fail bool, reason string) error {
	do, ends := "/kill", wire.AttemptKilled
	if fail {
		do, ends = "/fail", wire.AttemptFailed
	}
	path := "/v1/jobs/" + id.Task.Job.String() + "/attempts/" + id.String() + do
	uncertain, err := c.send(ctx, jsonRequest(http.MethodPost, path, killRequest{reason}), &struct{}{})
	if uncertain && errors.Is(err, admission.ErrAttemptEnded) {
		// Perhaps this request has ended the attempt, and the first answer was lost.
		if all, listErr := c.Attempts(ctx, id.Task.Job); listErr == nil {
			for i := range all.Items {
				if a := &all.Items[i]; a.ID == id.String() && a.State == ends.String() {
					return nil
				}
			}
		}
	}
	return err
}
