package core

import (
	"testing"
	"time"

	"github.com/quernmr/quern/wire"
)

// TestTokensAreSent tests that launches, homes and histories have the token of their job.
func TestTokensAreSent(t *testing.T) {
	c := New(Config{ID: "jt", Staging: "mem://s", History: true})
	var inbox []FromTracker
	var inHistory string
	sent := make(map[string]int)
	var feed func(Event)
	feed = feeder(c, new(time.Duration), func(cmd Command) {
		switch cmd := cmd.(type) {
		case WriteHistory:
			inHistory = cmd.Record().Token
			feed(HistoryWritten{Epoch: 1, Job: cmd.Job})
		case Send:
			switch m := cmd.Message.(type) {
			case *wire.Launch:
				sent[m.Token]++
			case *wire.SetHome:
				sent[m.Token]++
			}
			inbox = append(inbox, runAtOnce(cmd, 3)...)
		}
	})
	feed(Elected{Term: 1, Wall: scenarioStart})
	feed(FromTracker{Stream: 1, Message: &wire.Hello{Version: wire.Version, Tracker: "t", Process: 1, MapSlots: 10, ReduceSlots: 2}})
	feed(FromTracker{Stream: 1, Message: &wire.Inventory{}})
	feed(Submit{Submission: &wire.Submission{Key: "k", Staging: "mem://s/k", Plan: wire.Plan{Jobs: []wire.JobPlan{{Reduces: 2}}}}, Secret: []byte("s")})
	feed(Submit{Submission: &wire.Submission{Key: "l", Staging: "mem://s/l", Plan: wire.Plan{Jobs: []wire.JobPlan{{}}}}, Secret: []byte("t")})
	for len(inbox) > 0 {
		m := inbox[0]
		inbox = inbox[1:]
		feed(m)
	}
	first, second := c.facts.Token(c.facts.Job(1)), c.facts.Token(c.facts.Job(2))
	if len(sent) != 2 || sent[first] < 1+3+2 || sent[second] != 1+3+1 {
		t.Errorf("tokens %v were sent, want %s and %s", sent, first, second)
	}
	if inHistory != second {
		t.Errorf("the history has the token %q, the job %q", inHistory, second)
	}
	if a, ok, _ := c.Attempts(c.facts.ID(1), wire.AttemptID{}); !ok || a.Token != first {
		t.Errorf("Attempts has the token %q", a.Token)
	}
}
