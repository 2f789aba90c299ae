package core

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/quernmr/quern/history"
	"github.com/quernmr/quern/scheduler"
	"github.com/quernmr/quern/wire"
)

// TestScenarios plays testdata/*.txt. A scenario is a list of verbs. Each prints the
// leader's decisions. Names are short: job1, job1/m0 (a task: s setup, m map, r reduce,
// c commit, x cleanup, f fence), job1/m0/1000 (an attempt), job1/p0 (the home of a
// partition). The log commits at once unless held. FIFO plans at once, and plans are
// hidden unless the verb plans says otherwise.
//
//	elect term=1                         this job tracker is elected
//	depose
//	cluster t1=2,1 t2=2,1,900,4 [rack=/r1]   trackers with map,reduce slots, MiB and cores connect and send empty inventories
//	hello t1 [process=2] [slots=2,1] [rack=/r1]   a tracker opens a stream; its old one may still be open
//	close t1                             its stream ends
//	inventory t1                         lines below: attempt … as in report, and home …
//	submit key=k reduces=1 [jobs=2] [-D name=value]…   jobs > 1: a flow, where each job reads the one before,
//	         [reads=-/1/1/2+3]           or the listed jobs
//	         [by=ann] [by=root,admin] [secret=…]
//	splits job1 10 20@t1/r1@t2           the splits file is read: bytes, hosts, their racks
//	report t1 job1/m0/1000 STATE [error=… log=… fatal bad-input at=5@9 skips=1 splits=2 digest=7 bytes=5 reads=1/2/3 read=1s/0s/2s took=3s committed lost=job1/m0/1000 count=3]
//	home t1 job1/p0 [gen=1.1] [digest=15] [maps=2] [complete]
//	lost-output t1 job1/m0/1000 [reached=t3+t4] [missing=yes]  t1 does not reach its tracker, but two others; or it has no such output
//	staging-removed key [error=…]        RemoveStaging has ended
//	kill job1 [reason] [by=bob]
//	end-attempt job1/m0/1000 [fail] [reason=…] [by=bob]  a user kills an attempt, or fails it
//	tick 5s                              time passes
//	heartbeat t1 [rate=1000] [awaited=(job1/t2/t3,job2/t2)] renews its lease; rate: bytes a second that its homes fetch
//	sleep 1m                             time passes, and the core is only woken at its end
//	log hold | undecided | release
//	plans automatic                      the scheduler in force answers Allocate; new plans are shown
//	plans manual                         the verb plan answers Allocate
//	plan map job1=2 job2=1 shuffle job2=0.5  answers Allocate: slots, and shares of the shuffle
//	plan map job1=2@t3+t1 t2=job1+job2   also ranks the trackers for job1, and queues jobs on t2
//	status job1
//
// Verbs of clusters: [scenario.runCluster]. Verbs of job settings and scheduling:
// [scenario.runRequests]. Verbs of forecasts: [scenario.runExplains].
func TestScenarios(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			s := newScenario(t)
			datadriven.RunTest(t, path, s.run)
			s.checkReplay(filepath.Base(path))
		})
	}
}

type scenario struct {
	t          *testing.T
	core       *Core
	now        time.Duration
	term       uint64
	index      uint64
	log        []Entry
	logHeld    bool
	queue      []Propose // proposals not committed yet
	lastStream Stream
	streams    map[string]Stream // the last open stream of each tracker
	names      map[Stream]string
	manual     bool                 // the verb plan answers Allocate
	automatic  bool                 // the scheduler in force answers Allocate, and new plans are shown
	lastPlans  map[wire.Kind]string // by kind, as shown
	seq        map[wire.Kind]uint64
	token      Token
	nonce      string          // of the next hello
	rack       string          // of the next hello
	showNotes  bool            // show lines for the job tracker's log
	record     *history.Record // of the last WriteHistory
	out        strings.Builder
}

const scenarioStart = 1_700_000_000_000

