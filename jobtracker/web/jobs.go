package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/quernmr/quern/identity"
	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/jobtracker/core/admission"
	"github.com/quernmr/quern/wire"
)

type (
	// Job is the status of a job.
	Job struct {
		ID            string                      `json:"id"`
		Name          string                      `json:"name"`
		Flow          string                      `json:"flow,omitempty"`      // id of its flow, if any
		After         []string                    `json:"after,omitempty"`     // the jobs of its flow that write its input; once all of them have ended, only flows and histories have it
		StoppedBy     string                      `json:"stoppedBy,omitempty"` // the job of its flow that stopped it
		Owner         string                      `json:"owner,omitempty"`
		State         string                      `json:"state"`
		Maps          Tasks                       `json:"maps"`
		Reduces       Tasks                       `json:"reduces"`
		Read          Bytes                       `json:"read"`
		Shuffled      Bytes                       `json:"shuffled"`
		Reduced       Bytes                       `json:"reduced"`
		Suspended     bool                        `json:"suspended,omitempty"`
		Settings      Settings                    `json:"settings"`
		Counters      map[string]map[string]int64 `json:"counters,omitempty"`
		Error         string                      `json:"error,omitempty"`
		WaitReason    string                      `json:"waitReason,omitempty"` // begins with "for"
		Troubles      []string                    `json:"troubles,omitempty"`
		Submitted     time.Time                   `json:"submitted,omitzero"`
		ElapsedMillis int64                       `json:"elapsedMillis"`
		Prediction    *Prediction                 `json:"prediction,omitempty"`   // of its end; only of a job that has not ended
		GivenUpTasks  string                      `json:"givenUpTasks,omitempty"` // "maps 3, 7-9; reduce 0"
		GivenUp       []string                    `json:"givenUp,omitempty"`      // why, for the first of them
		Partitions    *PartitionSizes             `json:"partitions,omitempty"`   // not in lists
		HotKeys       []HotKey                    `json:"hotKeys,omitempty"`      // keys with a large part of their partition, most bytes first; not in lists
		SlotTime      *SlotTime                   `json:"slotTime,omitempty"`     // what its slots did; not in lists
		Hidden        bool                        `json:"hidden,omitempty"`       // the user may not see more than the fields that are set
	}

	// Tasks counts a phase's tasks.
	Tasks struct {
		Total          int `json:"total"`
		Running        int `json:"running"`
		Done           int `json:"done"`
		FailedAttempts int `json:"failedAttempts"`
		GivenUp        int `json:"givenUp,omitempty"` // tasks that failed for good, and without which the job goes on
	}

	// Bytes is a phase's progress.
	Bytes struct {
		Done  int64 `json:"done"`
		Total int64 `json:"total"`
	}

	// Attempt is the status of an attempt.
	Attempt struct {
		ID         string    `json:"id"`
		Tracker    string    `json:"tracker"`
		Addr       string    `json:"addr"` // host:port for its logs
		State      string    `json:"state"`
		Bytes      Bytes     `json:"bytes"`
		Launched   time.Time `json:"launched,omitzero"` // left out: an earlier leader launched it, and began is approximate
		Began      time.Time `json:"began,omitzero"`
		TookMillis int64     `json:"tookMillis"`
		Error      string    `json:"error,omitempty"`
		Level      string    `json:"level,omitempty"` // locality of a map: distance to its input
		Reads      Reads     `json:"reads,omitzero"`  // reads of its input, if the file system counts them

		Speculative bool `json:"speculative,omitempty"` // launched while another attempt of the task ran
	}

	// Reads counts the bytes read from each distance, and the time of reading them.
	Reads struct {
		NodeBytes    int64 `json:"nodeBytes"`
		NodeMillis   int64 `json:"nodeMillis"`
		RackBytes    int64 `json:"rackBytes"`
		RackMillis   int64 `json:"rackMillis"`
		RemoteBytes  int64 `json:"remoteBytes"`
		RemoteMillis int64 `json:"remoteMillis"`
	}
)

