package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/jobtracker/core/admission"
	"github.com/quernmr/quern/wire"
)

// What can be seen of jobs.
type (
	// Job is what can be seen of a job.
	Job struct {
		ID            string                      `json:"id"`
		Name          string                      `json:"name"`
		Flow          string                      `json:"flow,omitempty"` // that it is of; empty: it stands alone
		With          string                      `json:"with,omitempty"` // the job of its flow that has taken it with it
		Owner         string                      `json:"owner,omitempty"`
		State         string                      `json:"state"`
		Maps          Tasks                       `json:"maps"`
		Reduces       Tasks                       `json:"reduces"`
		Read          Bytes                       `json:"read"`
		Shuffled      Bytes                       `json:"shuffled"`
		Reduced       Bytes                       `json:"reduced"`
		Held          bool                        `json:"held,omitempty"` // suspended
		Terms         Terms                       `json:"terms"`
		Counters      map[string]map[string]int64 `json:"counters,omitempty"`
		Error         string                      `json:"error,omitempty"`
		Waits         string                      `json:"waits,omitempty"` // "for …"
		Troubles      []string                    `json:"troubles,omitempty"`
		ElapsedMillis int64                       `json:"elapsedMillis"`
		EndsMillis    int64                       `json:"endsMillis,omitempty"` // predicted, from submission to its end
	}

	// Tasks counts a phase's tasks.
	Tasks struct {
		Total          int `json:"total"`
		Running        int `json:"running"`
		Done           int `json:"done"`
		FailedAttempts int `json:"failedAttempts"`
	}

	// Bytes is a phase's progress.
	Bytes struct {
		Done  int64 `json:"done"`
		Total int64 `json:"total"`
	}

	// Attempt is what can be seen of an attempt.
	Attempt struct {
		ID         string    `json:"id"`
		Tracker    string    `json:"tracker"`
		Addr       string    `json:"addr"` // host:port that serves its logs
		State      string    `json:"state"`
		Bytes      Bytes     `json:"bytes"`
		Launched   time.Time `json:"launched,omitzero"` // when it was given its slot; not given: under an earlier leader, and began is about
		Began      time.Time `json:"began,omitzero"`
		TookMillis int64     `json:"tookMillis"`
		Error      string    `json:"error,omitempty"`
		Level      string    `json:"level,omitempty"` // how near to its input a map was launched
		Reads      Reads     `json:"reads,omitzero"`  // of its input, as far as the file system tells
	}

	// Reads is what was read by how near it was, and for how long that was waited for.
	Reads struct {
		NodeBytes    int64 `json:"nodeBytes"`
		NodeMillis   int64 `json:"nodeMillis"`
		RackBytes    int64 `json:"rackBytes"`
		RackMillis   int64 `json:"rackMillis"`
		RemoteBytes  int64 `json:"remoteBytes"`
		RemoteMillis int64 `json:"remoteMillis"`
	}
)

// JobOf is a job's status as it is told.
func JobOf(s *wire.JobStatus) Job {
	j := Job{
		ID: s.ID.String(), Name: s.Name, Owner: s.Owner, State: s.State.String(), Held: s.Held, Terms: termsOf(&s.Terms, s.Elapsed), Maps: Tasks(s.Maps), Reduces: Tasks(s.Reduces),
		Read: Bytes(s.Read), Shuffled: Bytes(s.Shuffled), Reduced: Bytes(s.Reduced), Counters: s.Counters,
		Error: s.Error, Waits: s.Waits, Troubles: s.Troubles, ElapsedMillis: s.Elapsed.Milliseconds(),
		EndsMillis: s.Ends.Milliseconds(),
	}
	if !s.Flow.IsZero() {
		j.Flow = s.Flow.String()
	}
	if !s.With.IsZero() {
		j.With = s.With.String()
	}
	return j
}

