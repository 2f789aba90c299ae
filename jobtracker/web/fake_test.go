package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quernmr/quern/history"
	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/jobtracker/core/admission"
	"github.com/quernmr/quern/wire"
)

// fakeLog is the state that the fake job trackers of a cluster share.
type fakeLog struct {
	mu      sync.Mutex
	epoch   uint64
	leader  *fake
	jobs    []wire.JobStatus
	keys    map[string][]wire.JobID
	submits int // of new keys

	scheduling wire.Scheduling
	drains     []wire.DrainStatus
	exclusions []wire.ExclusionStatus
	changed    chan struct{}

	readLimit time.Duration // for a request, and for the first byte of a stream
}

func newFakeLog() *fakeLog {
	return &fakeLog{epoch: 1, keys: make(map[string][]wire.JobID), changed: make(chan struct{}), readLimit: 20 * time.Second}
}

// change changes the log and wakes the watches.
func (l *fakeLog) change(do func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	do()
	close(l.changed)
	l.changed = make(chan struct{})
}

// setLeader begins an epoch with f as leader, or without a leader if f is nil.
func (l *fakeLog) setLeader(f *fake) {
	l.change(func() {
		l.leader = f
		l.epoch++
	})
}

func (l *fakeLog) setState(id wire.JobID, state wire.State) {
	l.change(func() {
		for i := range l.jobs {
			if l.jobs[i].ID == id {
				l.jobs[i].State = state
			}
		}
	})
}

// fake is a job tracker without a core.
type fake struct {
	log     *fakeLog
	id      string
	addr    string
	hint    string                          // address to name as the leader's; "": its own
	after   func(sub wire.Submission) error // called after a submission; its error is the answer
	serve   func(conn *wire.Conn) error
	hang    chan struct{} // not nil: no answers until it is closed
	voter   []Voter
	changes []string // JSON of changes of settings, in order
	callers []core.Caller
	ended   []string     // attempts that EndAttempt has ended
	broken  atomic.Int32 // calls of Breakdown
	streams []string     // names of the task trackers of streams

	removeErr error // answer to the removal of a voter
}

func (f *fake) Cluster(ctx context.Context) (wire.ClusterStatus, error) {
	if f.hang != nil {
		select {
		case <-f.hang:
		case <-ctx.Done():
			return wire.ClusterStatus{}, ctx.Err()
		}
	}
	f.log.mu.Lock()
	defer f.log.mu.Unlock()
	c := wire.ClusterStatus{Cluster: "c1", Start: 7, Staging: "mem://s", Epoch: f.log.epoch, IsLeader: f.log.leader == f}
	if l := f.log.leader; l != nil {
		c.Leader, c.Addr = l.id, l.addr
	}
	if f.hint != "" {
		c.Addr = f.hint
	}
	if c.IsLeader {
		c.Jobs, c.Scheduling, c.Drains = len(f.log.jobs), f.log.scheduling, slices.Clone(f.log.drains)
		c.Exclusions, c.Limits = slices.Clone(f.log.exclusions), []wire.LimitStatus{{Name: "jobs", Used: 4, Max: 9}}
		c.Pools, c.InPools = "f.xml", []wire.PoolStatus{{Name: "etl", Min: [2]int{1, 0}, Max: [2]int{-1, 2}, Weight: 2, MaxJobs: -1, Jobs: 1, Running: [2]int{3, 0}}}
		c.Trackers = []wire.TrackerStatus{{Tracker: "t1", Host: "h1", Addr: "h1:1", Incarnation: 3, MapSlots: 2, Maps: 1, Connected: true, Silent: 12, Excluded: "bad", Memory: wire.Offer{Total: 4096, Used: 1024}}}
	}
	return c, nil
}

func (f *fake) Leadership() core.Leadership {
	c, _ := f.Cluster(context.Background())
	return core.Leadership{Leader: c.Leader, Addr: c.Addr, Epoch: c.Epoch, Leads: c.IsLeader}
}

func (f *fake) checkLeads() error {
	if f.log.leader != f {
		return core.ErrNotLeader
	}
	return nil
}

