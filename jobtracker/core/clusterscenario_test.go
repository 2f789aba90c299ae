package core

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/quernmr/quern/locality"
	"github.com/quernmr/quern/wire"
)

// runCluster plays the verbs of clusters:
//
//	config [history] [tidy=1h] [cluster=c nonce=n] [addr=host:1] [delay=3s]      a new job tracker; must be the first verb
//	hello-again t1 nonce=n               another hello on the same stream
//	no-staging t1 reason=…
//	capacity t1 slots=2,1 [reason=…] [left=1] [unhealthy=…] [stops]
//	history-written job1 [error=…]       WriteHistory has ended
//	tidied                               Tidy has ended
//	heartbeats t1 t2 5m                  time passes while these trackers renew their leases
//	drain t1 | undrain t1                an administrator drains it, or undoes that
//	exclude t1 by=ann [reason=…] [for=5m] | readmit t1      an operator excludes it, or readmits it
//	log-failed error=…                   the log fails for good
//	trackers                             all trackers, as in Cluster
//	troubles job1                        the troubles in its status
//	notes shown                          from now on shows lines for the job tracker's log
//	holds job1                           why its tasks wait
//	attempts job1                        the answer of Attempts
func (s *scenario) runCluster(d *datadriven.TestData) bool {
	first := ""
	if len(d.CmdArgs) > 0 {
		first = d.CmdArgs[0].Key
	}
	switch d.Cmd {
	case "config":
		s.config(d)
	case "hello-again":
		s.step(FromTracker{Stream: s.streams[first], Message: &wire.Hello{
			Version: wire.Version, Tracker: first, Process: 1, Host: first, Addr: first + ":1",
			MapSlots: 2, ReduceSlots: 1, Nonce: value(d, "nonce", ""),
		}})
	case "no-staging":
		s.step(FromTracker{Stream: s.streams[first], Message: &wire.NoStaging{Reason: value(d, "reason", "")}})
	case "capacity":
		maps, reduces, _ := strings.Cut(value(d, "slots", ""), ",")
		s.step(FromTracker{Stream: s.streams[first], Message: &wire.Capacity{
			MapSlots: int(num(maps)), ReduceSlots: int(num(reduces)), Reason: value(d, "reason", ""), DisksAbandoned: int(num(value(d, "left", "0"))), Unhealthy: value(d, "unhealthy", ""),
			Stops: d.HasArg("stops"),
		}})
	case "history-written":
		s.step(HistoryWritten{Epoch: s.core.Epoch(), Job: parseJob(first), Err: givenError(d)})
	case "holds":
		l := s.core.leader
		for _, h := range l.holds(l.job(parseJob(first))) {
			s.printf("%s%s", h.Reason, showUntil(h.Until))
		}
	case "used": // how much of the limits is used
		for _, x := range s.core.Cluster(s.now).Limits {
			s.printf("%s", strings.TrimSpace(fmt.Sprintf("%s %d of %d %s", x.Name, x.Used, x.Max, x.Of)))
		}
	case "tidied":
		s.step(Tidied{Epoch: s.core.Epoch()})
	case "heartbeats":
		s.heartbeats(d)
	case "drain", "undrain":
		s.token++
		s.step(Drain{Token: s.token, Tracker: first, Undo: d.Cmd == "undrain"})
	case "exclude", "readmit":
		s.token++
		s.step(Exclude{
			Token: s.token, Tracker: first, Wall: scenarioStart + s.now.Milliseconds(), By: value(d, "by", ""),
			Reason: value(d, "reason", ""), For: duration(value(d, "for", "0s")), Undo: d.Cmd == "readmit",
		})
	case "log-failed":
		s.step(LogFailed{Err: givenError(d)})
	case "trackers":
		s.trackers()
	case "troubles":
		status, _ := s.core.Status(parseJob(first))
		for _, trouble := range status.Troubles {
			s.printf("%s", trouble)
		}
	case "notes":
		s.showNotes = first == "shown"
	case "attempts":
		s.attempts(parseJob(first))
	default:
		return false
	}
	return true
}

func showUntil(at int64) string {
	if at == 0 {
		return ""
	}
	return fmt.Sprintf(", until %v", time.Duration(at-scenarioStart)*time.Millisecond)
}