// Status is what [JobOf] was given, to the millisecond.
func (j *Job) Status() (wire.JobStatus, error) {
	id, err := wire.ParseJobID(j.ID)
	if err != nil {
		return wire.JobStatus{}, err
	}
	state, err := stateOf(j.State)
	if err != nil {
		return wire.JobStatus{}, fmt.Errorf("%v: %w", id, err)
	}
	var flow wire.FlowID
	var with wire.JobID
	if j.Flow != "" {
		flow, err = wire.ParseFlowID(j.Flow)
	}
	if j.With != "" && err == nil {
		with, err = wire.ParseJobID(j.With)
	}
	if err != nil {
		return wire.JobStatus{}, fmt.Errorf("%v: %w", id, err)
	}
	terms, err := j.Terms.terms()
	if err != nil {
		return wire.JobStatus{}, fmt.Errorf("%v: %w", id, err)
	}
	return wire.JobStatus{
		ID: id, Name: j.Name, Flow: flow, With: with, Owner: j.Owner, State: state, Held: j.Held, Terms: terms, Maps: wire.TaskCounts(j.Maps), Reduces: wire.TaskCounts(j.Reduces),
		Read: wire.Progress(j.Read), Shuffled: wire.Progress(j.Shuffled), Reduced: wire.Progress(j.Reduced),
		Counters: j.Counters, Error: j.Error, Waits: j.Waits, Troubles: j.Troubles,
		Elapsed: time.Duration(j.ElapsedMillis) * time.Millisecond, Ends: time.Duration(j.EndsMillis) * time.Millisecond,
	}, nil
}

func stateOf(text string) (wire.State, error) {
	for s := wire.Waiting; s <= wire.Killed; s++ {
		if s.String() == text {
			return s, nil
		}
	}
	return 0, fmt.Errorf("unknown state %q of a job", text)
}

// AttemptOf is an attempt's status as it is told.
func AttemptOf(s *wire.AttemptStatus) Attempt {
	return Attempt{
		ID: s.Attempt.String(), Tracker: s.Tracker, Addr: s.Addr, State: s.State.String(),
		Bytes: Bytes(s.Bytes), TookMillis: s.Took, Error: s.Error,
		Level: s.Level.String(), Reads: readsOf(&s.Reads), Began: instant(s.Began), Launched: instant(s.Launched),
	}
}

// Status is what [AttemptOf] was given.
func (a *Attempt) Status() (wire.AttemptStatus, error) {
	id, err := wire.ParseAttemptID(a.ID)
	if err != nil {
		return wire.AttemptStatus{}, err
	}
	s := wire.AttemptStatus{
		Attempt: id, Tracker: a.Tracker, Addr: a.Addr, Bytes: wire.Progress(a.Bytes), Took: a.TookMillis, Error: a.Error,
		Reads: a.Reads.reads(),
	}
	for state := wire.AttemptRunning; state <= wire.AttemptKilled; state++ {
		if state.String() == a.State {
			s.State = state
		}
	}
	for level := wire.NodeLocal; level <= wire.Remote; level++ {
		if level.String() == a.Level {
			s.Level = level
		}
	}
	if s.State == 0 {
		return s, fmt.Errorf("%v: unknown state %q of an attempt", id, a.State)
	}
	if !a.Began.IsZero() {
		s.Began = a.Began.UnixMilli()
	}
	if !a.Launched.IsZero() {
		s.Launched = a.Launched.UnixMilli()
	}
	return s, nil
}

func readsOf(r *wire.Reads) Reads {
	return Reads{
		NodeBytes: r.Node.Bytes, NodeMillis: r.Node.Took.Milliseconds(),
		RackBytes: r.Rack.Bytes, RackMillis: r.Rack.Took.Milliseconds(),
		RemoteBytes: r.Remote.Bytes, RemoteMillis: r.Remote.Took.Milliseconds(),
	}
}

// reads is what [readsOf] was given, to the millisecond.
func (r *Reads) reads() wire.Reads {
	return wire.Reads{
		Node:   wire.Reading{Bytes: r.NodeBytes, Took: time.Duration(r.NodeMillis) * time.Millisecond},
		Rack:   wire.Reading{Bytes: r.RackBytes, Took: time.Duration(r.RackMillis) * time.Millisecond},
		Remote: wire.Reading{Bytes: r.RemoteBytes, Took: time.Duration(r.RemoteMillis) * time.Millisecond},
	}
}

type jobList struct {
	Jobs []Job `json:"jobs"`
}

func (h *handler) jobs(ctx context.Context, r *http.Request) (any, error) {
	if _, err := h.leads(ctx); err != nil {
		return nil, err
	}
	statuses, err := h.Server.Jobs(ctx)
	if err != nil {
		return nil, err
	}
	answer := jobList{Jobs: make([]Job, 0, len(statuses))}
	for i := range statuses {
		job := jobFor(h.asker(r), &statuses[i])
		job.Counters, job.Troubles = nil, nil
		answer.Jobs = append(answer.Jobs, job)
	}
	return answer, nil
}

