package web

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/wire"
)

// watchLine is a line of a watch. Exactly one part is set; Leader and Epoch are one part.
type watchLine struct {
	Leader string `json:"leader,omitempty"`
	Epoch  uint64 `json:"epoch,omitempty"`
	Jobs   []Job  `json:"jobs,omitempty"`
	Beat   bool   `json:"beat,omitempty"`
	End    bool   `json:"end,omitempty"`
	Error  *Error `json:"error,omitempty"`
}

// watch sends the states of jobs until all have ended.
func (h *handler) watch(w http.ResponseWriter, r *http.Request) {
	ids, err := watchedJobs(r)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	c, err := h.requireLeader()
	if err != nil {
		h.fail(w, r, err)
		return
	}
	out := &lineWriter{w: w, control: http.NewResponseController(w)}
	// Without this, the read deadline of the request would end the watch.
	out.control.SetReadDeadline(time.Time{})
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if out.write(&watchLine{Leader: c.Leader, Epoch: c.Epoch}) != nil {
		return
	}
	if err := h.sendChanges(ctx, out, func() core.Caller { return h.caller(r) }, ids, c.Epoch); err != nil {
		p, status := h.problem(err)
		if status == http.StatusForbidden {
			noteFailure(r, err)
			h.logRefusal(r, err)
		}
		out.write(&watchLine{Error: p}) // an error means that the client has closed the connection
		return
	}
	out.write(&watchLine{End: true})
}

func watchedJobs(r *http.Request) ([]wire.JobID, error) {
	texts := r.URL.Query()["job"]
	if len(texts) == 0 {
		return nil, badRequest("watch: the request names no job")
	}
	ids := make([]wire.JobID, 0, len(texts))
	for _, text := range texts {
		id, err := wire.ParseJobID(text)
		if err != nil {
			return nil, badRequest("watch: " + err.Error())
		}
		ids = append(ids, id)
	}
	return ids, nil
}

type watchUpdate struct {
	statuses []wire.JobStatus
	err      error
}

// sendChanges writes a line for each change of the jobs, and beats in between. It returns nil when
// all jobs have ended. The caller's groups may change meanwhile.
func (h *handler) sendChanges(ctx context.Context, out *lineWriter, caller func() core.Caller, ids []wire.JobID, epoch uint64) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	updates := make(chan watchUpdate)
	go func() {
		defer close(updates)
		for statuses, err := range h.Server.Watch(ctx, ids) {
			select {
			case updates <- watchUpdate{statuses, err}:
			case <-ctx.Done():
				return
			}
		}
	}()
	ticker := time.NewTicker(beat)
	defer ticker.Stop()
	for {
		select {
		case n, ok := <-updates:
			if !ok || n.err != nil {
				return n.err
			}
			line := watchLine{Jobs: make([]Job, 0, len(n.statuses))}
			for i := range n.statuses {
				s := &n.statuses[i]
				if err := caller().CheckView(s.ID, s.Owner, s.Access); err != nil {
					return err
				}
				line.Jobs = append(line.Jobs, JobOf(s))
			}
			if err := out.write(&line); err != nil {
				return err
			}
		case <-ticker.C:
			if err := h.stillLeads(epoch); err != nil {
				return err
			}
			if err := out.write(&watchLine{Beat: true}); err != nil {
				return err
			}
		}
	}
}

// stillLeads fails if the epoch in which a watch began is over.
func (h *handler) stillLeads(epoch uint64) error {
	c, err := h.requireLeader()
	if err == nil && c.Epoch != epoch {
		err = fmt.Errorf("watch of epoch %d in epoch %d: %w", epoch, c.Epoch, core.ErrNotLeader)
	}
	return err
}

// lineWriter writes JSON objects, one a line. It flushes each line, within lineWait.
type lineWriter struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

func (l *lineWriter) write(line *watchLine) error {
	text, err := json.Marshal(line)
	if err != nil {
		return err
	}
	l.control.SetWriteDeadline(time.Now().Add(lineWait)) // ignore the error: only writers in tests have no deadlines
	if _, err := l.w.Write(append(text, '\n')); err != nil {
		return err
	}
	return l.control.Flush()
}
