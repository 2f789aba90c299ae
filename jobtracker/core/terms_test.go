package core

import (
	"slices"
	"testing"

	"github.com/quernmr/quern/jobtracker/core/facts"
)

// proposedKeys lists the keys of the proposals among commands.
func proposedKeys(commands []Command) (keys []string) {
	for _, c := range commands {
		if p, ok := c.(Propose); ok {
			keys = append(keys, p.Key)
		}
	}
	return keys
}

// TestEarlierTerm tests that an entry of an earlier term does not settle a later proposal.
func TestEarlierTerm(t *testing.T) {
	c := New(Config{ID: "a"})
	x := &facts.LeaderElected{Leader: "a"}
	c.Step(0, Elected{Term: 2, Wall: 1})
	c.Step(0, Entry{Index: 1, Term: 1, Data: facts.Encode(x)})
	if keys := proposedKeys(c.Step(0, Undecided{Key: x.Name()})); !slices.Equal(keys, []string{x.Name()}) {
		t.Errorf("after the entry of an earlier term the core proposes %v, want %s again", keys, x.Name())
	}
}

// TestLaterTerm tests that an entry of a later term deposes the leader.
func TestLaterTerm(t *testing.T) {
	c := New(Config{ID: "a"})
	c.Step(0, Elected{Term: 1, Wall: 1})
	c.Step(0, Entry{Index: 1, Term: 1, Data: facts.Encode(&facts.LeaderElected{Leader: "a"})})
	c.Step(0, Entry{Index: 2, Term: 1, Data: facts.Encode(&facts.Bootstrapped{Start: 1})})
	if !c.IsLeader() {
		t.Fatal("the elected core is not the leader")
	}
	c.Step(0, Entry{Index: 3, Term: 2, Data: facts.Encode(&facts.LeaderElected{Leader: "b"})})
	if c.IsLeader() || c.Epoch() != 2 {
		t.Errorf("is the leader: %v, in epoch %d; want a follower in epoch 2", c.IsLeader(), c.Epoch())
	}
	if keys := proposedKeys(c.Step(0, Elected{Term: 3, Wall: 2})); len(keys) != 1 {
		t.Errorf("after another election it proposes %v, want one fact", keys)
	}
}