func newScenario(t *testing.T) *scenario {
	return &scenario{
		t: t, core: New(Config{ID: "jt", Staging: "mem://s/staging", Preemption: true}),
		streams: make(map[string]Stream), names: make(map[Stream]string),
		seq: make(map[wire.Kind]uint64), lastPlans: make(map[wire.Kind]string),
	}
}

// step feeds an event, prints the commands, and lets the log commit. It also makes those checks
// of random worlds that apply to scenarios.
func (s *scenario) step(ev Event) {
	commands := s.core.Step(s.now, ev)
	checkReduces(s.core, s.t.Fatalf)
	checkHolds(s.core, s.t.Fatalf)
	for _, c := range commands {
		s.carryOut(c)
	}
	for !s.logHeld && len(s.queue) > 0 {
		s.commitNext()
	}
}

func (s *scenario) commitNext() {
	p := s.queue[0]
	s.queue = s.queue[1:]
	s.index++
	e := Entry{Index: s.index, Term: s.term, Data: p.Data}
	s.log = append(s.log, e)
	s.step(e)
}

func (s *scenario) printf(format string, args ...any) { fmt.Fprintf(&s.out, format+"\n", args...) }

func (s *scenario) carryOut(c Command) {
	switch c := c.(type) {
	case Propose:
		s.printf("fact %s", c.Key)
		s.queue = append(s.queue, c)
	case Send:
		s.printf("%s <- %s", s.names[c.Stream], showMessage(c.Message))
	case CloseStream:
		name := s.names[c.Stream]
		s.printf("close %s", name)
		s.closed(name, c.Stream)
	case Reply:
		var jobs []string
		for _, id := range c.Jobs {
			jobs = append(jobs, showJob(id))
		}
		if c.Err != nil {
			s.printf("reply %d: error: %v", c.Token, c.Err)
		} else {
			s.printf("reply %d: %s", c.Token, strings.Join(append(jobs, "ok"), " "))
		}
	case Allocate:
		s.allocate(c)
	case LoadSplits:
		s.printf("load splits of %s%s", showJob(c.Job), showAfter(c.Delay))
	case RemoveStaging:
		s.printf("remove %s%s", c.URL, showAfter(c.Delay))
	case Halt:
		s.printf("halt: %v", c.Err)
	default:
		s.carryOutCluster(c)
	}
}

func (s *scenario) allocate(c Allocate) {
	s.seq[c.Phase] = c.Seq
	if !s.manual {
		plan, err := s.policy(c).Plan(c.Snapshot)
		if err == nil {
			err = plan.Validate(c.Snapshot)
		}
		if err != nil {
			s.t.Fatalf("policy: %v", err)
		}
		s.showPlan(c.Phase, plan)
		for _, cmd := range s.core.Step(s.now, Allocated{Epoch: c.Epoch, Seq: c.Seq, Phase: c.Phase, Plan: plan}) {
			s.carryOut(cmd)
		}
		return
	}
	var jobs []string
	for _, j := range c.Snapshot.Jobs {
		jobs = append(jobs, fmt.Sprintf("%s running=%d max=%d", showJob(j.ID), j.Running, j.Max))
	}
	s.printf("allocate %d %s slots: %s", c.Snapshot.Slots, c.Phase, strings.Join(jobs, ", "))
}

