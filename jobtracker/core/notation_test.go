package core

import (
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/quernmr/quern/jobtracker/core/taskset"
	"github.com/quernmr/quern/wire"
)

const kinds = "?smrcxf"

func showJob(id wire.JobID) string { return fmt.Sprintf("job%d", id.N) }

func showAttempt(id wire.AttemptID) string {
	kind := id.Task.Kind
	if int(kind) >= len(kinds) {
		kind = 0
	}
	return fmt.Sprintf("%s/%c%d/%d", showJob(id.Task.Job), kinds[kind], id.Task.N, id.N)
}

func showAfter(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return fmt.Sprintf(" after %v", d)
}

func showGen(g wire.Generation) string { return fmt.Sprintf("gen=%d.%d", g.Epoch, g.N) }

func showMessage(m wire.Message) string {
	switch m := m.(type) {
	case *wire.Welcome:
		return fmt.Sprintf("welcome epoch=%d incarnation=%d", m.Epoch, m.Incarnation)
	case *wire.Refuse:
		return "refuse: " + m.Reason
	case *wire.Launch:
		text := "launch " + showAttempt(m.Attempt)
		if m.Attempt.Task.Kind == wire.Reduce {
			text += " " + showGen(m.Generation)
		}
		if !m.Subject.IsZero() {
			text += " against " + showAttempt(m.Subject)
		}
		if m.Skip != nil && len(m.Skip.Ranges) > 0 {
			text += " skipping"
			for _, r := range m.Skip.Ranges {
				text += fmt.Sprintf(" %d-%d", r.From, r.To)
			}
		}
		if givenUp := taskset.Of(m.GivenUp); givenUp.Len() > 0 {
			text += " without " + givenUp.Ranges(100)
		}
		if givenUp := taskset.Of(m.GivenUpMaps); givenUp.Len() > 0 {
			text += " without maps " + givenUp.Ranges(100)
		}
		if m.Outcome != 0 {
			text += " after " + m.Outcome.String()
		}
		return text
	case *wire.Kill:
		return fmt.Sprintf("kill %s: %s", showAttempt(m.Attempt), m.Reason)
	case *wire.Grant:
		return "grant " + showAttempt(m.Attempt)
	case *wire.SetHome:
		return fmt.Sprintf("home %s/p%d %s maps=%d", showJob(m.Job), m.Partition, showGen(m.Generation), m.Maps)
	case *wire.Outputs:
		text := "outputs"
		for job, outputs := range outputsIn(m) {
			text += " " + showJob(job)
			for _, o := range outputs {
				if o.GivenUp {
					text += fmt.Sprintf(" m%d-given-up", o.Map)
					continue
				}
				text += fmt.Sprintf(" m%d/%d@%s", o.Map, o.Attempt, o.Tracker)
			}
		}
		return text
	case *wire.Shares:
		text := "shares"
		for _, s := range m.Shares {
			text += fmt.Sprintf(" %s=%v", showJob(s.Job), s.Share)
		}
		return text
	case *wire.DropJob:
		if m.EndedStaging == "" {
			return "drop " + showJob(m.Job) + ", keep its submission"
		}
		return "drop " + showJob(m.Job)
	case *wire.Drained:
		return "drained"
	case *wire.Ack:
		return "ack"
	case *wire.Staging:
		return "read the nonce in " + m.File
	}
	return fmt.Sprintf("%T", m)
}

func parseJob(s string) wire.JobID {
	return wire.JobID{Start: scenarioStart, N: int(num(strings.TrimPrefix(s, "job")))}
}

func parseAttempt(s string) wire.AttemptID {
	parts := strings.Split(s, "/")
	task := wire.TaskID{
		Job: parseJob(parts[0]), Kind: wire.Kind(strings.IndexByte(kinds, parts[1][0])), N: int(num(parts[1][1:])),
	}
	return wire.AttemptID{Task: task, N: int(num(parts[2]))}
}

