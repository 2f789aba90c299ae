package web

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
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

	// JobsEvent has the jobs that have changed since the event before it; the first one has all. With filters, a job
	// that they no longer select comes once more.
	JobsEvent struct {
		Items []Job `json:"items"`
	}

	// EndEvent is the last event: all jobs that the request names have ended.
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

// events sends the states of jobs: of those that the request names until all have ended, or of all that its
// filters select.
func (h *handler) events(w http.ResponseWriter, r *http.Request) {
	ids, q, err := h.watchedJobs(r)
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
	caller := func() core.Caller { return h.caller(r) } // its groups may change
	changes := h.namedChanges(ctx, ids, caller)
	if len(ids) == 0 {
		changes = h.selectedChanges(ctx, q, caller)
	}
	if err := h.sendChanges(ctx, out, changes, c.Epoch); err != nil {
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

// watchedJobs returns the jobs that a request names, or its filters.
func (h *handler) watchedJobs(r *http.Request) (ids []wire.JobID, q core.Query, err error) {
	if q, err = h.jobQuery(r); err != nil {
		return nil, q, err
	}
	for _, text := range r.URL.Query()[jobParameter.name] {
		id, err := wire.ParseJobID(text)
		if err != nil {
			return nil, q, badParameter(jobParameter.name, err)
		}
		ids = append(ids, id)
	}
	if len(ids) > 0 && !q.Filter.IsZero() {
		return nil, q, badRequest("events are of the jobs with some ids or of those that filters select, not both")
	}
	return ids, q, nil
}

// namedChanges yields states of jobs until all have ended.
func (h *handler) namedChanges(ctx context.Context, ids []wire.JobID, caller func() core.Caller) iter.Seq2[[]Job, error] {
	return func(yield func([]Job, error) bool) {
		for statuses, err := range h.Server.Changes(ctx, ids) {
			jobs := make([]Job, 0, len(statuses))
			for i := range statuses {
				s := &statuses[i]
				if err == nil {
					err = caller().CheckView(s.ID, s.Owner, s.Access)
				}
				jobs = append(jobs, JobOf(s))
			}
			if !yield(jobs, err) || err != nil {
				return
			}
		}
	}
}

// firstLists is how many streams of events read their first states at a time. Others wait: after an election
// all clients come at once.
const firstLists = 4

// selectedChanges yields the jobs that a query selects, and those which change. A job that is no longer selected
// comes once more.
func (h *handler) selectedChanges(ctx context.Context, q core.Query, caller func() core.Caller) iter.Seq2[[]Job, error] {
	return func(yield func([]Job, error) bool) {
		changes := h.Server.Follow(ctx) // from before the first states
		selected := make(map[wire.JobID]bool)
		if !h.firstStates(ctx, q, caller, selected, yield) {
			return
		}
		for list, err := range changes {
			now, jobs := caller(), []Job{}
			for i := range list {
				s := &list[i]
				was, is := selected[s.ID], q.Filter.Selects(&s.JobStatus, s.Submitted, now.MayView(s.Owner, s.Access))
				if is {
					selected[s.ID] = true
				} else {
					delete(selected, s.ID)
				}
				if was || is {
					jobs = append(jobs, listedJob(now, &s.JobStatus))
				}
			}
			if (len(jobs) > 0 || err != nil) && (!yield(jobs, err) || err != nil) {
				return
			}
		}
	}
}

// firstStates yields the jobs that a query selects. It returns false if the stream ends.
func (h *handler) firstStates(ctx context.Context, q core.Query, caller func() core.Caller, selected map[wire.JobID]bool, yield func([]Job, error) bool) bool {
	select {
	case h.first <- struct{}{}:
	case <-ctx.Done():
		return yield(nil, ctx.Err()) && false
	}
	jobs := []Job{}
	var err error
	for {
		var page []wire.JobStatus
		page, q.After, err = h.Server.Jobs(ctx, q)
		now := caller()
		for i := range page {
			selected[page[i].ID] = true
			jobs = append(jobs, listedJob(now, &page[i]))
		}
		if err != nil || q.After.IsZero() {
			break
		}
	}
	<-h.first
	return yield(jobs, err) && err == nil
}

type jobChanges struct {
	jobs []Job
	err  error
}

// sendChanges sends an event for each change of the jobs, and beats in between. It returns nil when changes
// ends.
func (h *handler) sendChanges(ctx context.Context, out *eventWriter, changes iter.Seq2[[]Job, error], epoch uint64) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	updates := make(chan jobChanges)
	go func() {
		defer close(updates)
		for jobs, err := range changes {
			select {
			case updates <- jobChanges{jobs, err}:
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
			if err := out.send(eventJobs, "", JobsEvent{n.jobs}); err != nil {
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
