package core

import (
	"slices"
	"testing"

	"github.com/quernmr/quern/jobtracker/core/facts"
)

// proposed lists the keys that a Step proposes.
func proposed(commands []Command) (keys []string) {
	for _, c := range commands {
		if p, ok := c.(Propose); ok {
			keys = append(keys, p.Key)
		}
	}
	return keys
}

// TestEarlierTerm: an entry of an earlier term does not settle a proposal with the same key.
func TestEarlierTerm(t *testing.T) {
	c := New(Config{ID: "a"})
	x := &facts.LeaderElected{Leader: "a"}
	c.Step(0, Elected{Term: 2, Wall: 1})
	c.Step(0, Entry{Index: 1, Term: 1, Data: facts.Encode(x)})
	if keys := proposed(c.Step(0, Undecided{Key: x.Name()})); !slices.Equal(keys, []string{x.Name()}) {
		t.Errorf("after the entry of an earlier term %v is proposed again, not %s", keys, x.Name())
	}
}

// TestLaterTerm: a leader that sees an entry of a later term stops leading.
func TestLaterTerm(t *testing.T) {
	c := New(Config{ID: "a"})
	c.Step(0, Elected{Term: 1, Wall: 1})
	c.Step(0, Entry{Index: 1, Term: 1, Data: facts.Encode(&facts.LeaderElected{Leader: "a"})})
	c.Step(0, Entry{Index: 2, Term: 1, Data: facts.Encode(&facts.Bootstrapped{Start: 1})})
	if !c.IsLeader() {
		t.Fatal("it is not the leader")
	}
	c.Step(0, Entry{Index: 3, Term: 2, Data: facts.Encode(&facts.LeaderElected{Leader: "b"})})
	if c.IsLeader() || c.Epoch() != 2 {
		t.Errorf("leads: %v, in epoch %d", c.IsLeader(), c.Epoch())
	}
	if keys := proposed(c.Step(0, Elected{Term: 3, Wall: 2})); len(keys) != 1 {
		t.Errorf("after another election it proposes %v", keys)
	}
}
