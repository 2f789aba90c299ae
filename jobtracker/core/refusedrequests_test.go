package core

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/quernmr/quern/jobtracker/core/admission"
	"github.com/quernmr/quern/jobtracker/core/facts"
	"github.com/quernmr/quern/jobtracker/core/quota"
	"github.com/quernmr/quern/scheduler/pool"
	"github.com/quernmr/quern/wire"
)

// TestRefusedRequests tests that each client gets an answer if the log refuses the fact that carries out its
// request, and that the next request with the same key is then proposed.
func TestRefusedRequests(t *testing.T) {
	suspended, into := true, "p"
	for kind, request := range map[string]func(job wire.JobID, n Token) Event{
		"settings-changed": func(job wire.JobID, n Token) Event {
			return Change{Token: n, Job: job, Change: wire.Change{Suspended: &suspended, Pool: &into}}
		},
		"scheduling-changed": func(_ wire.JobID, n Token) Event {
			return Schedule{Token: n, Scheduling: wire.Scheduling{Scheduler: "fair"}}
		},
		"drain":     func(_ wire.JobID, n Token) Event { return Drain{Token: n, Tracker: "t"} },
		"operator":  func(_ wire.JobID, n Token) Event { return Exclude{Token: n, Tracker: "t", By: "ann"} },
		"operator'": func(_ wire.JobID, n Token) Event { return Exclude{Token: n, Tracker: "t", Undo: true} },
		"stopped":   func(job wire.JobID, n Token) Event { return Kill{Token: n, Job: job} },
	} {
		t.Run(kind, func(t *testing.T) {
			o := newLoggedCore(Config{Limits: Limits{Limits: quota.Limits{Jobs: quota.Bound{Pool: 1}}}})
			o.feed(PoolsRead{Table: pool.Table{From: "f", Pools: []pool.Pool{{Name: "p", Max: [2]int{pool.Unlimited, pool.Unlimited}, MaxRunning: pool.Unlimited}}}})
			o.feed(FromTracker{Stream: 1, Message: &wire.Hello{Version: wire.Version, Tracker: "t", Process: 1, MapSlots: 1, ReduceSlots: 1}})
			o.feed(FromTracker{Stream: 1, Message: &wire.Inventory{}})
			o.feed(Submit{Token: 1, Submission: submissionOf(1, func(*wire.JobPlan) {})})
			job, reason := o.leader.jobs[1].id, errors.New("too large")

			refusals := 2
			held := o.hold(func() {
				o.feed(request(job, 2))
				o.feed(request(job, 3))
			})
			if kind == "stopped" {
				refusals = 1 // both wait for one fact
			}
			var answered []Token
			for ; len(held) > 0; held = held[1:] {
				if !strings.HasPrefix(held[0].Key, strings.TrimSuffix(kind, "'")) {
					t.Fatalf("the core proposes %q", held[0].Key)
				}
				more := o.hold(func() {
					for _, r := range repliesIn(o.feed(Refused{Key: held[0].Key, Err: reason})) {
						if answered = append(answered, r.Token); !errors.Is(r.Err, reason) {
							t.Errorf("request %d gets the answer %v", r.Token, r.Err)
						}
					}
				})
				held = append(held, more...)
				refusals--
			}
			if want := []Token{2, 3}; !slices.Equal(answered, want) || refusals != 0 {
				t.Errorf("requests %v are answered after all refusals but %d, want %v", answered, refusals, want)
			}
			if x := o.leader.limited.quota.Reserve("other", quota.Job{Pool: "p"}, 1); x != nil {
				t.Errorf("after the refusals the pool has no room: %v", x)
			}
			o.leader.limited.quota.Release("other")
			if got := repliesIn(o.feed(request(job, 4))); len(got) != 1 || got[0].Err != nil {
				t.Errorf("a request that the log accepts gets the answers %+v", got)
			}
		})
	}
}

