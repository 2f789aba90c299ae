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