// parseSplit parses bytes and locations: 20@t1/r1@t2
func parseSplit(text string) Split {
	parts := strings.Split(text, "@")
	s := Split{Bytes: int64(num(parts[0]))}
	for _, at := range parts[1:] {
		host, rack, ok := strings.Cut(at, "/")
		if ok {
			rack = "/" + rack
		}
		s.Hosts, s.Racks = append(s.Hosts, host), append(s.Racks, rack)
	}
	return s
}

// parseReport parses: job1/m0/1000 succeeded digest=7 …
func parseReport(args []datadriven.CmdArg) *wire.Report {
	r := &wire.Report{Attempt: parseAttempt(args[0].Key)}
	states := []string{"", "running", "ready", "succeeded", "failed", "killed"}
	for i, name := range states {
		if name == args[1].Key {
			r.State = wire.AttemptState(i)
		}
	}
	if !r.State.Final() {
		for _, a := range args[2:] {
			switch a.Key {
			case "digest":
				r.Digest = num(a.Vals[0])
			case "hot":
				r.Hot = parseHot(a.Vals)
			case "skips":
				r.SkipChanges = int(num(a.Vals[0]))
			}
		}
		return r
	}
	r.Result = &wire.Result{}
	if r.State == wire.AttemptSucceeded && r.Attempt.Task.Kind == wire.Map {
		r.Result.Output = &wire.MapOutput{Map: r.Attempt.Task.N, Attempt: r.Attempt.N, Digest: 1, Bytes: 10}
	}
	for _, a := range args[2:] {
		parseResult(r, a)
		if a.Key == "skips" {
			r.SkipChanges = int(num(a.Vals[0]))
		}
	}
	if at := r.Result.Died; at != nil {
		at.Changes = r.SkipChanges
	}
	return r
}

func parseResult(r *wire.Report, a datadriven.CmdArg) {
	switch a.Key {
	case "error":
		r.Result.Error = a.Vals[0]
	case "log":
		r.Result.Log = a.Vals[0]
	case "fatal":
		r.Result.Fatal = true
	case "at": // at=7, at=7@3: in a record, of input with a digest
		at, digest, found := strings.Cut(a.Vals[0], "@")
		r.Result.Died = &wire.Position{Record: int64(num(at))}
		if found {
			r.Result.Died.Digest = num(digest)
		}
	case "where": // after at
		r.Result.Died.Where = strings.Join(a.Vals, ", ")
	case "bad-input":
		r.Result.Fatal, r.Result.BadInput = true, true
	case "splits":
		r.Result.Splits = &wire.SplitsDone{Maps: int(num(a.Vals[0])), Hash: 5}
	case "digest":
		r.Result.Output.Digest = num(a.Vals[0])
	case "bytes":
		r.Result.Bytes = int64(num(a.Vals[0]))
	case "reads":
		for i, n := range strings.Split(a.Vals[0], "/") {
			r.Result.Reads.At(wire.NodeLocal + wire.Level(i)).Bytes = int64(num(n))
		}
	case "took":
		r.Result.Took = duration(a.Vals[0])
	case "hot":
		r.Result.Hot = parseHot(a.Vals)
	case "started":
		r.Result.Started = duration(a.Vals[0])
	case "shuffled":
		r.Result.Shuffled = duration(a.Vals[0])
	case "completed":
		r.Result.Completed = duration(a.Vals[0])
	case "read":
		for i, d := range strings.Split(a.Vals[0], "/") {
			r.Result.Reads.At(wire.NodeLocal + wire.Level(i)).Took = duration(d)
		}
	case "committed":
		r.Result.Committed = true
	case "count":
		r.Result.Counters = wire.Counters{"g": {"COUNT": int64(num(a.Vals[0]))}}
	case "counters": // counters C1 to C9: 1-9
		first, last, _ := strings.Cut(a.Vals[0], "-")
		r.Result.Counters = make(wire.Counters)
		for n := num(first); n <= num(last); n++ {
			r.Result.Counters.Add("g", fmt.Sprintf("C%d", n), 1)
		}
	case "lost":
		id := parseAttempt(a.Vals[0])
		r.Result.Lost = append(r.Result.Lost, wire.OutputLost{Job: id.Task.Job, Map: id.Task.N, Attempt: id.N, Reason: "bad checksum"})
	}
}

