package core

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/quernmr/quern/wire"
)

// TestScenarios runs testdata/*.txt. Each directive is an event, and its output has the
// resulting commands, one per line. Attempts are job.kindN.number, as in 1.m0.1000. The
// tracker is t1. Time passes only with t=<duration>.
func TestScenarios(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			s := &scenario{}
			datadriven.RunTest(t, path, s.run)
		})
	}
}

type scenario struct {
	core *Core
	now  time.Duration
}

func (s *scenario) run(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	a := args{t, d}
	if d.Cmd == "tracker" {
		s.core = New(Config{
			Tracker: "t1", Process: 7, Host: "h1", Addr: "t1:1", Dir: "D", Cluster: a.text("cluster"),
			Staging: a.text("staging"), Embedded: !a.d.HasArg("clustered"),
			MapSlots: a.int("maps", 2), ReduceSlots: a.int("reduces", 1), IdleWorkers: a.int("idle", 0),
			Fetches: a.int("fetches", 0), FetchesPerHost: a.int("per-host", 0), FetchTries: a.int("tries", 0),
			FetchRate: float64(a.int("rate", 0)), MergeFactor: a.int("factor", 0), Merges: a.int("merges", 0),
			Record: a.d.HasArg("record"), Restore: a.d.HasArg("restore"), KeepLogs: a.d.HasArg("keep-logs"),
			Disks: a.list("disks"), KeepDisks: a.d.HasArg("keep-disks"), Unhealthy: a.text("unhealthy"),
		})
		s.now = 0
		return ""
	}
	if d.Cmd == "wake" {
		if at, ok := s.core.Wake(); ok {
			return fmt.Sprintf("in %v\n", at-s.now)
		}
		return "never\n"
	}
	s.now += a.duration("t")
	commands := s.core.Step(s.now, s.event(a))
	checkInvariants(t, s.core)
	var b strings.Builder
	for _, c := range commands {
		if text := render(c); text != "" {
			fmt.Fprintln(&b, text)
		}
	}
	return b.String()
}

