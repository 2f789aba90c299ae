package web

import (
	"fmt"
	"time"

	"github.com/quernmr/quern/wire"
)

// What is told in JSON, by this interface and by mrsubmit's -json: ids and
// states are texts, times are RFC 3339, durations are in milliseconds.
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

	// Cluster is what can be seen of a cluster.
	Cluster struct {
		ID      string    `json:"id"`
		Start   time.Time `json:"start,omitzero"` // of its bootstrap, part of every job's id
		Staging string    `json:"staging"`
		Epoch   uint64    `json:"epoch"`
		Leader  string    `json:"leader"`
		Addr    string    `json:"addr"`
		Leads   bool      `json:"leads"` // the job tracker that answers
		Jobs    int       `json:"jobs"`  // that have not ended
		Wall    time.Time `json:"wall"`  // clock of the job tracker that answers

		Scheduling Scheduling `json:"scheduling"`       // in force, told by the leader
		NoPlan     string     `json:"noPlan,omitempty"` // why there is no new plan
		Pools      Pools      `json:"pools"`            // told by the leader

		Trackers []Tracker     `json:"trackers"`
		Lost     []LostTracker `json:"lost,omitempty"`   // by tracker, told by the leader
		Drains   []Drain       `json:"drains,omitempty"` // by tracker, told by the leader
		Voters   []Voter       `json:"voters"`
		Log      Log           `json:"log"`
	}

	// LostTracker is a task tracker that was lost and is not back, and what was there.
	LostTracker struct {
		ID      string    `json:"id"`
		Host    string    `json:"host"`
		Addr    string    `json:"addr"`
		Rack    string    `json:"rack,omitempty"`
		Since   time.Time `json:"since"`
		Maps    int       `json:"maps"` // attempts that ran
		Reduces int       `json:"reduces"`
		Outputs int       `json:"outputs"` // of maps, of jobs that had not ended
	}

	// Log is what the job tracker that answers has written to its log since it started.
	Log struct {
		Entries int64 `json:"entries"`
		Bytes   int64 `json:"bytes"`
	}

	// Tracker is what can be seen of a task tracker.
	Tracker struct {
		ID           string `json:"id"`
		Host         string `json:"host"`
		Addr         string `json:"addr"`
		Incarnation  uint64 `json:"incarnation"`
		MapSlots     int    `json:"mapSlots"`
		ReduceSlots  int    `json:"reduceSlots"`
		Maps         int    `json:"maps"` // running
		Reduces      int    `json:"reduces"`
		Connected    bool   `json:"connected"`
		SilentMillis int64  `json:"silentMillis"`
		Excluded     string `json:"excluded,omitempty"`
		Trouble      string `json:"trouble,omitempty"`
		Rack         string `json:"rack,omitempty"`
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
	a := Attempt{
		ID: s.Attempt.String(), Tracker: s.Tracker, Addr: s.Addr, State: s.State.String(),
		Bytes: Bytes(s.Bytes), TookMillis: s.Took, Error: s.Error,
		Level: s.Level.String(), Reads: readsOf(&s.Reads),
	}
	if s.Began != 0 {
		a.Began = time.UnixMilli(s.Began).UTC()
	}
	if s.Launched != 0 {
		a.Launched = time.UnixMilli(s.Launched).UTC()
	}
	return a
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

func clusterOf(s *wire.ClusterStatus, wall time.Time, voters []Voter) Cluster {
	c := Cluster{
		ID: s.Cluster, Staging: s.Staging, Epoch: s.Epoch, Leader: s.Leader, Addr: s.Addr, Leads: s.Leads,
		Jobs: s.Jobs, Wall: wall.UTC(), Trackers: make([]Tracker, 0, len(s.Trackers)), Voters: voters,
		Scheduling: Scheduling(s.Scheduling), NoPlan: s.NoPlan, Pools: poolsOf(s), Drains: drainsOf(s.Drains),
	}
	if s.Start != 0 {
		c.Start = time.UnixMilli(s.Start).UTC()
	}
	for i := range s.Trackers {
		t := &s.Trackers[i]
		c.Trackers = append(c.Trackers, Tracker{
			ID: t.Tracker, Host: t.Host, Addr: t.Addr, Incarnation: t.Incarnation, MapSlots: t.MapSlots,
			ReduceSlots: t.ReduceSlots, Maps: t.Maps, Reduces: t.Reduces, Connected: t.Connected,
			SilentMillis: t.Silent, Excluded: t.Excluded, Trouble: t.Trouble, Rack: t.Rack,
		})
	}
	for i := range s.Lost {
		t := &s.Lost[i]
		c.Lost = append(c.Lost, LostTracker{
			ID: t.Tracker, Host: t.Host, Addr: t.Addr, Rack: t.Rack, Since: time.UnixMilli(t.Since).UTC(),
			Maps: t.Maps, Reduces: t.Reduces, Outputs: t.Outputs,
		})
	}
	return c
}
