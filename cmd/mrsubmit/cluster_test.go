package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quernmr/quern/history"
	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/jobtracker/core/admission"
	"github.com/quernmr/quern/jobtracker/web"
	"github.com/quernmr/quern/wire"
)

// fakeJobTracker is the leader of a cluster with fixed jobs and trackers.
type fakeJobTracker struct {
	recorder
	otherMethods
	staging      string
	addr         string // address of its API, and of the logs of task trackers
	jobs         []wire.JobStatus
	killed       []string
	changed      []string // changes of settings
	sched        wire.Scheduling
	drains       []wire.DrainStatus
	exclusions   []wire.ExclusionStatus
	clusterCalls int // calls of Cluster since the last drain
	trackers     []wire.TrackerStatus
	voters       []web.Voter
}

// otherMethods has the methods that no test calls.
type otherMethods struct{ web.JobTracker }

func (f *fakeJobTracker) Cluster(context.Context) (wire.ClusterStatus, error) {
	if f.clusterCalls++; f.clusterCalls > 3 && len(f.drains) > 0 {
		f.drains = []wire.DrainStatus{{Tracker: "t1", Drained: true, Registered: true}, {Tracker: "t7", Drained: true}}
	}
	return wire.ClusterStatus{
		Exclusions: append([]wire.ExclusionStatus{{Tracker: "t2", Reason: "3 attempts failed", Until: 120_000, Registered: true}}, f.exclusions...),
		Drains:     f.drains, Lost: []wire.LostTracker{{Tracker: "t3", Host: "h3", Addr: "h3:1", Since: 60_000, Maps: 2, Outputs: 9}}, Cluster: "c1", Start: 7, Staging: f.staging, Epoch: 3, Leader: "jt1", Addr: f.addr, IsLeader: true, Jobs: 1, Trackers: f.trackers,
		Scheduling: f.sched, NoPlan: "the policy panicked: boom\nstack", Pools: "f.xml: the last valid version is in force: f.xml:7: weight is \"heavy\"",
		InPools: []wire.PoolStatus{
			{Name: "default", Max: [2]int{-1, -1}, Weight: 1, MaxJobs: -1},
			{Name: "etl", Min: [2]int{2, 0}, Max: [2]int{9, 4}, Weight: 2.5, MaxJobs: 3, Jobs: 1, Running: [2]int{5, 1}},
			{Name: "old", Min: [2]int{1, 0}, Max: [2]int{-1, -1}, Weight: 1, MaxJobs: -1, Removed: true},
		},
		PoolNotes: []string{"f.xml:3: user is not known to Quern and has no effect"},
		Limits:    []wire.LimitStatus{{Name: "jobs", Used: 1, Max: 500}, {Name: "user-jobs", Of: "user ann", Used: 1, Max: 3}},
	}, nil
}

func (f *fakeJobTracker) Explain(_ context.Context, id wire.JobID) (wire.Explanation, error) {
	j, err := f.find(id)
	x := wire.Explanation{Job: id, Name: j.Name, Pool: "default", State: j.State, Submitted: 1000}
	switch {
	case err != nil:
	case j.State.Ended():
		x.End = 5000
	default:
		x.Scheduling = wire.Scheduling{Scheduler: "flex", Metric: "sum-response", Delay: "dynamic"}
		x.Phases = []wire.PhaseExplanation{
			{Phase: wire.Map, Tasks: 4, Done: 1, Running: 2, Waiting: 1, Speculative: 1, Adopted: 2, SpeculationOff: true,
				Oldest: &wire.OldestAttempt{Attempt: wire.AttemptID{Task: wire.TaskID{Job: id, Kind: wire.Map, N: 3}, N: 1000}, Tracker: "t\n1", Age: 12 * time.Second}, Place: 1, Of: 2, Target: 3, Min: 1, Max: 4, TaskSeconds: 1.5, RemainingSeconds: 4, Source: "measured", End: 8000, Wait: 2500 * time.Millisecond},
			{Phase: wire.Reduce, Tasks: 2, TaskSeconds: 1, RemainingSeconds: 2, Source: "default"},
		}
		x.Shuffle = &wire.ShuffleExplanation{Ready: 1 << 20, Remaining: 2 << 20, Total: 3 << 20, Share: 0.5, Place: 1, Of: 1}
		x.Holds = []wire.Hold{{Reason: "1 map waits for a slot near its input", Until: 7000}}
		x.End, x.Deadline = 9000, 8500
		x.Settings.Deadline = 7500 * time.Millisecond
		x.Prediction = wire.Prediction{Earliest: 7 * time.Second, Likely: 8 * time.Second, Latest: 12 * time.Second}
	}
	return x, err
}