func (s *scenario) config(d *datadriven.TestData) {
	cfg := Config{ID: "jt", Staging: "mem://s/staging"}
	for _, a := range d.CmdArgs {
		switch a.Key {
		case "history":
			cfg.History = true
		case "tidy":
			var err error
			if cfg.TidyPeriod, err = time.ParseDuration(a.Vals[0]); err != nil {
				d.Fatalf(s.t, "%v", err)
			}
		case "cluster":
			cfg.Cluster = a.Vals[0]
		case "nonce":
			cfg.Nonce = a.Vals[0]
		case "delay":
			cfg.Scheduling.Delay = a.Vals[0]
			if _, err := time.ParseDuration(a.Vals[0]); err == nil {
				cfg.Scheduling.Delay = "fixed=" + a.Vals[0]
			}
		case "addr":
			cfg.Addr = a.Vals[0]
		}
	}
	s.core = New(cfg)
}

func (s *scenario) carryOutCluster(c Command) {
	switch c := c.(type) {
	case WriteHistory:
		r := c.Record()
		s.record = r
		s.printf("write %s%s: %v, %d attempts", c.URL, showAfter(c.Delay), r.Job.State, len(r.Attempts))
		if r.Job.ID != c.Job || !r.Job.State.Ended() || r.Plan.Name != r.Job.Name || r.Ended < r.Submitted {
			s.t.Errorf("history of %v: %+v", c.Job, r)
		}
	case LoadHistory:
		var files []string
		for _, name := range c.URLs {
			files = append(files, strings.TrimPrefix(name, "mem://s/staging/history/"))
		}
		s.printf("load history of %s for jobs %s: %s", showJob(c.Job), c.JobName, strings.Join(files, " "))
	case Tidy:
		s.printf("tidy except submissions %s, programs %s, sessions %s",
			strings.Join(sortedKeys(c.Submissions), " "), strings.Join(sortedKeys(c.Programs), " "), strings.Join(sortedKeys(c.Sessions), " "))
	case RemoveNonce:
		s.printf("remove nonce %s", c.URL)
	case LogLine:
		if s.showNotes {
			s.printf("log: %s %v, warn %v", c.Text, c.Args, c.Warn)
		}
	default:
		s.t.Errorf("unknown command %T", c)
	}
}

// step returns the step of a driver with the session that a submission names, or nil.
func step(d *datadriven.TestData) *wire.Step {
	session := value(d, "session", "")
	if session == "" {
		return nil
	}
	return &wire.Step{Result: wire.Sessions("mem://s/staging", "") + session + "/" + wire.SessionResults + "/r"}
}

func (s *scenario) trackers() {
	cluster := s.core.Cluster(s.now)
	for _, t := range cluster.Lost {
		s.printf("%s lost%s since %s: %d maps, %d reduces, %d outputs", t.Tracker, map[bool]string{true: " after it stopped"}[t.Stopped], sinceStart(t.Since), t.Maps, t.Reduces, t.Outputs)
	}
	for _, t := range cluster.Trackers {
		rack := strings.TrimSuffix(" rack="+t.Rack, " rack="+locality.DefaultRack)
		s.printf("%s/%d slots=%d,%d running=%d,%d connected=%v silent=%dms%s", t.Tracker, t.Incarnation,
			t.MapSlots, t.ReduceSlots, t.Maps, t.Reduces, t.Connected, t.Silent, rack)
		if t.Memory.Total > 0 || t.Cores.Total > 0 {
			s.printf("  memory=%d/%d cores=%d/%d", t.Memory.Used>>20, t.Memory.Total>>20, t.Cores.Used, t.Cores.Total)
		}
		if t.Excluded != "" {
			s.printf("  excluded: %s", t.Excluded)
		}
		if t.Faults != (wire.TrackerFaults{}) {
			s.printf("  faults: %+v", t.Faults)
		}
		if m := t.Machine; m != nil {
			s.printf("  load %v, disks %+v", m.Load, m.Disks)
		}
		if t.Trouble != "" {
			s.printf("  trouble: %s", t.Trouble)
		}
	}
	s.showDrains()
	s.showExclusions()
}

// heartbeats lets time pass, and prints the commands except acknowledgements.
func (s *scenario) heartbeats(d *datadriven.TestData) {
	last := len(d.CmdArgs) - 1
	end := s.now + duration(d.CmdArgs[last].Key)
	for s.now < end {
		s.tick(min(time.Second, end-s.now))
		for _, a := range d.CmdArgs[:last] {
			if stream, ok := s.streams[a.Key]; ok {
				s.step(FromTracker{Stream: stream, Message: &wire.Heartbeat{}})
			}
		}
	}
	text := s.out.String()
	s.out.Reset()
	for line := range strings.Lines(text) {
		if !strings.HasSuffix(line, "<- ack\n") {
			s.out.WriteString(line)
		}
	}
}

