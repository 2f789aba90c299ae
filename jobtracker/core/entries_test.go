package core

import (
	"errors"
	"testing"

	"github.com/quernmr/quern/jobtracker/core/facts"
)

// TestUnknownEntries tests that the core halts at an entry of an unknown version.
func TestUnknownEntries(t *testing.T) {
	good := facts.Encode(&facts.Committing{Job: 1})
	for _, data := range [][]byte{nil, {1}, {1, 200, 0x80}, {2, 12, 0x80}, append([]byte{1, 12}, 0xc1)} {
		c := New(Config{})
		commands := c.Step(0, Entry{Index: 1, Term: 1, Data: data})
		if len(commands) != 1 {
			t.Fatalf("%x: %v", data, commands)
		}
		if halt, ok := commands[0].(Halt); !ok || halt.Err == nil {
			t.Errorf("%x: %v", data, commands)
		}
		if commands := c.Step(0, Entry{Index: 2, Term: 1, Data: good}); commands != nil {
			t.Errorf("%x: after the halt the core returns %v", data, commands)
		}
	}
	c := New(Config{Staging: "mem://other"})
	commands := c.Step(0, Entry{Index: 1, Term: 1, Data: facts.Encode(&facts.Bootstrapped{Start: 1, Staging: "mem://s"})})
	if halt, ok := commands[0].(Halt); !ok || !errors.Is(halt.Err, ErrOtherStaging) {
		t.Errorf("another staging directory: %v", commands)
	}
}