func (f *fakeJobTracker) Leadership() core.Leadership {
	return core.Leadership{Leader: "jt1", Addr: f.addr, Epoch: 3, Leads: true}
}

func (f *fakeJobTracker) find(id wire.JobID) (wire.JobStatus, error) {
	for _, j := range f.jobs {
		if j.ID == id {
			return j, nil
		}
	}
	return wire.JobStatus{}, fmt.Errorf("%v: %w", id, admission.ErrUnknownJob)
}

func (f *fakeJobTracker) Submit(ctx context.Context, _ core.Caller, sub wire.Submission) ([]wire.JobID, error) {
	return f.recorder.Submit(ctx, sub)
}

func (f *fakeJobTracker) Kill(_ context.Context, _ core.Caller, id wire.JobID, reason string) error {
	j, err := f.find(id)
	if err == nil && j.State.Ended() {
		err = fmt.Errorf("%v: %w", id, admission.ErrJobEnded)
	}
	if err == nil {
		f.killed = append(f.killed, fmt.Sprintf("%v %s", id, reason))
	}
	return err
}

func (f *fakeJobTracker) Change(_ context.Context, _ core.Caller, id wire.JobID, c wire.Change) error {
	j, err := f.find(id)
	switch {
	case err != nil:
		return err
	case j.State.Ended():
		return fmt.Errorf("%v: %w", id, admission.ErrJobEnded)
	case c.Pool != nil && *c.Pool == "nowhere":
		return fmt.Errorf("%v: %w: pool \"nowhere\" is unknown; there are [default etl]", id, admission.ErrBadSettings)
	}
	text, err := json.Marshal(web.ChangeOf(&c))
	f.changed = append(f.changed, fmt.Sprintf("%v %s", id, text))
	return err
}

func (f *fakeJobTracker) Schedule(_ context.Context, s wire.Scheduling) error {
	f.sched = s.WithDefaults(f.sched)
	return nil
}

// Changes yields each job in its state, and then as succeeded.
func (f *fakeJobTracker) Changes(ctx context.Context, ids []wire.JobID) iter.Seq2[[]wire.JobStatus, error] {
	if f.recorder.state != 0 {
		return f.recorder.Watch(ctx, ids)
	}
	return func(yield func([]wire.JobStatus, error) bool) {
		var all []wire.JobStatus
		for _, id := range ids {
			j, err := f.find(id)
			if err != nil {
				yield(nil, err)
				return
			}
			all = append(all, j)
		}
		if !yield(slices.Clone(all), nil) {
			return
		}
		for i := range all {
			if !all[i].State.Ended() {
				all[i].State = wire.Succeeded
			}
		}
		yield(all, nil)
	}
}

func (f *fakeJobTracker) Follow(context.Context) iter.Seq2[[]core.Listed, error] {
	return func(func([]core.Listed, error) bool) {}
}

func (f *fakeJobTracker) attempts(id wire.JobID) []wire.AttemptStatus {
	if id == (wire.JobID{Start: 7, N: 2}) { // one of its attempts runs
		all := f.attempts(wire.JobID{Start: 7, N: 1})
		for i := range all {
			all[i].Attempt.Task.Job = id
		}
		all[0].Bytes = wire.Progress{Done: 1 << 10, Total: 2 << 10}
		running := wire.AttemptStatus{Attempt: wire.AttemptID{Task: wire.TaskID{Job: id, Kind: wire.Map, N: 3}, N: 1000}, Tracker: "t1", Addr: f.addr, State: wire.AttemptRunning, Began: 1000}
		return append(all, running)
	}
	task := wire.TaskID{Job: id, Kind: wire.Map}
	other := wire.TaskID{Job: id, Kind: wire.Map, N: 1}
	return []wire.AttemptStatus{
		{Attempt: wire.AttemptID{Task: task, N: 1000}, Tracker: "t1", Addr: f.addr, State: wire.AttemptFailed, Began: 1000, Launched: 900, Took: 500, Error: "boom\nstack"},
		{Attempt: wire.AttemptID{Task: task, N: 1001}, Tracker: "t1", Addr: f.addr, State: wire.AttemptSucceeded, Began: 2000, Took: 500},
		{Attempt: wire.AttemptID{Task: other, N: 1000}, Tracker: "t2", State: wire.AttemptSucceeded},
	}
}