func (s *scenario) showDrains() {
	for _, d := range s.core.Cluster(s.now).Drains {
		state := "draining"
		if d.Drained {
			state = "drained"
		}
		if !d.Registered {
			state += ", not registered"
		}
		s.printf("%s %s", d.Tracker, strings.TrimSuffix(state+": "+d.Needs, ": "))
	}
}

// showExclusions shows operators' exclusions.
func (s *scenario) showExclusions() {
	for _, x := range s.core.Cluster(s.now).Exclusions {
		if x.Operator {
			s.printf("%s excluded by %s at %v%s: %s, registered=%v", x.Tracker, x.By, sinceStart(x.Since), showUntil(x.Until), x.Reason, x.Registered)
		}
	}
}

func (s *scenario) attempts(id wire.JobID) {
	list, ok, err := s.core.Attempts(id, wire.AttemptID{})
	if !ok || err != nil || list.Next != (wire.AttemptID{}) {
		s.printf("none")
	}
	for _, a := range list.Attempts {
		level := strings.TrimSuffix(" "+a.Level.String(), " ")
		if a.Reads != (wire.Reads{}) {
			level += fmt.Sprintf(" reads=%d/%d/%d", a.Reads.Node.Bytes, a.Reads.Rack.Bytes, a.Reads.Remote.Bytes)
		}
		if a.Speculative {
			level += " speculative"
		}
		estimated := ""
		if a.Launched == 0 {
			estimated = "about "
		}
		s.printf("%s on %s %v since %s%v took %dms%s %s", showAttempt(a.Attempt), a.Tracker, a.State,
			estimated, time.Duration(a.Began-scenarioStart)*time.Millisecond, a.Took, level, a.Error)
	}
}

// TestHints: a follower names the last leader, unless it was the leader itself.
func TestLeaderHints(t *testing.T) {
	leader := New(Config{ID: "a", Addr: "a:1"})
	follower := New(Config{ID: "b", Addr: "b:1"})
	var entry Entry
	for _, cmd := range leader.Step(0, Elected{Term: 1, Wall: 1}) {
		if p, ok := cmd.(Propose); ok {
			entry = Entry{Index: 1, Term: 1, Data: p.Data}
		}
	}
	follower.Step(0, entry)
	want := NotLeaderError{Leader: "a", Addr: "a:1"}
	if got, ok := follower.CheckLeading().(*NotLeaderError); !ok || *got != want {
		t.Errorf("the follower names the leader %v", got)
	}
	var refusal *wire.Refuse
	for _, cmd := range follower.Step(0, FromTracker{Stream: 1, Message: &wire.Hello{Version: wire.Version, Tracker: "t", Process: 1}}) {
		if s, ok := cmd.(Send); ok {
			refusal = s.Message.(*wire.Refuse)
		}
	}
	if refusal == nil || refusal.Leader != "a:1" {
		t.Errorf("a tracker gets the refusal %+v", refusal)
	}
	for _, cmd := range follower.Step(0, Kill{Token: 1}) {
		if r, ok := cmd.(Reply); !ok || r.Err.Error() != "this job tracker does not lead; the last known leader is a at a:1" {
			t.Errorf("a client gets the answer %+v", cmd)
		}
	}
	leader.Step(0, entry)
	if err := leader.CheckLeading(); err != nil {
		t.Errorf("the leader is a follower: %v", err)
	}
	leader.Step(0, Deposed{})
	if got, ok := leader.CheckLeading().(*NotLeaderError); !ok || *got != (NotLeaderError{}) {
		t.Errorf("the deposed leader names %v as leader", got)
	}
	data, err := follower.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	restored := New(Config{ID: "c"})
	restored.Step(0, Restored{Snapshot: data})
	if id, addr := restored.Leader(); id != "a" || addr != "a:1" {
		t.Errorf("after a snapshot the leader is %s at %s", id, addr)
	}
}

// parseMachine reads load=2 disk=(PATH FREE TOTAL FAILED); nil: there is no load.
func parseMachine(d *datadriven.TestData) *wire.Machine {
	if !d.HasArg("load") {
		return nil
	}
	m := &wire.Machine{Load: float64(num(value(d, "load", "0"))), FailedFetches: int64(num(value(d, "failed-fetches", "0")))}
	if x := values(d, "disk"); len(x) > 3 {
		m.Disks = []wire.Disk{{Path: x[0], Free: int64(num(x[1])), Total: int64(num(x[2])), Failed: x[3]}}
	}
	return m
}