func (f *fake) Submit(ctx context.Context, caller core.Caller, sub wire.Submission) ([]wire.JobID, error) {
	var ids []wire.JobID
	var err error
	f.log.change(func() {
		f.callers = append(f.callers, caller)
		if err = f.checkLeads(); err != nil {
			return
		}
		if sub.Key == "" {
			err = fmt.Errorf("submit: %w: it has no key", admission.ErrBadSubmission)
			return
		}
		if ids = f.log.keys[sub.Key]; ids != nil {
			return
		}
		f.log.submits++
		for _, plan := range sub.Plan.Jobs {
			id := wire.JobID{Start: 7, N: len(f.log.jobs) + 1}
			f.log.jobs = append(f.log.jobs, wire.JobStatus{ID: id, Name: plan.Name, Owner: caller.Name, State: wire.Running})
			ids = append(ids, id)
		}
		f.log.keys[sub.Key] = ids
	})
	if err == nil && f.after != nil {
		err = f.after(sub)
	}
	return ids, err
}

func (f *fake) status(id wire.JobID) (wire.JobStatus, error) {
	i := slices.IndexFunc(f.log.jobs, func(j wire.JobStatus) bool { return j.ID == id })
	if i < 0 {
		return wire.JobStatus{}, fmt.Errorf("%v: %w", id, admission.ErrUnknownJob)
	}
	return f.log.jobs[i], nil
}

func (f *fake) Kill(_ context.Context, caller core.Caller, id wire.JobID, reason string) error {
	var err error
	f.log.change(func() {
		f.callers = append(f.callers, caller)
		var s wire.JobStatus
		if s, err = f.status(id); err != nil {
			return
		}
		switch s.State {
		case wire.Committing:
			err = fmt.Errorf("%v: %w", id, admission.ErrJobCommitting)
		case wire.Running:
			f.log.jobs[id.N-1].State, f.log.jobs[id.N-1].Error = wire.Killed, reason
		default:
			err = fmt.Errorf("%v: %w", id, admission.ErrJobEnded)
		}
	})
	return err
}

func (f *fake) Change(_ context.Context, caller core.Caller, id wire.JobID, c wire.Change) error {
	var err error
	f.log.change(func() {
		f.callers = append(f.callers, caller)
		var s wire.JobStatus
		if s, err = f.status(id); err != nil {
			return
		}
		j := &f.log.jobs[id.N-1]
		switch {
		case s.State.Ended():
			err = fmt.Errorf("%v: %w", id, admission.ErrJobEnded)
		case c.Pool != nil && *c.Pool == "nowhere":
			err = fmt.Errorf("%v: %w: pool \"nowhere\" is unknown", id, admission.ErrBadSettings)
		case c.Suspended != nil:
			j.Suspended = *c.Suspended
		case c.Priority != nil:
			j.Settings.Priority = *c.Priority
		}
		text, _ := json.Marshal(ChangeOf(&c))
		f.changes = append(f.changes, string(text))
	})
	return err
}

func (f *fake) Schedule(_ context.Context, s wire.Scheduling) error {
	err := admission.CheckScheduling(s)
	f.log.change(func() {
		if err == nil {
			err = f.checkLeads()
		}
		if err == nil {
			f.log.scheduling = s.WithDefaults(f.log.scheduling)
		}
	})
	return err
}

func (f *fake) Drain(_ context.Context, tracker string, undo bool) error {
	var err error
	f.log.change(func() {
		if err = f.checkLeads(); err != nil {
			return
		}
		i := slices.IndexFunc(f.log.drains, func(d wire.DrainStatus) bool { return d.Tracker == tracker })
		switch {
		case tracker == "unknown":
			err = fmt.Errorf("drain: %w %q", core.ErrUnknownTracker, tracker)
		case undo && i >= 0:
			f.log.drains = slices.Delete(f.log.drains, i, i+1)
		case !undo && i < 0:
			f.log.drains = append(f.log.drains, wire.DrainStatus{Tracker: tracker, Registered: true, Needs: "1 attempt"})
		}
	})
	return err
}