// parseHome parses: job1/p0 gen=1.1 maps=2 digest=15 complete
func parseHome(args []datadriven.CmdArg) *wire.HomeReport {
	job, partition, _ := strings.Cut(args[0].Key, "/p")
	r := &wire.HomeReport{Job: parseJob(job), Partition: int(num(partition)), Generation: wire.Generation{Epoch: 1, N: 1}}
	for _, a := range args[1:] {
		switch a.Key {
		case "gen":
			epoch, n, _ := strings.Cut(a.Vals[0], ".")
			r.Generation = wire.Generation{Epoch: num(epoch), N: int(num(n))}
		case "maps":
			r.Maps = int(num(a.Vals[0]))
		case "digest":
			for part := range strings.SplitSeq(a.Vals[0], "+") { // digest=7+given-up
				if part == "given-up" {
					r.Digest += wire.GivenUpDigest
				} else {
					r.Digest += num(part)
				}
			}
		case "bytes":
			r.Bytes = int64(num(a.Vals[0]))
		case "hot":
			r.Hot = parseHot(a.Vals)
		case "complete":
			r.Complete = true
		}
	}
	return r
}

// parseHot parses hot=(500 of 1000, a:400, b:100): groups of what was read of a partition.
func parseHot(vals []string) *wire.Hot {
	h := new(wire.Hot)
	if _, err := fmt.Sscanf(vals[0], "%d of %d", &h.Read, &h.Of); err != nil {
		panic(err)
	}
	for _, text := range vals[1:] {
		key, bytes, _ := strings.Cut(text, ":")
		h.Groups = append(h.Groups, wire.HotGroup{Key: key, Records: 1, Bytes: int64(num(bytes))})
	}
	return h
}

func parseInventory(t *testing.T, input string) *wire.Inventory {
	inv := &wire.Inventory{}
	for line := range strings.Lines(input) {
		verb, args, err := datadriven.ParseLine(strings.TrimSpace(line))
		if err != nil {
			t.Fatal(err)
		}
		switch verb {
		case "attempt":
			inv.Attempts = append(inv.Attempts, *parseReport(args))
		case "home":
			inv.Homes = append(inv.Homes, *parseHome(args))
		}
	}
	return inv
}

func duration(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		panic(err)
	}
	return d
}

func value(d *datadriven.TestData, key, fallback string) string {
	if all := values(d, key); len(all) > 0 {
		return all[0]
	}
	return fallback
}

func values(d *datadriven.TestData, key string) []string {
	for _, a := range d.CmdArgs {
		if a.Key == key && len(a.Vals) > 0 {
			return a.Vals
		}
	}
	return nil
}

func givenError(d *datadriven.TestData) error {
	if text := value(d, "error", ""); text != "" {
		return errors.New(text)
	}
	return nil
}

// parseAwaited reads lists of a job and the trackers that its homes await.
func parseAwaited(lists []string) (all []wire.Awaited) {
	for _, list := range lists {
		parts := strings.Split(list, "/")
		all = append(all, wire.Awaited{Job: parseJob(parts[0]), Trackers: parts[1:]})
	}
	return all
}

// outputsIn yields the lists of a message.
func outputsIn(m *wire.Outputs) iter.Seq2[wire.JobID, []wire.MapOutput] {
	return func(yield func(wire.JobID, []wire.MapOutput) bool) {
		for _, list := range m.Lists {
			outputs, err := list.Block.Outputs()
			if err != nil || len(outputs) != list.N {
				panic(fmt.Sprintf("%d outputs, want %d: %v", len(outputs), list.N, err))
			}
			if !yield(list.Job, outputs) {
				return
			}
		}
	}
}