func (s *scenario) run(t *testing.T, d *datadriven.TestData) string {
	s.t = t
	s.out.Reset()
	switch d.Cmd {
	case "elect":
		s.term = num(value(d, "term", "1"))
		s.step(Elected{Term: s.term, Wall: scenarioStart + s.now.Milliseconds()})
	case "depose":
		s.step(Deposed{})
	case "cluster":
		for _, a := range d.CmdArgs {
			s.rack = value(d, "rack", "")
			if a.Key == "rack" {
				continue
			}
			s.hello(a.Key, 1, a.Vals[0])
			s.step(FromTracker{Stream: s.streams[a.Key], Message: &wire.Inventory{}})
		}
	case "hello":
		s.nonce, s.rack = value(d, "nonce", ""), value(d, "rack", "")
		s.hello(d.CmdArgs[0].Key, num(value(d, "process", "1")), value(d, "slots", "2,1"))
	case "close":
		name := d.CmdArgs[0].Key
		stream := s.streams[name]
		s.closed(name, stream)
		s.step(StreamClosed{stream})
	case "tick":
		by, err := time.ParseDuration(d.CmdArgs[0].Key)
		if err != nil {
			t.Fatal(err)
		}
		s.tick(by)
	case "sleep":
		by, err := time.ParseDuration(d.CmdArgs[0].Key)
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		s.now += by
		s.step(Tick{})
	case "log":
		s.setLog(d.CmdArgs[0].Key)
	case "plans":
		s.manual, s.automatic = d.CmdArgs[0].Key == "manual", d.CmdArgs[0].Key == "automatic"
	case "plan":
		s.plan(d)
	case "status":
		return s.status(parseJob(d.CmdArgs[0].Key))
	default:
		if !s.runDetail(d) && !s.runCluster(d) && !s.runRequests(d) && !s.runExplains(d) {
			s.runOther(d)
		}
	}
	return s.out.String()
}

// tick lets time pass, and wakes the core whenever it asks for that.
func (s *scenario) tick(by time.Duration) {
	end := s.now + by
	for {
		at, ok := s.core.Wake()
		if !ok || at > end {
			break
		}
		s.now = max(s.now, at)
		s.step(Tick{})
		checkWake(s.core, s.now, s.t.Fatalf)
	}
	s.now = end
	s.step(Tick{})
}

func (s *scenario) setLog(mode string) {
	switch mode {
	case "hold":
		s.logHeld = true
	case "undecided":
		queue := s.queue
		s.queue = nil
		for _, p := range queue {
			s.step(Undecided{Key: p.Key})
		}
	case "release":
		s.logHeld = false
		s.step(Tick{})
	}
}

func (s *scenario) hello(name string, process uint64, slots string) {
	offer := strings.Split(slots+",0,0", ",")
	s.lastStream++
	s.streams[name] = s.lastStream
	s.names[s.lastStream] = name
	s.step(FromTracker{Stream: s.lastStream, Message: &wire.Hello{
		Version: wire.Version, Tracker: name, Process: process, Host: name, Addr: name + ":1",
		MapSlots: int(num(offer[0])), ReduceSlots: int(num(offer[1])), Nonce: s.nonce, Rack: s.rack, Memory: int64(num(offer[2])) << 20, Cores: int(num(offer[3])),
	}})
}

// closed forgets a stream. The tracker continues with its earlier stream if that is open.
func (s *scenario) closed(name string, id Stream) {
	delete(s.names, id)
	if s.streams[name] != id {
		return
	}
	delete(s.streams, name)
	for other, n := range s.names {
		if n == name {
			s.streams[name] = max(s.streams[name], other)
		}
	}
}

func (s *scenario) plan(d *datadriven.TestData) {
	phase := wire.Map
	if d.CmdArgs[0].Key == "reduce" {
		phase = wire.Reduce
	}
	ev := Allocated{Epoch: s.core.Epoch(), Seq: s.seq[phase], Phase: phase}
	shuffle := false
	for _, a := range d.CmdArgs[1:] {
		if a.Key == "error" {
			ev.Err = errors.New(a.Vals[0])
			continue
		}
		if len(a.Vals) > 0 && a.Key[0] == 't' {
			ev.Plan.Queues = append(ev.Plan.Queues, parseQueue(a.Key, a.Vals[0]))
			continue
		}
		if a.Key == "shuffle" {
			shuffle = true
			continue
		}
		if shuffle {
			share, err := strconv.ParseFloat(a.Vals[0], 64)
			if err != nil {
				s.t.Fatal(err)
			}
			ev.Plan.ShuffleShares = append(ev.Plan.ShuffleShares, scheduler.ShuffleShare{Job: parseJob(a.Key), Share: share})
			continue
		}
		slots, best, ranked := strings.Cut(a.Vals[0], "@")
		target := scheduler.Target{Job: parseJob(a.Key), Slots: int(num(slots))}
		if ranked {
			target.Trackers = strings.Split(best, "+")
		}
		ev.Plan.Targets = append(ev.Plan.Targets, target)
	}
	s.step(ev)
}

