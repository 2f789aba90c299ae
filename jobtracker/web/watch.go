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

// watchLine is a line of a watch; one part is set.
type watchLine struct {
	Leader string `json:"leader,omitempty"`
	Epoch  uint64 `json:"epoch,omitempty"`
	Jobs   []Job  `json:"jobs,omitempty"`
	Beat   bool   `json:"beat,omitempty"`
	End    bool   `json:"end,omitempty"`
	Error  *Error `json:"error,omitempty"`
}

// watch sends the jobs' states until all have ended.
func (h *handler) watch(w http.ResponseWriter, r *http.Request) {
	ids, err := watched(r)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	c, err := h.leads(ctx)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	out := &lines{w: w, control: http.NewResponseController(w)}
	// The read deadline of the request would end the watch.
	out.control.SetReadDeadline(time.Time{})
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if out.write(&watchLine{Leader: c.Leader, Epoch: c.Epoch}) != nil {
		return
	}
	if err := h.sendNews(ctx, out, h.caller(r), ids, c.Epoch); err != nil {
		p, _ := h.problem(ctx, err)
		out.write(&watchLine{Error: p}) // an error means that the client has closed the connection
		return
	}
	out.write(&watchLine{End: true})
}

func watched(r *http.Request) ([]wire.JobID, error) {
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

type watchNews struct {
	statuses []wire.JobStatus
	err      error
}

// sendNews writes a line for each change of the jobs, and beats between. It returns nil after
// the last one.
func (h *handler) sendNews(ctx context.Context, out *lines, by core.Caller, ids []wire.JobID, epoch uint64) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	news := make(chan watchNews)
	go func() {
		defer close(news)
		for statuses, err := range h.Server.Watch(ctx, ids) {
			select {
			case news <- watchNews{statuses, err}:
			case <-ctx.Done():
				return
			}
		}
	}()
	ticker := time.NewTicker(beat)
	defer ticker.Stop()
	for {
		select {
		case n, ok := <-news:
			if !ok || n.err != nil {
				return n.err
			}
			line := watchLine{Jobs: make([]Job, 0, len(n.statuses))}
			for i := range n.statuses {
				line.Jobs = append(line.Jobs, jobFor(by, &n.statuses[i]))
			}
			if err := out.write(&line); err != nil {
				return err
			}
		case <-ticker.C:
			if err := h.stillLeads(ctx, epoch); err != nil {
				return err
			}
			if err := out.write(&watchLine{Beat: true}); err != nil {
				return err
			}
		}
	}
}

// stillLeads ends a watch when the term in which it began is over.
func (h *handler) stillLeads(ctx context.Context, epoch uint64) error {
	c, err := h.leads(ctx)
	if err == nil && c.Epoch != epoch {
		err = fmt.Errorf("watch of epoch %d in epoch %d: %w", epoch, c.Epoch, core.ErrNotLeader)
	}
	return err
}

// lines writes JSON objects and flushes each, with a bound in time.
type lines struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

func (l *lines) write(line *watchLine) error {
	text, err := json.Marshal(line)
	if err != nil {
		return err
	}
	l.control.SetWriteDeadline(time.Now().Add(lineWait)) // only writers of tests have none
	if _, err := l.w.Write(append(text, '\n')); err != nil {
		return err
	}
	return l.control.Flush()
}
