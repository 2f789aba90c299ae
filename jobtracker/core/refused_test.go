package core

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/quernmr/quern/jobtracker/core/admission"
	"github.com/quernmr/quern/jobtracker/core/facts"
	"github.com/quernmr/quern/wire"
)

// loggedCore is a leader with a log that commits proposals at once, unless refuse returns an
// error.
type loggedCore struct {
	*Core
	entries  uint64
	refuse   func(x facts.Fact) error
	proposed []string // kinds of all proposed facts
	others   []Command
	held     *[]Propose // proposals that wait, see hold; nil: they are committed
}

// hold returns the proposals of events that do feeds. The log does not commit them.
func (o *loggedCore) hold(do func()) (held []Propose) {
	o.held = &held
	do()
	o.held = nil
	return held
}

func newLoggedCore(cfg Config) *loggedCore {
	o := &loggedCore{Core: New(cfg)}
	o.feed(Elected{Term: 1, Wall: 1})
	return o
}

// feed feeds an event, and returns all commands except proposals.
func (o *loggedCore) feed(ev Event) []Command {
	o.others = nil
	o.carryOut(o.Step(0, ev))
	return o.others
}

func (o *loggedCore) carryOut(commands []Command) {
	for _, cmd := range commands {
		p, ok := cmd.(Propose)
		if !ok {
			o.others = append(o.others, cmd)
			continue
		}
		if o.held != nil {
			*o.held = append(*o.held, p)
			continue
		}
		x, err := facts.Decode(p.Data)
		if err != nil {
			panic(err)
		}
		o.proposed = append(o.proposed, strings.Fields(x.Name())[0])
		if o.refuse != nil {
			err = o.refuse(x)
		}
		if err != nil {
			o.carryOut(o.Step(0, Refused{Key: p.Key, Err: err}))
			continue
		}
		o.entries++
		o.carryOut(o.Step(0, Entry{Index: o.entries, Term: 1, Data: p.Data}))
	}
}

func repliesIn(commands []Command) (all []Reply) {
	for _, c := range commands {
		if r, ok := c.(Reply); ok {
			all = append(all, r)
		}
	}
	return all
}

func submissionOf(jobs int, fill func(*wire.JobPlan)) *wire.Submission {
	s := &wire.Submission{Key: "k", Staging: "mem://s", Plan: wire.Plan{Jobs: make([]wire.JobPlan, jobs)}}
	for i := range s.Plan.Jobs {
		fill(&s.Plan.Jobs[i])
	}
	return s
}

// TestRefused tests that the core does not repeat a proposal that the log refuses. A client gets
// the error for its submission; a job with too many counters ends without them.
func TestRefused(t *testing.T) {
	large := errors.New("log entry of 17 MB")
	o := newLoggedCore(Config{})
	o.refuse = func(x facts.Fact) error {
		if _, ok := x.(*facts.Submitted); ok {
			return large
		}
		return nil
	}
	answers := repliesIn(o.feed(Submit{Token: 1, Submission: submissionOf(1, func(*wire.JobPlan) {})}))
	if len(answers) != 1 || !errors.Is(answers[0].Err, admission.ErrBadSubmission) || !errors.Is(answers[0].Err, large) {
		t.Errorf("a refused submission gets the answer %+v", answers)
	}

	o.refuse = func(x facts.Fact) error {
		if x, ok := x.(*facts.Ended); ok && len(x.Counters) > 0 {
			return large
		}
		return nil
	}
	if answers := repliesIn(o.feed(Submit{Token: 2, Submission: submissionOf(1, func(*wire.JobPlan) {})})); len(answers) != 1 || answers[0].Err != nil {
		t.Fatalf("the repeated submission gets the answer %+v", answers)
	}
	j := o.leader.jobs[1]
	j.tally.counters.Add("g", "n", 1)
	o.feed(Kill{Token: 3, Job: j.id})
	o.commands = nil
	o.leader.endJob(j, wire.Killed, "killed")
	o.carryOut(o.commands)
	end := o.facts.Job(1).End()
	if end.Outcome != wire.Killed || end.Error != "killed" || len(end.Counters) > 0 ||
		len(end.Troubles) != 1 || !strings.Contains(end.Troubles[0], large.Error()) {
		t.Errorf("the job ended as %+v", end)
	}

	o.refuse = func(facts.Fact) error { return large }
	n := len(o.proposed)
	o.feed(FromTracker{Stream: 1, Message: &wire.Hello{Version: wire.Version, Tracker: "t", Process: 1}})
	if got := o.proposed[n:]; !slices.Equal(got, []string{"registered"}) {
		t.Errorf("the core proposes %v to a log that refuses everything, want one registration", got)
	}
	o.feed(Refused{Key: "nothing", Err: large})
}

// TestRefusedBadTasks tests that no task waits for an entry about it that the log refuses.
func TestRefusedBadTasks(t *testing.T) {
	for _, c := range []struct {
		name       string
		properties map[string]string
		refused    string // kind of the fact
		check      func(t *testing.T, o *loggedCore)
	}{
		{"given up", map[string]string{"mapreduce.map.failures.maxpercent": "50", "mapreduce.map.maxattempts": "1"}, "given-up", func(t *testing.T, o *loggedCore) {
			if stop := o.facts.Job(1).Stop(); !strings.Contains(stop.Reason, "oops") || !strings.Contains(stop.Reason, "refused") {
				t.Errorf("the job stops with %q", stop.Reason)
			}
		}},
		{"skipped", map[string]string{"mapreduce.map.skip.maxrecords": "1", "mapreduce.task.skip.start.attempts": "1"}, "skipped", func(t *testing.T, o *loggedCore) {
			if !o.leader.jobs[1].assign.IsPending(0) {
				t.Error("the map is not to be launched again")
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := newLoggedCore(Config{})
			o.refuse = func(x facts.Fact) error {
				if strings.Fields(x.Name())[0] == c.refused {
					return errors.New("refused")
				}
				return nil
			}
			o.feed(FromTracker{Stream: 1, Message: &wire.Hello{Version: wire.Version, Tracker: "t", Process: 1, MapSlots: 1, ReduceSlots: 1}})
			o.feed(FromTracker{Stream: 1, Message: &wire.Inventory{}})
			o.feed(Submit{Token: 1, Submission: submissionOf(1, func(p *wire.JobPlan) { p.Properties, p.Reduces = c.properties, 1 })})
			id := wire.AttemptID{Task: wire.TaskID{Job: o.leader.jobs[1].id, Kind: wire.Setup}, N: wire.EpochAttempts}
			o.feed(FromTracker{Stream: 1, Message: &wire.Report{Attempt: id, State: wire.AttemptSucceeded, Result: &wire.Result{Splits: &wire.SplitsDone{Maps: 2}}}})
			o.feed(SplitsLoaded{Epoch: o.leader.epoch, Job: id.Task.Job, Splits: make([]Split, 2)})
			id.Task.Kind = wire.Map
			o.feed(FromTracker{Stream: 1, Message: &wire.Report{
				Attempt: id, State: wire.AttemptFailed, Result: &wire.Result{Error: "oops", Died: &wire.Position{Record: 5}},
			}})
			c.check(t, o)
		})
	}
}