// parseQueue reads a tracker's queue: job2+job1
func parseQueue(tracker, text string) scheduler.Queue {
	q := scheduler.Queue{Tracker: tracker}
	for job := range strings.SplitSeq(text, "+") {
		q.Runs = append(q.Runs, scheduler.Run{Job: parseJob(job), Tasks: 1})
	}
	return q
}

func (s *scenario) runOther(d *datadriven.TestData) {
	first := d.CmdArgs[0].Key
	switch d.Cmd {
	case "submit":
		s.token++
		s.step(Submit{
			Token: s.token, By: caller(d), Wall: scenarioStart + s.now.Milliseconds(), Submission: submission(d),
			Secret: []byte(value(d, "secret", "")),
		})
	case "kill":
		s.token++
		reason := ""
		if len(d.CmdArgs) > 1 && len(d.CmdArgs[1].Vals) == 0 {
			reason = d.CmdArgs[1].Key
		}
		s.step(Kill{Token: s.token, By: caller(d), Job: parseJob(first), Reason: reason})
	case "end-attempt":
		s.token++
		s.step(EndAttempt{Token: s.token, By: caller(d), Attempt: parseAttempt(first), Fail: d.HasArg("fail"), Reason: value(d, "reason", "")})
	case "splits":
		ev := SplitsLoaded{Epoch: s.core.Epoch(), Job: parseJob(first), Err: givenError(d)}
		for _, a := range d.CmdArgs[1:] {
			if a.Key != "error" {
				ev.Splits = append(ev.Splits, parseSplit(a.Key))
			}
		}
		s.step(ev)
	case "staging-removed":
		s.step(StagingRemoved{Epoch: s.core.Epoch(), Key: first, Err: givenError(d)})
	case "heartbeat":
		s.step(FromTracker{Stream: s.streams[first], Message: &wire.Heartbeat{Rate: float64(num(value(d, "rate", "0"))), Awaited: parseAwaited(values(d, "awaited")), Machine: parseMachine(d)}})
	case "report":
		r := parseReport(d.CmdArgs[1:])
		if !s.runsOn(first, r.Attempt) {
			s.printf("(it does not run there)")
		}
		s.step(FromTracker{Stream: s.streams[first], Message: r})
	case "home":
		r := parseHome(d.CmdArgs[1:])
		if !s.isHome(first, r) {
			s.printf("(it is not the home)")
		}
		s.step(FromTracker{Stream: s.streams[first], Message: r})
	case "lost-output":
		id := parseAttempt(d.CmdArgs[1].Key)
		lost := &wire.OutputLost{Job: id.Task.Job, Map: id.Task.N, Attempt: id.N, Reason: "connection refused", Unreachable: value(d, "missing", "") == ""}
		lost.Reached = strings.FieldsFunc(value(d, "reached", ""), func(r rune) bool { return r == '+' })
		s.step(FromTracker{Stream: s.streams[first], Message: lost})
	case "inventory":
		s.step(FromTracker{Stream: s.streams[first], Message: parseInventory(s.t, d.Input)})
	default:
		s.t.Fatalf("unknown verb %s", d.Cmd)
	}
}

// runsOn says whether the leader knows the attempt on the tracker. Scenarios mark reports of
// unknown attempts.
func (s *scenario) runsOn(name string, id wire.AttemptID) bool {
	if s.core.leader == nil {
		return false
	}
	j := s.core.leader.job(id.Task.Job)
	return j != nil && j.attempt(id) != nil && j.attempt(id).tracker.Name == name
}