// JobOf converts a job's status to JSON.
func JobOf(s *wire.JobStatus) Job {
	j := Job{
		ID: s.ID.String(), Name: s.Name, Owner: s.Owner, State: s.State.String(), Suspended: s.Suspended, Settings: settingsOf(&s.Settings, s.Elapsed), Maps: Tasks(s.Maps), Reduces: Tasks(s.Reduces),
		Read: Bytes(s.Read), Shuffled: Bytes(s.Shuffled), Reduced: Bytes(s.Reduced), Counters: s.Counters,
		Error: s.Error, WaitReason: s.WaitReason, Troubles: s.Troubles, Submitted: timeOf(s.Submitted), ElapsedMillis: s.Elapsed.Milliseconds(),
		Prediction: predictionOf(&s.Prediction, &s.Settings), GivenUpTasks: s.GivenUpTasks, GivenUp: s.GivenUp,
		Partitions: sizesOf(s.Partitions), HotKeys: hotKeysOf(s), SlotTime: slotTimeOf(s.SlotTime),
	}
	if !s.Flow.IsZero() {
		j.Flow = s.Flow.String()
	}
	if !s.StoppedBy.IsZero() {
		j.StoppedBy = s.StoppedBy.String()
	}
	for _, id := range s.After {
		j.After = append(j.After, id.String())
	}
	return j
}

// Status is the inverse of [JobOf], to the millisecond.
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
	var stoppedBy wire.JobID
	if j.Flow != "" {
		flow, err = wire.ParseFlowID(j.Flow)
	}
	if j.StoppedBy != "" && err == nil {
		stoppedBy, err = wire.ParseJobID(j.StoppedBy)
	}
	after, afterErr := parseJobs(j.After)
	if err = cmp.Or(err, afterErr); err != nil {
		return wire.JobStatus{}, fmt.Errorf("%v: %w", id, err)
	}
	settings, err := j.Settings.toWire()
	if err != nil {
		return wire.JobStatus{}, fmt.Errorf("%v: %w", id, err)
	}
	submitted := int64(0)
	if !j.Submitted.IsZero() {
		submitted = j.Submitted.UnixMilli()
	}
	return wire.JobStatus{
		ID: id, Submitted: submitted, Name: j.Name, Flow: flow, After: after, StoppedBy: stoppedBy, Owner: j.Owner, State: state, Suspended: j.Suspended, Settings: settings, Maps: wire.TaskCounts(j.Maps), Reduces: wire.TaskCounts(j.Reduces),
		Read: wire.Progress(j.Read), Shuffled: wire.Progress(j.Shuffled), Reduced: wire.Progress(j.Reduced),
		Counters: j.Counters, Error: j.Error, WaitReason: j.WaitReason, Troubles: j.Troubles,
		Elapsed: time.Duration(j.ElapsedMillis) * time.Millisecond, Prediction: j.Prediction.ToWire(),
		GivenUpTasks: j.GivenUpTasks, GivenUp: j.GivenUp,
		Partitions: j.Partitions.toWire(), HotKeys: j.wireHotKeys(), SlotTime: j.SlotTime.toWire(),
	}, nil
}