func (f *fakeJobTracker) Attempts(_ context.Context, _ core.Caller, id wire.JobID, _ wire.AttemptID) (wire.JobAttempts, error) {
	if _, err := f.find(id); err != nil {
		return wire.JobAttempts{}, err
	}
	a := wire.JobAttempts{Attempts: f.attempts(id), Owner: "ann", Token: tokenOf(id.String())}
	if id.N == 4 {
		a.Token = ""
	}
	return a, nil
}

func (f *fakeJobTracker) History(_ context.Context, _ core.Caller, id wire.JobID) (*history.Record, error) {
	return history.Find(files(), f.staging, id)
}

func (f *fakeJobTracker) Attach(*wire.Conn, string) error { return errors.New("no trackers here") }

func (f *fakeJobTracker) Voters() []web.Voter { return f.voters }

func (f *fakeJobTracker) AddVoter(context.Context, web.Voter) error { return nil }

func (f *fakeJobTracker) RemoveVoter(_ context.Context, id string) error {
	f.voters = slices.DeleteFunc(f.voters, func(v web.Voter) bool { return v.ID == id })
	return nil
}

// newFake serves a fakeJobTracker. The same address serves logs of attempts.
func newFake(t *testing.T) *fakeJobTracker {
	t.Helper()
	f := &fakeJobTracker{staging: "file://" + t.TempDir(), voters: []web.Voter{{ID: "jt1", Addr: "h:1"}, {ID: "jt2", Addr: "h:2", Nonvoter: true}}}
	f.jobs = []wire.JobStatus{
		{ID: wire.JobID{Start: 7, N: 1}, Name: "words", Owner: "ann", State: wire.Succeeded, Maps: wire.TaskCounts{Total: 2, Done: 2}, Elapsed: 1500 * time.Millisecond,
			Counters: wire.Counters{"org.apache.hadoop.mapreduce.TaskCounter": {"MAP_INPUT_RECORDS": 3}}},
		{ID: wire.JobID{Start: 7, N: 2}, Name: "so\x1brt", State: wire.Running, Maps: wire.TaskCounts{Total: 4, Done: 1, Running: 2}, WaitReason: "for a free map slot",
			Suspended: true, Elapsed: 2 * time.Minute, Settings: wire.Settings{
				Pool: "etl", Priority: wire.High, Weight: 2, Deadline: time.Minute, Batch: "b", SLA: []wire.SLAStep{{After: time.Minute, Cost: 1}, {After: 2 * time.Minute, Cost: 5}},
			},
			Troubles:   []string{"attempt_7_0002_m_000000_1000: boom"},
			Partitions: &wire.PartitionSizes{Total: 2, Known: 1, Bytes: 4 << 20, Largest: []wire.PartitionSize{{Partition: 1, Bytes: 4 << 20}}},
			HotKeys:    []wire.HotKey{{Partition: 1, Key: "the", Records: 9, Bytes: 1 << 20, Of: 4 << 20}},
			SlotTime:   &wire.SlotTime{Total: 9000, Uses: []wire.SlotTook{{Use: wire.SlotMap, Attempts: 1, Millis: 9000}}}},
		{ID: wire.JobID{Start: 7, N: 4}, Name: "soon", State: wire.Running, Elapsed: time.Minute, Settings: wire.Settings{Deadline: 5 * time.Minute, SLA: []wire.SLAStep{{After: 62 * time.Second, Cost: 3}, {After: 2 * time.Minute, Cost: 9}}},
			Prediction: wire.Prediction{Earliest: 66 * time.Second, Likely: 70200 * time.Millisecond, Latest: 80 * time.Second}},
		{ID: wire.JobID{Start: 7, N: 3}, Name: "bad", State: wire.Failed, Error: "boom\nlast words"},
	}
	api := web.New(web.Config{Server: f, Voters: f})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rest, ok := strings.CutPrefix(r.URL.Path, "/logs/")
		switch {
		case !ok:
			api.ServeHTTP(w, r)
		case r.Header.Get("Authorization") != "Bearer "+wire.LogToken(tokenOf(strings.SplitN(rest, "/", 2)[0]), ""):
			http.Error(w, "not for you", http.StatusForbidden)
		case strings.HasSuffix(rest, "_1000/stderr"):
			fmt.Fprintf(w, "words of %s, tail %s", rest, r.URL.Query().Get("tail"))
		case strings.HasSuffix(rest, "_1001/stdout"):
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	f.addr = server.Listener.Addr().String()
	f.trackers = []wire.TrackerStatus{
		{Tracker: "t1", Host: "h1", Addr: "127.0.0.1:1", MapSlots: 2, ReduceSlots: 1, Maps: 1, Connected: true, Memory: wire.Offer{Total: 16 << 30, Used: 3 << 29}, Cores: wire.Offer{Total: 8}, Limits: "cgroup v2: memory", Isolation: "user"},
		{Tracker: "t2", Host: "h2", Addr: "127.0.0.2:1", Silent: 1234, Excluded: "3 attempts failed", Trouble: "disk /d is full", Limits: "cgroup v2: memory", Isolation: "none"},
	}
	past := &history.Record{
		Job:   wire.JobStatus{ID: wire.JobID{Start: 6, N: 9}, Name: "old", State: wire.Failed, Error: "long ago", Elapsed: time.Minute},
		Owner: "me", Token: tokenOf("job_6_0009"), Plan: wire.JobPlan{Output: "file:///out"}, Submitted: 1, Ended: 60_001, Attempts: f.attempts(wire.JobID{Start: 6, N: 9}),
		Plans: []history.Planned{{At: 1, Phase: wire.Map, Scheduling: wire.Scheduling{Scheduler: "flex"}, Target: 3, Place: 1, Places: 2,
			Queues: []history.Queued{{Tracker: "t1", After: 2, Tasks: 5}}, Share: 0.25, ShareRank: 2}}, Omitted: 7, PlansSince: 1, PlansSinceReason: "they were an earlier leader's",
	}
	if err := history.Write(files(), history.Name(f.staging, time.UnixMilli(past.Ended), past.Job.ID), past); err != nil {
		t.Fatal(err)
	}
	return f
}

// run runs a mrsubmit command with f as the job tracker.
func (f *fakeJobTracker) run(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, messages bytes.Buffer
	tool := &tool{stdout: &out, stderr: &messages, getenv: func(name string) string {
		return map[string]string{"QUERN_JOBTRACKER": f.addr, "QUERN_INSECURE": "1", "USER": "me"}[name]
	}}
	code = tool.main(t.Context(), args)
	return code, out.String(), messages.String()
}

func TestQueries(t *testing.T) {
	f := newFake(t)
	for _, c := range []struct {
		args   string
		code   int
		stdout string // pieces in this order, separated by "…"
		stderr string
	}{
		{"list", 0, "JOB…STATE…POOL…PRIORITY…DEADLINE…MAPS…OWNER…NAME\njob_7_0003…failed…job_7_0004…in 4m0s, will cost 3 by its SLA, since it ends later than 1m2s…1m0s…in 10.2s (6s to 20s)…job_7_0002…running, suspended…etl…HIGH…late by 1m0s…1/4…so?rt\njob_7_0001…succeeded…default  NORMAL…-…2/2…1.5s…ann…words\n", ""},
		{"list -state failed,killed -name b*", 0, "NAME\njob_7_0003…bad\n", ""},
		{"list -owner ann -since 2500000h -pool default", 0, "NAME\njob_7_0001…words\n", ""},
		{"list -owner bob", 0, "OWNER  FLOW  NAME\n", ""},
		{"list -state runing", 2, "", "mrsubmit list: -state runing: want some of waiting, preparing"},
		{"list -since yesterday", 2, "", "-since yesterday: want a duration as 2h, a day as"},
		{"history -name n*", 0, "JOB  STATE  ENDED  ELAPSED  OWNER  NAME\n", ""},
		{"history -owner me -state failed", 0, "NAME\njob_6_0009…old", ""},
		{"history -owner me job_6_0009", 2, "", "-since select jobs of a list, not of job_6_0009"},
		{"status job_7_0004", 0, "job_7_0004 soon  running  1m00s, ends in 10.2s (6s to 20s), will cost 3 by its SLA, since it ends later than 1m2s\n", ""},
		{"list -json", 0, `[…"id": "job_7_0003"…"id": "job_7_0001"…"state": "succeeded"`, ""},
		{"status job_7_0002", 0, "job_7_0002 so?rt  running…map      25%  1 of 4 tasks, 2 running\n  skew: key \"the\" so far has 25 %…  slot time 9s: maps 100 %\n  pool etl, priority HIGH, weight 2, deadline late by 1m0s, sla 1m0s=1,2m0s=5, batch b, suspended\n  waits for a free map slot\n  trouble: attempt_7_0002", ""},
		{"status job_7_0003", 0, "job_7_0003 bad  failed…    boom\n    last words\n", ""},
		{"status job_7_0001", 0, "job_7_0001 words  succeeded…\nowner ann\n", ""},
		{"status job_7_0002 -json", 0, `"waitReason": "for a free map slot"`, ""},
		{"status job_6_0009", 0, "job_6_0009 old  failed…long ago…owner me\n", ""},
		{"status job_1_0001", 1, "", "mrsubmit status: job_1_0001: unknown job\n"},
		{"wait job_7_0001", 0, "", "job_7_0001 words succeeded\n"},
		{"wait -quiet job_7_0001 job_7_0003", 1, "", "job_7_0003 bad failed\n"},
		{"wait job_7_0002", 0, "", "job_7_0002 so?rt submitted…succeeded"},
		{"wait -quiet -json job_7_0001 job_7_0002", 0, `[…"id": "job_7_0001"…"state": "succeeded"`, ""},
		{"wait -json job_7_0003 job_6_0009", 1, `[…"id": "job_7_0003"…"state": "failed"…"id": "job_6_0009"…"state": "failed"`, "job_6_0009 old failed"},
		{"wait job_6_0009", 1, "", "job_6_0009 old failed"},
		{"wait job_1_0001", 1, "", "unknown job"},
		{"kill job_7_0001", 1, "", "mrsubmit kill: job_7_0001: the job has ended"},
		{"kill job_6_0009", 1, "", "job_6_0009: the job has ended"},
		{"kill job_1_0001", 1, "", "job_1_0001: unknown job"},
		{"kill -reason why job_7_0002", 0, "", ""},
		{"kill -json -reason again job_7_0002 job_7_0001", 1, "{…\"killed\": [\n    \"job_7_0002\"\n  ]", "job_7_0001: the job has ended"},
		{"suspend job_7_0002 job_7_0004", 0, "", ""},
		{"suspend job_7_0002 job_7_0001 job_6_0009 job_1_0001", 1, "", "job_7_0001: the job has ended…job_6_0009: the job has ended…job_1_0001: unknown job"},
		{"resume -json job_7_0002", 0, "{…\"resumed\": [\n    \"job_7_0002\"\n  ]", ""},
		{"suspend", 2, "", "too few arguments"},
		{"set job_7_0002 priority=high weight=0.5 deadline=90m sla=5m=1,10m=5 batch=c pool=root.etl", 0, "job_7_0002 pool etl, priority HIGH, weight 2, deadline late by 1m0s", ""},
		{"set -json job_7_0002 deadline=none sla=none", 0, `"settings": {…"pool": "etl"…"late": true`, ""},
		{"set job_7_0002 deadline=-5m", 0, "late by", ""},
		{"set job_7_0001 weight=2", 1, "", "mrsubmit set: job_7_0001: the job has ended\n"},
		{"set job_6_0009 weight=2", 1, "", "job_6_0009: the job has ended"},
		{"set job_7_0002 pool=nowhere", 1, "", `bad job settings: pool "nowhere" is unknown; there are [default etl]`},
		{"set job_7_0002 prio=HIGH", 2, "", `unknown setting "prio": want pool, priority,`},
		{"set job_7_0002 priority=URGENT", 2, "", `priority "URGENT": want one of VERY_LOW,`},
		{"set job_7_0002 weight=0", 2, "", `weight "0": want a number above 0`},
		{"set job_7_0002 deadline=tomorrow", 2, "", `deadline "tomorrow": want a duration such as 90m or a time such as`},
		{"set job_7_0002 sla=5m", 2, "", `sla "5m": want TIME=COST`},
		{"set job_7_0002 HIGH", 2, "", `"HIGH": want NAME=VALUE`},
		{"set job_7_0002", 2, "", "too few arguments"},
		{"help set", 0, "deadline=90m", ""},
		{"cluster scheduler fair -delay dynamic", 0, "scheduler fair\nmetric \ndelay dynamic\n", ""},
		{"cluster scheduler -metric max-stretch", 0, "scheduler fair\nmetric max-stretch\ndelay dynamic\n", ""},
		{"cluster scheduler", 0, "scheduler fair\n…schedulers: fifo fair flex", ""},
		{"cluster scheduler -json", 0, `"scheduler": "fair"`, ""},
		{"cluster scheduler best", 2, "", `scheduler "best": want one of fifo, fair, flex`},
		{"cluster scheduler -metric sum-joy", 2, "", `metric "sum-joy": want`},
		{"cluster scheduler -delay fixed=soon", 2, "", `delay "fixed=soon": want`},
		{"cluster scheduler fair flex", 2, "", `unexpected argument "flex"`},
		{"whatif", 0, "without job_7_0003: it is susp?ended…SCHEDULER  MEAN RESPONSE…LATE  sum-response…fifo       4s             1.50          3s        2     3\n…fair *     -              -             -         -     it takes long\n", ""},
		{"whatif -jobs", 0, "…JOB         fifo\njob_7_0001  4s\njob_7_0002  5s\n", ""},
		{"whatif -json", 0, `"scheduler": "fifo"…"metrics"…"sum-response": 3`, ""},
		{"whatif now", 2, "", "unexpected argument"},
		{"counters job_7_0001", 0, "GROUP…org.apache.hadoop.mapreduce.TaskCounter  MAP_INPUT_RECORDS  3", ""},
		{"counters -json job_7_0001", 0, `"MAP_INPUT_RECORDS": 3`, ""},
		{"counters -json job_7_0002", 0, "{}\n", ""},
		{"explain job_7_0002", 0, "job_7_0002 so?rt: running, pool default\n  scheduler  flex, metric sum-response, delay dynamic\n  maps       1 of 4 done, 2 running, 1 waiting; place 1 of 2 in the plan, with 3 slots, 1 guaranteed\n" +
			"             a task takes 1.5s (measured), 4s of one slot left; should end…\n             oldest attempt_7_0002_m_000003_1000 on t?1, for 12s; slow ones get no second attempt: mapreduce.map.speculative is false\n" +
			"             1 running attempt is speculative: beside a slow one of the same task\n" +
			"             2 running attempts are of an earlier leader: times count from this leader's start\n             a map waits at most 2.5s for a local slot\n  reduces    0 of 2 done…not in the current plan…(default)…" +
			"  shuffle    2.0 MiB of 3.0 MiB left, 1.0 MiB of it ready, place 1 of 1, share 50 %\n  held       1 map waits for a slot near its input; this ends…at the latest\n  ends…8s after it was submitted; deadline…: it will miss it by about 500ms\n" +
			"  skew       key \"the\" so far has 25 % of the bytes of partition 1 and 25 % of the job's: 1.0 MiB in 9 records\n  slot time  9s: maps 100 %\n", ""},
		{"explain job_7_0001", 0, "job_7_0001 words: succeeded, pool default\n  ended…ago\n", ""},
		{"explain job_6_0009", 0, "job_6_0009 old: failed…ended", ""},
		{"explain job_1_0001", 1, "", "mrsubmit explain: job_1_0001: unknown job\n"},
		{"explain -json job_7_0002", 0, `"job": "job_7_0002"…"scheduler": "flex"…"phase": "map"…"waitSeconds": 2.5…"until": "1970-01-01T00:00:07Z"`, ""},
		{"explain", 0, "JOB…DEADLINE…job_7_0002  running  1/4   1 of 2  2 of 3  0/2…2.0 MiB left…1 map waits…so?rt\n", ""},
		{"explain -json", 0, `[…"job": "job_7_0002"`, ""},
		{"logs job_7_0001", 0, "==> attempt_7_0001_m_000000_1000 stderr on t1, failed <==\nwords of job_7_0001/attempt_7_0001_m_000000_1000/stderr, tail 65536\n", ""},
		{"logs -tail 0 job_6_0009", 0, "words of job_6_0009/attempt_6_0009_m_000000_1000/stderr, tail \n", ""},
		{"logs job_7_0001 task_7_0001_m_000000", 0, "_1000 stderr…words", "attempt_7_0001_m_000000_1001 stdout: tracker t1 at " + f.addr + ": no such log: it is removed some time after the end of the job"},
		{"logs job_7_0001 attempt_7_0001_m_000000_1000", 0, "words", ""},
		{"logs job_7_0001 task_7_0001_m_000001", 1, "", "the address of tracker t2 is not known"},
		{"logs job_7_0001 task_7_0001_m_000009", 1, "", "no such attempt"},
		{"logs job_1_0001", 1, "", "unknown job"},
		{"logs job_7_0004", 1, "", "job_7_0004: it has no token, which its logs require"},
		{"logs -json job_7_0001 task_7_0001_m_000000", 0, `"id": "attempt_7_0001_m_000000_1000"…"stderr": "http://` + f.addr + `/logs/job_7_0001/attempt_7_0001_m_000000_1000/stderr"…"token": "` + wire.LogToken(tokenOf("job_7_0001"), "") + `"`, ""},
		{"attempts job_7_0002", 0, "ATTEMPT…BYTES…ERROR\nattempt_7_0002_m_000003_1000  running…t1…attempt_7_0002_m_000000_1000  failed…500ms…1.0 KiB of 2.0 KiB  boom\nattempt_7_0002_m_000000_1001  succeeded…~ approximate", ""},
		{"attempts -state failed,running job_6_0009", 0, "ERROR\nattempt_6_0009_m_000000_1000  failed…boom\n", ""},
		{"attempts job_7_0001 task_7_0001_m_000001", 0, "ERROR\nattempt_7_0001_m_000001_1000  succeeded", ""},
		{"attempts -state runing job_7_0001", 2, "", "-state runing: want some of running, ready, failed, killed, succeeded (did you mean running?)"},
		{"attempts -json -state killed job_7_0001", 0, "[]\n", ""},
		{"attempts job_1_0001", 1, "", "unknown job"},
		{"kill-attempt -reason stuck attempt_7_0001_m_000000_1001", 0, "", ""},
		{"fail-attempt -json attempt_7_0001_m_000000_1000 attempt_7_0001_m_000001_1000", 1, "\"failed\": [\n    \"attempt_7_0001_m_000000_1000\"\n  ]", "attempt_7_0001_m_000001_1000: the attempt is committing its output"},
		{"kill-attempt task_7_0001_m_000000", 2, "", "not an id of an attempt: \"task_7_0001_m_000000\": mrsubmit attempts JOB lists them"},
		{"history", 0, "JOB…job_6_0009  failed…1m0s…me     old\n", ""},
		{"history -json", 0, `[…"id": "job_6_0009"…"owner": "me"…"ended": "1970-01-01T00:01:00.001Z"`, ""},
		{"history job_6_0009", 0, "job_6_0009 old  failed…long ago…owner me…output file:///out\nplans before…are not known: they were an earlier leader's\n7 attempts not listed\nATTEMPT…attempt_6_0009_m_000000_1000  failed     t1…boom\nattempt_6_0009_m_000000_1001…~…~ approximate: an earlier leader", ""},
		{"history -json job_6_0009", 0, `"attempts": […"plans": […"phase": "map"…"scheduler": "flex"…"slots": 3…"place": 1…"queues": […"tracker": "t1"…"after": 2…"tasks": 5…"share": 0.25…"turn": 2…"plansSince"…"plansLack": "they were`, ""},
		{"history job_7_0001", 1, "", "job_7_0001 has no history: it has not ended"},
		{"history -jobtracker= -staging " + f.staging + "/nowhere", 1, "", "this machine cannot read staging directory " + f.staging + "/nowhere: "},
		{"history -n -1", 2, "", "-n must be a number of jobs or 0 for all, got -1"},
		{"history -jobtracker= -staging " + f.staging, 0, "job_6_0009", ""},
		{"cluster", 0, "cluster c1…leader jt1 at " + f.addr + ", epoch 3, 1 unfinished job\n…scheduler fair, metric max-stretch, delay dynamic\nno new plan, the previous one stays: the policy panicked: boom\n\npools of f.xml: the last valid version is in force: f.xml:7: weight is \"heavy\"\n  f.xml:3: user is not known…POOL…WEIGHT…JOBS…default        1…etl            2.5     1 of at most 3  5 of 2 to 9      1 of at most 4\nold (removed)…0 of at least 1…VOTER…jt1    h:1\njt2    h:2 (catching up, does not vote yet)\n…TRACKER…t1…h1…1/2…0/1…good\nt2…not connected, silent for 1.2s; excluded until 1970-01-01…ago): 3 attempts failed; disk /d is full\nt3…h3:1…lost since 1970-01-01…d…ago): ran 2 maps, had 9 map outputs\n…LIMITS OF ATTEMPTS  TRACKERS\ncgroup v2: memory   t1, t2\n\nISOLATION OF JOBS  TRACKERS\nuser               t1\nnone               t2\n\nLIMIT      USED              MOST USED BY\njobs       1 of at most 500  -\nuser-jobs  1 of at most 3    user ann\n", ""},
		{"cluster -json", 0, `"leader": "jt1"…"trackers": […"lost": […"since": "1970-01-01T00:01:00Z"…"outputs": 9…"name": "user-jobs"…"of": "user ann"…"used": 1…"max": 3`, ""},
		{"cluster drain t9", 1, "", `mrsubmit cluster drain: drain: unknown task tracker "t9"`},
		{"cluster drain", 2, "", "too few arguments"},
		{"cluster drain t1", 0, "t1 draining: 2 attempts\n", ""},
		{"cluster", 0, "TRACKER…t1…draining: 2 attempts…t2", ""},
		{"cluster drain t1 -wait", 0, "t1 drained, gets no work\n", "t1 draining: 2 attempts\n"},
		{"cluster", 0, "TRACKER…t1…drained, gets no work\nt2…excluded…t7…-…drained, has ended", ""},
		{"cluster drain -json t1", 0, `"needs": "2 attempts"`, ""},
		{"cluster undrain t1", 0, "", ""},
		{"cluster undrain -json t1", 0, "{\n  \"undrained\": [\n    \"t1\"\n  ]\n}\n", ""},
		{"cluster exclude t9", 1, "", `mrsubmit cluster exclude: unknown task tracker "t9"`},
		{"cluster exclude", 2, "", "too few arguments"},
		{"cluster exclude -for -3s t1", 2, "", "-for must be positive, got -3s"},
		{"cluster exclude -for 3us t1", 2, "", "-for must be at least 1ms, got 3µs"},
		{"cluster exclude -for 3 t1", 2, "", "invalid value \"3\" for flag -for"},
		{"cluster exclude -reason noisy t1", 0, "t1 excluded by …at 1970-01-01 …until readmitted: noisy\n", "t1 was the last task tracker in service: jobs wait until"},
		{"cluster exclude t1 -for 1m -json", 0, `"tracker": "t1"…"operator": true…"since": "1970-01-01T00:01:00Z"…"until": "1970-01-01T00:02:00Z"`, "last task tracker"},
		{"cluster", 0, "TRACKER…t1…excluded by …until 1970…\nt2…excluded until 1970…3 attempts failed", ""},
		{"cluster readmit t1", 0, "t1 readmitted\n", ""},
		{"cluster readmit t1", 0, "t1 was not excluded; jobs that did not use it may use it again\n", ""},
		{"cluster readmit t2", 0, "t2 readmitted\n", ""}, // the leader excludes it
		{"cluster exclude t7", 0, "t7 excluded by ", ""},
		{"cluster", 0, "t1…good\nt2…t7…excluded by …until readmitted, not registered", ""},
		{"cluster readmit t7", 0, "t7 readmitted\n", ""},
		{"cluster exclude t7", 0, "t7 excluded by ", ""},
		{"cluster readmit -json t7", 0, "{\n  \"readmitted\": [\n    \"t7\"\n  ]\n}\n", ""},
		{"cluster readmit -json t1", 0, "{\n  \"readmitted\": []\n}\n", ""},
		{"cluster readmit t9", 1, "", `unknown task tracker "t9"`},
		{"cluster remove jt2", 0, "", ""},
		{"cluster remove -json jt2", 0, "{\n  \"removed\": [\n    \"jt2\"\n  ]\n}\n", ""},
		{"cluster remove", 2, "", "too few arguments"},
		{"cluster mend", 2, "", `unknown subcommand "mend"; see mrsubmit cluster -h`},
	} {
		code, stdout, stderr := f.run(t, strings.Fields(c.args)...)
		if code != c.code || !inOrder(stdout, c.stdout) || !inOrder(stderr, c.stderr) || c.stderr == "" && stderr != "" {
			t.Errorf("%s: exit code %d, want %d\nstdout %s\nwant   %s\nstderr %s\nwant   %s", c.args, code, c.code, stdout, c.stdout, stderr, c.stderr)
		}
		if strings.Contains(c.args, "-json") && !json.Valid([]byte(stdout)) {
			t.Errorf("%s: not JSON: %s", c.args, stdout)
		}
	}
	changed := []string{
		`job_7_0002 {"suspended":true}`, `job_7_0004 {"suspended":true}`, `job_7_0002 {"suspended":true}`, `job_7_0002 {"suspended":false}`,
		`job_7_0002 {"pool":"etl","priority":"HIGH","weight":0.5,"deadlineMillis":5400000,"sla":[{"afterMillis":300000,"cost":1},{"afterMillis":600000,"cost":5}],"batch":"c"}`,
		`job_7_0002 {"deadlineMillis":0,"sla":[]}`, `job_7_0002 {"deadlineMillis":-300000}`,
		"attempt_7_0001_m_000000_1001 false stuck", "attempt_7_0001_m_000000_1000 true ",
	}
	if !slices.Equal(f.changed, changed) {
		t.Errorf("changed %q, want %q", f.changed, changed)
	}
	if want := []string{"job_7_0002 why", "job_7_0002 again"}; !slices.Equal(f.killed, want) {
		t.Errorf("killed %q, want %q", f.killed, want)
	}
	if len(f.voters) != 1 || f.voters[0].ID != "jt1" {
		t.Errorf("voters %v", f.voters)
	}
}