// Jobs lists all jobs that the cluster still knows, oldest first, without
// counters and troubles.
func (c *Client) Jobs(ctx context.Context) ([]Job, error) {
	var answer jobList
	if _, err := c.ask(ctx, request{method: http.MethodGet, path: "/v1/jobs"}, &answer); err != nil {
		return nil, fmt.Errorf("list jobs: %w", err)
	}
	return answer.Jobs, nil
}

func pathJob(r *http.Request) (wire.JobID, error) {
	id, err := wire.ParseJobID(r.PathValue("id"))
	if err != nil {
		return id, badRequest(err.Error())
	}
	return id, nil
}

// jobHere is pathJob where this job tracker leads.
func (h *handler) jobHere(ctx context.Context, r *http.Request) (wire.JobID, error) {
	id, err := pathJob(r)
	if err == nil {
		_, err = h.leads(ctx)
	}
	return id, err
}

func (h *handler) job(ctx context.Context, r *http.Request) (any, error) {
	id, err := h.jobHere(ctx, r)
	if err != nil {
		return nil, err
	}
	for statuses, err := range h.Server.Watch(ctx, []wire.JobID{id}) {
		if err != nil {
			return nil, err
		}
		return jobFor(h.asker(r), &statuses[0]), nil
	}
	return nil, fmt.Errorf("%v: %w", id, admission.ErrUnknownJob)
}

// Job tells of one job. admission.ErrUnknownJob: the cluster knows it not, or no longer.
func (c *Client) Job(ctx context.Context, id wire.JobID) (*Job, error) {
	job := new(Job)
	_, err := c.ask(ctx, request{method: http.MethodGet, path: "/v1/jobs/" + id.String()}, job)
	return job, err
}

type killRequest struct {
	Reason string `json:"reason"`
}

func (h *handler) kill(ctx context.Context, r *http.Request) (any, error) {
	id, err := pathJob(r)
	if err != nil {
		return nil, err
	}
	var body killRequest
	if err := readJSON(r.Body, &body); err != nil {
		return nil, err
	}
	if _, err := h.leads(ctx); err != nil {
		return nil, err
	}
	return struct{}{}, h.Server.Kill(ctx, h.asker(r), id, body.Reason)
}

// Kill implements client.Cluster.
func (c *Client) Kill(ctx context.Context, job wire.JobID, reason string) error {
	maybe, err := c.ask(ctx, asJSON(http.MethodPost, "/v1/jobs/"+job.String()+"/kill", killRequest{reason}), &struct{}{})
	if maybe && errors.Is(err, admission.ErrJobEnded) {
		// Perhaps by this very kill, whose first answer was lost.
		if j, jobErr := c.Job(ctx, job); jobErr == nil && j.State == wire.Killed.String() {
			return nil
		}
	}
	return err
}

// Attempts are a job's attempts, and what it takes to read their logs.
type Attempts struct {
	Attempts []Attempt `json:"attempts"`
	Owner    string    `json:"owner,omitempty"`
	Token    string    `json:"token,omitempty"` // see package wire; not for everybody
}

// AttemptsOf are a job's attempts as they are told.
func AttemptsOf(a *wire.JobAttempts) *Attempts {
	told := &Attempts{Attempts: make([]Attempt, 0, len(a.Attempts)), Owner: a.Owner, Token: a.Token}
	for i := range a.Attempts {
		told.Attempts = append(told.Attempts, AttemptOf(&a.Attempts[i]))
	}
	return told
}

func (h *handler) attempts(ctx context.Context, r *http.Request) (any, error) {
	id, err := h.jobHere(ctx, r)
	if err != nil {
		return nil, err
	}
	a, err := h.Server.Attempts(ctx, h.asker(r), id)
	if err != nil {
		return nil, err
	}
	return AttemptsOf(&a), nil
}

// Attempts lists a job's attempts as far as the leader knows them.
func (c *Client) Attempts(ctx context.Context, id wire.JobID) (*Attempts, error) {
	answer := new(Attempts)
	_, err := c.ask(ctx, request{method: http.MethodGet, path: "/v1/jobs/" + id.String() + "/attempts"}, answer)
	return answer, err
}

// jobFor is a job's status as somebody may see it: what its attempts wrote is for those
// who may read their logs.
func jobFor(by core.Asker, s *wire.JobStatus) Job {
	job := JobOf(s)
	if !by.MayRead(s.Owner) {
		job.Error, _, _ = strings.Cut(job.Error, "\n")
		job.Troubles = nil
	}
	return job
}