func (s *scenario) isHome(name string, r *wire.HomeReport) bool {
	if s.core.leader == nil {
		return false
	}
	j := s.core.leader.job(r.Job)
	if j == nil || r.Partition >= len(j.partitions.homes) {
		return false
	}
	h := &j.partitions.homes[r.Partition]
	return h.tracker != nil && h.tracker.Name == name && h.generation == r.Generation
}

func submission(d *datadriven.TestData) *wire.Submission {
	sub := &wire.Submission{Key: value(d, "key", "k"), Staging: "mem://s/staging/" + value(d, "key", "k"), Settings: submittedSettings(d)}
	sub.Owner, sub.DeadlineAt, sub.Program.Step = value(d, "owner", ""), due(d), step(d)
	for i := range int(num(value(d, "jobs", "1"))) {
		j := wire.JobPlan{Name: fmt.Sprintf("n%d", i+1), Reduces: int(num(value(d, "reduces", "0"))), Properties: make(map[string]string)}
		for _, from := range inputJobs(d, i) {
			j.Inputs = append(j.Inputs, wire.InputPlan{Format: "binary", From: from})
		}
		for _, a := range d.CmdArgs {
			if strings.Contains(a.Key, ".") {
				j.Properties[a.Key] = a.Vals[0]
			}
		}
		sub.Plan.Jobs = append(sub.Plan.Jobs, j)
	}
	return sub
}

func (s *scenario) status(id wire.JobID) string {
	st, ok := s.core.Status(id)
	if !ok {
		return "unknown\n"
	}
	s.printf("%s %s maps=%d/%d running=%d reduces=%d/%d running=%d read=%d/%d shuffled=%d/%d elapsed=%v", st.Name, st.State,
		st.Maps.Done, st.Maps.Total, st.Maps.Running, st.Reduces.Done, st.Reduces.Total, st.Reduces.Running,
		st.Read.Done, st.Read.Total, st.Shuffled.Done, st.Shuffled.Total, st.Elapsed)
	if !st.Flow.IsZero() {
		s.printf("in %v%s%s", st.Flow,
			map[bool]string{true: fmt.Sprint(" after ", st.After)}[len(st.After) > 0],
			map[bool]string{true: fmt.Sprint(", stopped by ", st.StoppedBy)}[!st.StoppedBy.IsZero()])
	}
	if st.WaitReason != "" {
		s.printf("waits %s", st.WaitReason)
	}
	if st.Error != "" {
		s.printf("error: %s", st.Error)
	}
	if st.GivenUpTasks != "" {
		s.printf("given up %d+%d: %s; %s", st.Maps.GivenUp, st.Reduces.GivenUp, st.GivenUpTasks, strings.Join(st.GivenUp, "; "))
	}
	for _, group := range sortedKeys(st.Counters) {
		for _, name := range sortedKeys(st.Counters[group]) {
			s.printf("counter %s=%d", name, st.Counters[group][name])
		}
	}
	return s.out.String()
}

// checkReplay compares the facts with those of a new core that replays the log, and of one that
// restores a snapshot.
func (s *scenario) checkReplay(name string) {
	want, err := s.core.Snapshot()
	if err != nil {
		s.t.Fatal(err)
	}
	follower := New(Config{})
	for _, e := range s.log {
		follower.Step(0, e)
	}
	restored := New(Config{})
	restored.Step(0, Restored{Snapshot: want})
	for what, c := range map[string]*Core{"replay": follower, "restore": restored} {
		got, err := c.Snapshot()
		if err != nil || !slices.Equal(got, want) {
			s.t.Errorf("%s: facts differ after %s (%v)", name, what, err)
		}
	}
}

func sortedKeys[V any](m map[string]V) []string {
	return slices.Sorted(maps.Keys(m))
}

func num(s string) uint64 {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		panic(err)
	}
	return n
}