// TestSubmitAgain tests that a repeated submission gets the answer of the first one, which waits for its
// entry, though no new one would be accepted any more. A known one is always accepted again.
func TestSubmitAgain(t *testing.T) {
	o := newLoggedCore(Config{Limits: Limits{Effects: 1}})
	again := func(n Token) Event {
		return Submit{Token: n, Submission: submissionOf(1, func(*wire.JobPlan) {})}
	}
	held := o.hold(func() {
		o.feed(again(1))
		o.leader.limited.effects = 1
		if got := repliesIn(o.feed(again(2))); len(got) > 0 {
			t.Errorf("the repeated submission gets the answer %v before the first one", got[0].Err)
		}
		other := submissionOf(1, func(*wire.JobPlan) {})
		other.Key = "other"
		if got := repliesIn(o.feed(Submit{Token: 3, Submission: other})); len(got) != 1 || got[0].Err == nil {
			t.Errorf("another submission gets the answers %+v", got)
		}
	})
	if len(held) != 1 {
		t.Fatalf("%d proposals, want one", len(held))
	}
	o.entries++
	var answered []Token
	for _, r := range repliesIn(o.feed(Entry{Index: o.entries, Term: 1, Data: held[0].Data})) {
		if answered = append(answered, r.Token); r.Err != nil || len(r.Jobs) != 1 {
			t.Errorf("submission %d gets the answer %+v", r.Token, r)
		}
	}
	if !slices.Equal(answered, []Token{1, 2}) {
		t.Errorf("submissions %v are answered", answered)
	}
	if got := repliesIn(o.feed(again(4))); len(got) != 1 || got[0].Err != nil {
		t.Errorf("a known submission gets the answers %+v", got)
	}
}

// TestSubmitKeyOfAnother tests that a user who sends the key of another user's submission, which waits for its
// entry, does not get the other user's job as an answer.
func TestSubmitKeyOfAnother(t *testing.T) {
	o := newLoggedCore(Config{})
	held := o.hold(func() {
		for n, user := range []string{"ann", "bob"} {
			o.feed(Submit{Token: Token(n + 1), Submission: submissionOf(1, func(*wire.JobPlan) {}), By: admission.Caller{Name: user}})
		}
	})
	answers := make(map[Token]Reply)
	for _, x := range held {
		o.entries++
		for _, r := range repliesIn(o.feed(Entry{Index: o.entries, Term: 1, Data: x.Data})) {
			answers[r.Token] = r
		}
	}
	if r := answers[1]; r.Err != nil || len(r.Jobs) != 1 {
		t.Errorf("ann gets the answer %+v", r)
	}
	if r := answers[2]; !errors.Is(r.Err, admission.ErrNotAllowed) || len(r.Jobs) > 0 {
		t.Errorf("bob gets the answer %+v", r)
	}
}

// TestRefusedFailure tests a job that fails, if the log refuses its stop. It stops with a shorter text. If
// that is refused too, waiting kills get an answer, and the job can still be killed.
func TestRefusedFailure(t *testing.T) {
	for _, refuseAll := range []bool{false, true} {
		reason := errors.New("too large")
		o := newLoggedCore(Config{})
		o.feed(Submit{Token: 1, Submission: submissionOf(1, func(*wire.JobPlan) {})})
		j := o.leader.jobs[1]
		o.refuse = func(x facts.Fact) error {
			if x, ok := x.(*facts.Stopped); ok && x.Outcome == wire.Failed && (refuseAll || len(x.Reason) > 5000) {
				return reason
			}
			return nil
		}
		o.commands = nil
		o.leader.stopJob(j, wire.Failed, "oops "+strings.Repeat("x", 10_000))
		failing := o.commands
		if got := repliesIn(o.feed(Kill{Token: 2, Job: j.id})); len(got) > 0 {
			t.Fatalf("the kill is answered before the failure is in the log: %+v", got)
		}
		o.others = nil
		o.carryOut(failing)
		got := repliesIn(o.others)
		if len(got) != 1 || got[0].Token != 2 || errors.Is(got[0].Err, reason) != refuseAll {
			t.Errorf("refused: %v; the kill gets the answers %+v", refuseAll, got)
		}
		if refuseAll {
			if o.facts.Job(1).Stopping() {
				t.Error("the job stops, though the log refuses it")
			}
			o.feed(Kill{Token: 3, Job: j.id})
		}
		want := wire.Failed
		if refuseAll {
			want = wire.Killed
		}
		if stop := o.facts.Job(1).Stop(); stop.Outcome != want || !refuseAll && !strings.Contains(stop.Reason, "oops") {
			t.Errorf("refused: %v; the job stops as %+v", refuseAll, stop)
		}
	}
}