func parseJobs(texts []string) (ids []wire.JobID, err error) {
	for _, text := range texts {
		id, err := wire.ParseJobID(text)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}

func stateOf(text string) (wire.State, error) {
	for s := wire.Waiting; s <= wire.Killed; s++ {
		if s.String() == text {
			return s, nil
		}
	}
	return 0, fmt.Errorf("unknown state %q of a job", text)
}

// AttemptOf converts an attempt's status to JSON.
func AttemptOf(s *wire.AttemptStatus) Attempt {
	return Attempt{
		ID: s.Attempt.String(), Tracker: s.Tracker, Addr: s.Addr, State: s.State.String(),
		Bytes: Bytes(s.Bytes), TookMillis: s.Took, Error: s.Error,
		Level: s.Level.String(), Reads: readsOf(&s.Reads), Began: timeOf(s.Began), Launched: timeOf(s.Launched), Speculative: s.Speculative,
	}
}

// Status is the inverse of [AttemptOf].
func (a *Attempt) Status() (wire.AttemptStatus, error) {
	id, err := wire.ParseAttemptID(a.ID)
	if err != nil {
		return wire.AttemptStatus{}, err
	}
	s := wire.AttemptStatus{
		Attempt: id, Tracker: a.Tracker, Addr: a.Addr, Bytes: wire.Progress(a.Bytes), Took: a.TookMillis, Error: a.Error,
		Reads: a.Reads.toWire(), Speculative: a.Speculative,
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

// reads is the inverse of [readsOf], to the millisecond.
func (r *Reads) toWire() wire.Reads {
	return wire.Reads{
		Node:   wire.Reading{Bytes: r.NodeBytes, Took: time.Duration(r.NodeMillis) * time.Millisecond},
		Rack:   wire.Reading{Bytes: r.RackBytes, Took: time.Duration(r.RackMillis) * time.Millisecond},
		Remote: wire.Reading{Bytes: r.RemoteBytes, Took: time.Duration(r.RemoteMillis) * time.Millisecond},
	}
}

func (h *handler) jobs(ctx context.Context, r *http.Request) (any, error) {
	q, err := h.jobQuery(r)
	if err != nil {
		return nil, err
	}
	if _, err := h.requireLeader(); err != nil {
		return nil, err
	}
	statuses, next, err := h.Server.Jobs(ctx, q)
	if err != nil {
		return nil, err
	}
	answer := Page[Job]{Items: make([]Job, 0, len(statuses)), Next: cursor(next)}
	for i := range statuses {
		answer.Items = append(answer.Items, listedJob(q.By, &statuses[i]))
	}
	return answer, nil
}

// Jobs lists the jobs that the cluster knows and the query selects, without counters and troubles. q.By has no
// effect.
func (c *Client) Jobs(ctx context.Context, q core.Query) ([]Job, error) {
	jobs, err := allPages(ctx, c, "/v1/jobs", valuesOf(&q), partOf[Job])
	if err != nil {
		return nil, fmt.Errorf("list jobs: %w", err)
	}
	return jobs, nil
}

func pathJob(r *http.Request) (wire.JobID, error) {
	id, err := wire.ParseJobID(r.PathValue("id"))
	if err != nil {
		return id, badRequest(err.Error())
	}
	return id, nil
}

// jobAtLeader returns the job in the path. It fails if this job tracker does not lead.
func (h *handler) jobAtLeader(r *http.Request) (wire.JobID, error) {
	id, err := pathJob(r)
	if err == nil {
		_, err = h.requireLeader()
	}
	return id, err
}

func (h *handler) job(ctx context.Context, r *http.Request) (any, error) {
	id, err := h.jobAtLeader(r)
	if err != nil {
		return nil, err
	}
	for statuses, err := range h.Server.Changes(ctx, []wire.JobID{id}) {
		if err != nil {
			return nil, err
		}
		return JobOf(&statuses[0]), h.checkView(r, &statuses[0])
	}
	return nil, fmt.Errorf("%v: %w", id, admission.ErrUnknownJob)
}

// Job returns the status of a job. It fails with admission.ErrUnknownJob if the cluster does not
// know the job any more.
func (c *Client) Job(ctx context.Context, id wire.JobID) (*Job, error) {
	job := new(Job)
	_, err := c.send(ctx, request{method: http.MethodGet, path: "/v1/jobs/" + id.String()}, job)
	return job, err
}

type killRequest struct {
	Reason string `json:"reason,omitempty"`
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
	auditedOf(r).detail = body.Reason
	if _, err := h.requireLeader(); err != nil {
		return nil, err
	}
	return struct{}{}, h.Server.Kill(ctx, h.caller(r), id, body.Reason)
}

// Kill implements client.Cluster.
func (c *Client) Kill(ctx context.Context, job wire.JobID, reason string) error {
	uncertain, err := c.send(ctx, jsonRequest(http.MethodPost, "/v1/jobs/"+job.String()+"/kill", killRequest{reason}), &struct{}{})
	if uncertain && errors.Is(err, admission.ErrJobEnded) {
		// Perhaps this kill has ended the job, and the first answer was lost.
		if j, jobErr := c.Job(ctx, job); jobErr == nil && j.State == wire.Killed.String() {
			return nil
		}
	}
	return err
}

// Attempts has a job's attempts, or a page of them, and the token for their logs.
type Attempts struct {
	Items []Attempt `json:"items"`
	Next  string    `json:"next,omitempty"` // as of a Page
	Owner string    `json:"owner,omitempty"`
	Token string    `json:"token,omitempty"` // of this user, only for these logs; see package wire
}

// AttemptsOf converts a job's attempts to JSON.
func AttemptsOf(a *wire.JobAttempts) *Attempts {
	all := &Attempts{Items: make([]Attempt, 0, len(a.Attempts)), Next: cursor(a.Next), Owner: a.Owner, Token: a.Token}
	for i := range a.Attempts {
		all.Items = append(all.Items, AttemptOf(&a.Attempts[i]))
	}
	return all
}

func (h *handler) attempts(ctx context.Context, r *http.Request) (any, error) {
	id, err := h.jobAtLeader(r)
	if err != nil {
		return nil, err
	}
	values := r.URL.Query()
	states, err := attemptStateParameter.several(values)
	if err != nil {
		return nil, err
	}
	var after wire.AttemptID
	if text := values.Get(afterAttempt.name); text != "" {
		if after, err = wire.ParseAttemptID(text); err != nil {
			return nil, badCursor(err)
		}
	}
	a, err := h.Server.Attempts(ctx, h.caller(r), id, after)
	if err != nil {
		return nil, err
	}
	if len(states) > 0 { // after the page is read: its cost has a limit
		a.Attempts = slices.DeleteFunc(a.Attempts, func(s wire.AttemptStatus) bool { return !slices.Contains(states, s.State.String()) })
	}
	if a.Token != "" {
		user := ""
		if peer, ok := identity.PeerOf(r.TLS); ok {
			user = peer.Name
		}
		a.Token = wire.LogToken(a.Token, user)
	}
	return AttemptsOf(&a), nil
}

// Attempts lists a job's attempts in these states, or all if there are no states.
func (c *Client) Attempts(ctx context.Context, id wire.JobID, states ...string) (*Attempts, error) {
	var last *Attempts
	all, err := allPages(ctx, c, "/v1/jobs/"+id.String()+"/attempts", url.Values{attemptStateParameter.name: states}, func(p *Attempts) ([]Attempt, string) {
		last = p
		return p.Items, p.Next
	})
	if err != nil {
		return nil, err
	}
	return &Attempts{Items: all, Owner: last.Owner, Token: last.Token}, nil
}

// Attempt returns an attempt of a job, and the user's token for its logs. It fails with fs.ErrNotExist if the
// cluster does not list the attempt, or any more.
func (c *Client) Attempt(ctx context.Context, id wire.AttemptID) (a *Attempt, token string, err error) {
	job, page := id.Task.Job.String(), new(Attempts)
	query := url.Values{afterAttempt.name: {wire.AttemptID{Task: id.Task}.String()}} // attempts have higher numbers
	if _, err := c.send(ctx, request{method: http.MethodGet, path: "/v1/jobs/" + job + "/attempts?" + query.Encode()}, page); err != nil {
		return nil, "", err
	}
	i := slices.IndexFunc(page.Items, func(a Attempt) bool { return a.ID == id.String() })
	if i < 0 {
		return nil, "", fmt.Errorf("%s has no attempt %v: %w", job, id, fs.ErrNotExist)
	}
	return &page.Items[i], page.Token, nil
}