// event reads a directive, for example
//
//	launch 1.m0.1000 epoch=1 staging=s timeout=10s gen=1.1
//	done w=1 output=77 error=text left-children log=text lost=map.attempt
//	fetched f=1 bytes=10 records=2 | error=text corrupt missing
//	merged merge=1 hot=(1000 a:700 b:200) | progress w=1 hot=…      KiB that were read, and of groups
func (s *scenario) event(a args) Event {
	switch a.d.Cmd {
	case "tick":
		return Tick{}
	case "up":
		return StreamUp{LostLeader: a.text("lost-leader")}
	case "down":
		return StreamDown{}
	case "nonce":
		return NonceRead{Stream: a.int("stream", s.core.streams), Nonce: a.text("nonce"), Error: a.text("error")}
	case "hello":
		return FromWorker{Worker: a.int("w", 1), Message: &wire.WorkerHello{Protocol: a.int("protocol", wire.WorkerProtocol)}}
	case "progress":
		return FromWorker{Worker: a.int("w", 1), Message: &wire.WorkerProgress{
			Bytes: wire.Progress{Done: int64(a.int("done", 0)), Total: 100}, Activity: uint64(a.int("activity", 0)), Hot: a.hot(),
		}}
	case "ready":
		return FromWorker{Worker: a.int("w", 1), Message: &wire.CommitReady{}}
	case "done":
		r := wire.Result{Error: a.text("error"), Log: a.text("log")}
		if a.d.HasArg("lost") {
			lost := wire.OutputLost{Job: wire.JobID{Start: 1, N: 1}, Corrupt: true}
			if _, err := fmt.Sscanf(a.text("lost"), "%d.%d", &lost.Map, &lost.Attempt); err != nil {
				a.t.Fatalf("%s: lost: %v", a.d.Pos, err)
			}
			r.Lost = []wire.OutputLost{lost}
		}
		if a.d.HasArg("at") {
			r.Died = &wire.Position{Record: int64(a.int("at", 0))}
		}
		if a.d.HasArg("output") {
			r.Output = &wire.MapOutput{Digest: uint64(a.int("output", 0)), Bytes: 10}
		}
		return FromWorker{Worker: a.int("w", 1), Message: &wire.WorkerDone{Result: r}, NoLeftovers: !a.d.HasArg("left-children")}
	case "exceeded":
		return Exceeded{Worker: a.int("w", 1), Reason: a.text("reason"), Space: a.d.HasArg("space")}
	case "recorded":
		return Recorded{Attempt: a.attempt(), Error: a.text("error")}
	case "restored":
		r := wire.Report{Attempt: a.attempt(), State: wire.AttemptSucceeded,
			Result: &wire.Result{Output: &wire.MapOutput{Digest: uint64(a.int("output", 0)), Bytes: 10}}}
		return Restored{Disk: a.int("disk", 0), Report: r}
	case "restore-ended":
		return RestoreEnded{}
	case "stop":
		return Stop{}
	case "health":
		return HealthChecked{Unhealthy: a.text("unhealthy")}
	case "measured":
		return MachineMeasured{Load: float64(a.int("load", 0)), Spaces: []Space{{Disk: 0, Free: int64(a.int("free", 0)), Total: int64(a.int("total", 0))}}}
	case "probed":
		return DiskProbed{Disk: a.int("disk", 0), Error: a.text("error")}
	case "exited":
		return WorkerExited{Worker: a.int("w", 1), Reason: a.text("reason"), Overran: a.duration("overran")}
	case "log":
		ev := LogRead{Attempt: a.attempt(), Text: a.text("text"), Cause: a.text("cause"), Limits: a.text("limits"), Record: int64(a.int("record", 0))}
		if a.d.HasArg("full") {
			ev.Full = &FullDisk{Disk: a.int("full", 0), Reason: a.text("reason")}
			if a.d.HasArg("filler") {
				ev.Full.Filler = ev.Attempt
				ev.Full.Filler.N = a.int("filler", 0)
			}
		}
		return ev
	case "fetched":
		file := s.core.fetches[a.int("f", 1)]
		ev := FetchDone{Fetch: a.int("f", 1), Records: int64(a.int("records", 1)), Error: a.text("error"),
			Corrupt: a.d.HasArg("corrupt"), Missing: a.d.HasArg("missing"), Stalled: a.d.HasArg("stalled"), DiskFailed: a.d.HasArg("disk-failed"),
			Exhausted: a.d.HasArg("exhausted")}
		if file != nil {
			ev.Segment = wire.Segment{File: file.file, Length: int64(a.int("bytes", 10))}
		}
		return ev
	case "batch":
		return s.batchDone(a)
	case "merged":
		ev := MergeDone{Merge: a.int("merge", 1), Error: a.text("error"), DiskFailed: a.d.HasArg("disk-failed")}
		m := s.core.merges[ev.Merge]
		if m == nil {
			return ev
		}
		ev.Segment, ev.Hot = wire.Segment{File: m.file, Length: 99}, a.hot()
		if a.d.HasArg("corrupt") {
			bad := m.runs[a.int("corrupt", 0)].segment
			ev.Corrupt = &bad
		}
		return ev
	}
	return FromLeader{s.message(a)}
}

