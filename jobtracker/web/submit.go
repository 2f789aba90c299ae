package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/quernmr/quern/client"
	"github.com/quernmr/quern/jobtracker/core/admission"
	"github.com/quernmr/quern/wire"
)

// frameType is the content type of a wire frame.
const frameType = "application/x-quern-frame"

func (h *handler) submit(ctx context.Context, r *http.Request) (any, error) {
	if t, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); t != frameType {
		return nil, badRequest("a submission must have the content type " + frameType)
	}
	if _, err := h.requireLeader(); err != nil {
		return nil, err
	}
	sub, err := readSubmission(r.Body)
	if err != nil {
		return nil, err
	}
	auditedOf(r).detail = describe(sub)
	ids, err := h.Server.Submit(ctx, h.caller(r), *sub)
	if err != nil {
		return nil, err
	}
	answer := submitted{Jobs: make([]string, 0, len(ids))}
	for _, id := range ids {
		answer.Jobs = append(answer.Jobs, id.String())
	}
	auditedOf(r).on = strings.Join(answer.Jobs, " ")
	return answer, nil
}

// describe says for the audit log what is submitted. The name is last: the log truncates long texts.
func describe(s *wire.Submission) string {
	name := s.Plan.Flow
	if name == "" && len(s.Plan.Jobs) > 0 {
		name = s.Plan.Jobs[0].Name
	}
	return fmt.Sprintf("program %s, %d jobs, pool %s, name %q", s.Program.Hash, len(s.Plan.Jobs), cmp.Or(s.Settings.Pool, wire.DefaultPool), name)
}

type submitted struct {
	Jobs []string `json:"jobs"`
}

// readSubmission reads a body that is one frame of a submission.
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
	return nil, badRequest(fmt.Sprintf("read submission: %v", err))
}

// Find implements client.Cluster.
func (c *Client) Find(ctx context.Context, key string) ([]wire.JobID, error) {
	jobs, err := c.Submit(ctx, wire.Submission{Key: key}) // it is bad, unless the key is known
	if errors.Is(err, admission.ErrBadSubmission) {
		return nil, nil
	}
	return jobs, err
}

const submissionsPath = "/v1/submissions"

// Submit implements client.Cluster. An error with a method RetryAfter says that the cluster accepts
// no submission for now: the caller may wait. An error matches client.ErrUndecided if the cluster may have
// accepted the submission. To find out, submit again with the same key.
func (c *Client) Submit(ctx context.Context, sub wire.Submission) ([]wire.JobID, error) {
	frame, err := wire.Append(nil, &sub)
	if err != nil {
		return nil, fmt.Errorf("submit: %w", err)
	}
	var answer submitted
	uncertain, err := c.send(ctx, request{method: http.MethodPost, path: submissionsPath, contentType: frameType, body: frame}, &answer)
	switch {
	case err == nil:
	case errors.Is(err, admission.ErrBadSubmission):
		return nil, err // an earlier leader would have refused it too
	case uncertain:
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