func (f *fake) Exclude(_ context.Context, x core.Exclude) error {
	var err error
	f.log.change(func() {
		switch err = f.checkLeads(); {
		case err != nil:
		case x.Tracker == "unknown":
			err = fmt.Errorf("%w %q", core.ErrUnknownTracker, x.Tracker)
		case x.Undo:
			f.log.exclusions = nil
		default:
			f.log.exclusions = []wire.ExclusionStatus{{
				Tracker: x.Tracker, Operator: true, By: x.By, Reason: x.Reason, Since: 1000, Until: x.For.Milliseconds(), Registered: true,
			}}
		}
	})
	return err
}

// fakePage is the number of jobs in a page of the fake's lists.
const fakePage = 2

// fakeSubmitted is when all jobs of the fake were submitted.
const fakeSubmitted = 1000

func (f *fake) Jobs(_ context.Context, q core.Query) (page []wire.JobStatus, next wire.JobID, err error) {
	f.log.mu.Lock()
	defer f.log.mu.Unlock()
	if q.After.N > len(f.log.jobs) {
		return nil, next, fmt.Errorf("%w: %v", core.ErrCursor, q.After)
	}
	all := slices.Clone(f.log.jobs)
	if !q.Oldest {
		slices.Reverse(all)
	}
	if i := slices.IndexFunc(all, func(s wire.JobStatus) bool { return s.ID == q.After }); i >= 0 {
		all = all[i+1:]
	}
	for _, s := range all {
		if len(page) == fakePage {
			return page, page[fakePage-1].ID, nil
		}
		if q.Filter.Selects(&s, fakeSubmitted, q.By.MayView(s.Owner, s.Access)) {
			s.Counters, s.Troubles = nil, nil
			page = append(page, s)
		}
	}
	return page, next, nil
}

func (f *fake) Attempts(_ context.Context, caller core.Caller, id wire.JobID, after wire.AttemptID) (wire.JobAttempts, error) {
	f.log.mu.Lock()
	defer f.log.mu.Unlock()
	f.callers = append(f.callers, caller)
	s, err := f.status(id)
	if err == nil {
		err = caller.CheckView(id, s.Owner, s.Access)
	}
	if err != nil {
		return wire.JobAttempts{}, err
	}
	task := wire.TaskID{Job: id, Kind: wire.Map}
	if id.N == fakePage { // its first page is empty
		if after.N == 0 {
			return wire.JobAttempts{Owner: "ann", Token: "secret", Next: wire.AttemptID{Task: task, N: 5}}, nil
		}
	}
	return wire.JobAttempts{Owner: "ann", Token: "secret", Attempts: []wire.AttemptStatus{{
		Attempt: wire.AttemptID{Task: task, N: 1000}, Tracker: "t1", Addr: "h1:1", State: wire.AttemptFailed,
		Bytes: wire.Progress{Done: 1, Total: 2}, Began: 1234, Took: 5, Error: "boom",
	}}}, nil
}

func pastOf(s wire.JobStatus) *history.Record {
	return &history.Record{Job: s, Owner: s.Owner, Token: "secret", Submitted: fakeSubmitted, Ended: 2000, Attempts: []wire.AttemptStatus{{
		Attempt: wire.AttemptID{Task: wire.TaskID{Job: s.ID, Kind: wire.Map}, N: 1000}, Tracker: "t1", State: wire.AttemptFailed, Error: "secret",
	}}}
}

func (f *fake) History(_ context.Context, caller core.Caller, id wire.JobID) (*history.Record, error) {
	f.log.mu.Lock()
	defer f.log.mu.Unlock()
	s, err := f.status(id)
	if err != nil {
		return nil, fmt.Errorf("history of %v: %w", id, fs.ErrNotExist)
	}
	return pastOf(s), caller.CheckView(id, s.Owner, s.Access)
}

// Histories has two pages: that of the first job is the last one.
func (f *fake) Histories(_ context.Context, q core.Query) (*history.Page, error) {
	f.log.mu.Lock()
	defer f.log.mu.Unlock()
	p := &history.Page{Skipped: []error{errors.New("damaged")}}
	for i, s := range slices.Backward(f.log.jobs) {
		if !q.After.IsZero() && s.ID.Compare(q.After) >= 0 || !q.Filter.Selects(&s, fakeSubmitted, true) {
			continue
		}
		p.Records = append(p.Records, pastOf(s))
		if i > 0 && q.After.IsZero() && q.Filter.Flow.IsZero() {
			p.Next = s.ID
			break
		}
	}
	return p, nil
}