func (s *scenario) message(a args) wire.Message {
	epoch := uint64(a.int("epoch", 1))
	job := wire.JobID{Start: 1, N: a.int("job", 1)}
	switch a.d.Cmd {
	case "welcome":
		return &wire.Welcome{Epoch: epoch, Incarnation: uint64(a.int("incarnation", 1)), Lease: 6 * time.Second, Cluster: a.text("cluster")}
	case "staging":
		return &wire.Staging{File: a.text("file")}
	case "ack":
		return &wire.Ack{}
	case "refuse":
		return &wire.Refuse{Reason: a.text("reason"), Leader: a.text("leader")}
	case "launch":
		m := &wire.Launch{Epoch: epoch, Attempt: a.attempt(), Staging: a.text("staging"), Digest: []byte(a.text("digest")), Timeout: a.duration("timeout"),
			Generation: a.generation(), Memory: int64(a.int("memory", 0)), Processes: a.int("processes", 0), Cores: a.int("cores", 0)}
		if a.d.HasArg("skips") {
			m.Skip = &wire.Skip{Changes: a.int("skips", 0)}
		}
		return m
	case "kill":
		return &wire.Kill{Epoch: epoch, Attempt: a.attempt(), Reason: "unwanted"}
	case "grant":
		return &wire.Grant{Epoch: epoch, Attempt: a.attempt()}
	case "set-home":
		return &wire.SetHome{Epoch: epoch, Job: job, Partition: a.int("p", 0), Generation: a.generation(), Maps: a.int("maps", 1)}
	case "outputs": // lines: map attempt tracker digest; "batch" as a further argument: their partitions are small
		var outputs []wire.MapOutput
		for line := range strings.Lines(a.d.Input) {
			var o wire.MapOutput
			if _, err := fmt.Sscan(line, &o.Map, &o.Attempt, &o.Tracker, &o.Digest); err != nil {
				a.t.Fatalf("%s: output %q: %v", a.d.Pos, line, err)
			}
			if !a.d.HasArg("batch") {
				o.Bytes = 1 << 30
			}
			if o.Addr = o.Tracker + ":1"; o.Tracker == "given-up" {
				o.Tracker, o.Addr, o.GivenUp = "", "", true
			}
			outputs = append(outputs, o)
		}
		return wire.OutputsOf(epoch, job, outputs...)
	case "shares": // lines: job share
		m := &wire.Shares{Epoch: epoch}
		for line := range strings.Lines(a.d.Input) {
			share := wire.JobShare{Job: wire.JobID{Start: 1}}
			if _, err := fmt.Sscan(line, &share.Job.N, &share.Share); err != nil {
				a.t.Fatalf("%s: share %q: %v", a.d.Pos, line, err)
			}
			m.Shares = append(m.Shares, share)
		}
		return m
	case "drained":
		return &wire.Drained{Epoch: epoch}
	case "drop":
		return &wire.DropJob{Epoch: epoch, Job: job, EndedStaging: a.text("done")}
	}
	a.t.Fatalf("%s: unknown directive %s", a.d.Pos, a.d.Cmd)
	return nil
}

// args reads a directive's arguments.
type args struct {
	t *testing.T
	d *datadriven.TestData
}

func (a args) text(key string) string {
	arg, ok := a.d.Arg(key)
	if !ok {
		return ""
	}
	return strings.Join(arg.Vals, " ")
}

// list returns an argument's values, as in disks=(D E).
func (a args) list(key string) []string { return strings.Fields(a.text(key)) }

// hot returns the groups in hot=(1000 a:700 b:200), with sizes in KiB.
func (a args) hot() *wire.Hot {
	words := a.list("hot")
	if len(words) == 0 {
		return nil
	}
	kib := func(text string) int64 {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			a.t.Fatalf("%s: hot: %v", a.d.Pos, err)
		}
		return n << 10
	}
	h := &wire.Hot{Read: kib(words[0]), Of: kib(words[0])}
	for _, w := range words[1:] {
		key, size, _ := strings.Cut(w, ":")
		h.Groups = append(h.Groups, wire.HotGroup{Key: key, Records: 1, Bytes: kib(size)})
	}
	return h
}

func (a args) int(key string, other int) int {
	v := a.text(key)
	if v == "" {
		return other
	}
	n, err := strconv.Atoi(v)
	if err != nil {
		a.t.Fatalf("%s: %s: %v", a.d.Pos, key, err)
	}
	return n
}

func (a args) duration(key string) time.Duration {
	v := a.text(key)
	if v == "" {
		return 0
	}
	n, err := time.ParseDuration(v)
	if err != nil {
		a.t.Fatalf("%s: %s: %v", a.d.Pos, key, err)
	}
	return n
}

func (a args) generation() wire.Generation {
	g := wire.Generation{Epoch: 1, N: 1}
	if v := a.text("gen"); v != "" {
		if _, err := fmt.Sscanf(v, "%d.%d", &g.Epoch, &g.N); err != nil {
			a.t.Fatalf("%s: gen: %v", a.d.Pos, err)
		}
	}
	return g
}

func (a args) attempt() wire.AttemptID {
	var job, n, number int
	var kind string
	text := strings.NewReplacer(".", " ").Replace(a.d.CmdArgs[0].Key)
	if _, err := fmt.Sscan(text, &job, &kind, &number); err != nil {
		a.t.Fatalf("%s: attempt %q: %v", a.d.Pos, text, err)
	}
	n, err := strconv.Atoi(kind[1:])
	if err != nil {
		a.t.Fatalf("%s: attempt %q: %v", a.d.Pos, text, err)
	}
	return wire.AttemptID{
		Task: wire.TaskID{Job: wire.JobID{Start: 1, N: job}, Kind: wire.Kind(strings.Index("?smrcxf", kind[:1])), N: n},
		N:    number,
	}
}
