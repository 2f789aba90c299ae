package web

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/wire"
)

type (
	// LeaderEvent is the first event of a stream: who leads, and in which epoch. The epoch is the event's id.
	LeaderEvent struct {
		Leader string `json:"leader"`
		Epoch  uint64 `json:"epoch"`
	}

	// JobsEvent has the jobs that have changed since the event before it; the first one has all.
	JobsEvent struct {
		Items []Job `json:"items"`
	}

	// EndEvent is the last event of a stream of jobs that have all ended.
	EndEvent struct{}
)

// The names of events. EventSource of browsers uses the name error for itself.
const (
	eventLeader  = "leader"
	eventJobs    = "jobs"
	eventEnd     = "end"
	eventProblem = "problem" // an [Error]; the last one
)

const eventsPath = "/v1/events"

// eventsType is the content type of a stream of events.
const eventsType = "text/event-stream"

// lastEventID is the header with which a client continues a stream of events.
const lastEventID = "Last-Event-ID"

// events sends the states of jobs until all have ended.
func (h *handler) events(w http.ResponseWriter, r *http.Request) {
	ids, err := watchedJobs(r)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	c, err := h.requireLeader()
	if err == nil {
		err = checkLastEvent(r, c.Epoch)
	}
	if err != nil {
		h.fail(w, r, err)
		return
	}
	out := &eventWriter{w: w, control: http.NewResponseController(w)}
	// Without this, the read deadline of the request would end the stream.
	out.control.SetReadDeadline(time.Time{})
	w.Header().Set("Content-Type", eventsType)
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if out.send(eventLeader, strconv.FormatUint(c.Epoch, 10), LeaderEvent{c.Leader, c.Epoch}) != nil {
		return
	}
	if err := h.sendChanges(ctx, out, func() core.Caller { return h.caller(r) }, ids, c.Epoch); err != nil {
		p := h.problem(err)
		if p.Status == http.StatusForbidden {
			noteFailure(r, err)
			h.logRefusal(r, err)
		}
		out.send(eventProblem, "", p) // an error means that the client has closed the connection
		return
	}
	out.send(eventEnd, "", EndEvent{})
}

// checkLastEvent fails if the client has had an event of a later epoch: then another job tracker leads.
func checkLastEvent(r *http.Request, epoch uint64) error {
	text := r.Header.Get(lastEventID)
	if text == "" {
		return nil
	}
	last, err := strconv.ParseUint(text, 10, 64)
	switch {
	case err != nil:
		return badRequest(fmt.Sprintf("header %s: want the id of an event, got %q", lastEventID, text))
	case last > epoch:
		return fmt.Errorf("the client has had an event of epoch %d, this job tracker led epoch %d: %w", last, epoch, core.ErrNotLeader)
	}
	return nil
}

func watchedJobs(r *http.Request) ([]wire.JobID, error) {
	texts := r.URL.Query()[jobParameter.name]
	if len(texts) == 0 {
		return nil, badRequest("the request names no job")
	}
	ids := make([]wire.JobID, 0, len(texts))
	for _, text := range texts {
		id, err := wire.ParseJobID(text)
		if err != nil {
			return nil, badParameter(jobParameter.name, err)
		}
		ids = append(ids, id)
	}
	return ids, nil
}

type jobChanges struct {
	statuses []wire.JobStatus
	err      error
}

// sendChanges sends an event for each change of the jobs, and beats in between. It returns nil when
// all jobs have ended. The caller's groups may change meanwhile.
func (h *handler) sendChanges(ctx context.Context, out *eventWriter, caller func() core.Caller, ids []wire.JobID, epoch uint64) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	updates := make(chan jobChanges)
	go func() {
		defer close(updates)
		for statuses, err := range h.Server.Changes(ctx, ids) {
			select {
			case updates <- jobChanges{statuses, err}:
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
			event := JobsEvent{make([]Job, 0, len(n.statuses))}
			for i := range n.statuses {
				s := &n.statuses[i]
				if err := caller().CheckView(s.ID, s.Owner, s.Access); err != nil {
					return err
				}
				event.Items = append(event.Items, JobOf(s))
			}
			if err := out.send(eventJobs, "", event); err != nil {
				return err
			}
		case <-ticker.C:
			if err := h.stillLeads(epoch); err != nil {
				return err
			}
			if err := out.beat(); err != nil {
				return err
			}
		}
	}
}

// stillLeads fails if the epoch in which a stream of events began is over.
func (h *handler) stillLeads(epoch uint64) error {
	c, err := h.requireLeader()
	if err == nil && c.Epoch != epoch {
		err = fmt.Errorf("events of epoch %d in epoch %d: %w", epoch, c.Epoch, core.ErrNotLeader)
	}
	return err
}

// eventWriter writes server-sent events. It flushes each one, within lineWait.
type eventWriter struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

// send writes an event. Without an id it has that of the event before it.
func (e *eventWriter) send(name, id string, data any) error {
	text, err := json.Marshal(data) // in one line
	if err != nil {
		return err
	}
	if id != "" {
		id = "id: " + id + "\n"
	}
	return e.write("event: " + name + "\n" + id + "data: " + string(text) + "\n\n")
}

// beatText is a comment, which is no event.
const beatText = ": beat\n\n"

func (e *eventWriter) beat() error { return e.write(beatText) }

func (e *eventWriter) write(text string) error {
	e.control.SetWriteDeadline(time.Now().Add(lineWait)) // ignore the error: only writers in tests have no deadlines
	if _, err := e.w.Write([]byte(text)); err != nil {
		return err
	}
	return e.control.Flush()
}