func (f *fake) Explain(_ context.Context, id wire.JobID) (wire.Explanation, error) {
	f.log.mu.Lock()
	defer f.log.mu.Unlock()
	s, err := f.status(id)
	if err != nil {
		return wire.Explanation{}, err
	}
	return wire.Explanation{
		Job: id, Name: s.Name, Owner: s.Owner, Access: s.Access, Pool: "default", State: s.State, Scheduling: wire.Scheduling{Scheduler: "flex", Metric: "sum-response", Delay: "none"},
		Phases: []wire.PhaseExplanation{{
			Phase: wire.Map, Tasks: 4, Done: 1, Running: 2, Waiting: 1, Place: 1, Of: 2, Target: 3, Min: 1, Max: 4,
			TaskSeconds: 1.5, RemainingSeconds: 4, Source: "measured", End: 9000,
		}},
		Shuffle: &wire.ShuffleExplanation{Ready: 1, Remaining: 2, Total: 3, Share: 0.5, Place: 1, Of: 1},
		Holds:   []wire.Hold{{Reason: "a map waits", Until: 8000}}, Submitted: 1000, End: 9000,
		Prediction: wire.Prediction{Earliest: 7 * time.Second, Likely: 8 * time.Second, Latest: 12 * time.Second},
	}, nil
}

func (f *fake) Explanations(ctx context.Context, after wire.JobID) (all []wire.Explanation, next wire.JobID, err error) {
	jobs, next, err := f.Jobs(ctx, core.Query{After: after, Oldest: true})
	if err != nil {
		return nil, next, err
	}
	for _, s := range jobs {
		x, err := f.Explain(ctx, s.ID)
		if err != nil {
			return nil, next, err
		}
		all = append(all, x)
	}
	return all, next, nil
}

func (f *fake) Attach(conn *wire.Conn, tracker string) error {
	defer conn.Close()
	f.log.change(func() { f.streams = append(f.streams, tracker) })
	if f.serve != nil {
		return f.serve(conn)
	}
	for {
		m, err := conn.Receive()
		if err != nil {
			return err
		}
		if err := conn.Send(m); err != nil { // an echo
			return err
		}
	}
}

func (f *fake) Voters() []Voter { return f.voter }

func (f *fake) AddVoter(_ context.Context, v Voter) error {
	f.voter = append(f.voter, v)
	return nil
}

func (f *fake) RemoveVoter(_ context.Context, id string) error {
	before := len(f.voter)
	f.voter = slices.DeleteFunc(f.voter, func(v Voter) bool { return v.ID == id })
	if len(f.voter) == before {
		return ErrNotVoter
	}
	return f.removeErr
}

// start serves a fake on loopback until the test or stop ends it.
func (l *fakeLog) start(t *testing.T, id string) (f *fake, stop func()) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f = &fake{log: l, id: id, addr: listener.Addr().String()}
	server := NewServer(New(Config{
		ID: id, Server: f, Voters: f, now: func() time.Time { return time.UnixMilli(99) }, helloLimit: l.readLimit,
	}), nil, nil, nil)
	server.ReadTimeout = l.readLimit
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	}()
	stop = sync.OnceFunc(func() {
		server.Close()
		<-done
	})
	t.Cleanup(stop)
	return f, stop
}

// startOne starts a cluster of one job tracker, which leads.
func startOne(t *testing.T) (*fake, *Client) {
	t.Helper()
	return newFakeLog().startOne(t)
}

func (l *fakeLog) startOne(t *testing.T) (*fake, *Client) {
	t.Helper()
	f, _ := l.start(t, "jt1")
	l.setLeader(f)
	return f, testClient(t, f.addr)
}

func testClient(t *testing.T, addrs ...string) *Client {
	c := NewClient(addrs)
	c.Patience = 20 * time.Second
	t.Cleanup(c.Close)
	return c
}

// closedAddr returns an address at which no process listens.
func closedAddr(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener.Close()
	return listener.Addr().String()
}

func submission(key string) wire.Submission {
	return wire.Submission{Key: key, Staging: "mem://s/" + key, Plan: wire.Plan{Jobs: []wire.JobPlan{{Name: "words"}}}}
}
