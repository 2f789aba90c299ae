package core

import (
	"testing"
	"time"

	"github.com/quernmr/quern/jobtracker/core/facts"
	"github.com/quernmr/quern/wire"
)

// TestHelloWaitsForLeader: on a follower the Hello of a tracker that has lost the last known leader waits
// until another leader is known, this job tracker leads, the stream ends, or the hold ends.
func TestHelloWaitsForLeader(t *testing.T) {
	elected := func(index, term uint64, id string) Entry {
		return Entry{Index: index, Term: term, Data: facts.Encode(&facts.LeaderElected{Leader: id, Addr: id + ":1"})}
	}
	hello := func(id Stream, lost string) FromTracker {
		return FromTracker{Stream: id, Message: &wire.Hello{Version: wire.Version, Tracker: "t", Process: 1, LostLeader: lost}}
	}
	// follower returns a follower of a, with a waiting Hello on stream 1.
	follower := func() *Core {
		c := New(Config{ID: "b", Addr: "b:1"})
		c.Step(0, elected(1, 1, "a"))
		if commands := c.Step(0, hello(1, "a:1")); len(commands) > 0 {
			t.Errorf("the Hello is answered: %+v", commands)
		}
		return c
	}
	refused := func(name string, commands []Command, leader string) {
		t.Helper()
		if len(commands) != 2 {
			t.Errorf("%s: commands %+v, want a Refuse and a CloseStream", name, commands)
			return
		}
		s, _ := commands[0].(Send)
		if m, ok := s.Message.(*wire.Refuse); !ok || m.Leader != leader || commands[1] != (CloseStream{Stream: s.Stream}) {
			t.Errorf("%s: commands %+v, want a refusal that names %q", name, commands, leader)
		}
	}
	hold := follower().holdTime()

	c := follower()
	refused("another tracker lost nothing", c.Step(0, hello(2, "")), "a:1")
	refused("another tracker lost an earlier leader", c.Step(0, hello(3, "z:1")), "a:1")
	if again := c.Step(time.Millisecond, hello(1, "a:1")); len(again) > 0 {
		t.Errorf("a second Hello is answered: %+v", again)
	}
	if at, ok := c.Wake(); !ok || at != hold {
		t.Errorf("the follower wakes at %v, %v, want %v", at, ok, hold)
	}
	if early := c.Step(hold-1, Tick{}); len(early) > 0 {
		t.Errorf("the hold ends early: %+v", early)
	}
	refused("the hold ends", c.Step(hold, Tick{}), "a:1")
	if late := c.Step(2*hold, Tick{}); len(late) > 0 {
		t.Errorf("a refused Hello is answered again: %+v", late)
	}
	if _, ok := c.Wake(); ok {
		t.Error("the follower wakes although no Hello waits")
	}

	refused("another leads", follower().Step(1, elected(2, 2, "c")), "c:1")
	refused("the same leads again", follower().Step(1, elected(2, 2, "a")), "a:1")

	c = follower()
	c.Step(1, StreamClosed{Stream: 1})
	if commands := c.Step(hold, Tick{}); len(commands) > 0 {
		t.Errorf("the Hello of a closed stream is answered: %+v", commands)
	}

	c = follower()
	c.Step(1, Elected{Term: 2, Wall: 1})
	c.Step(2, elected(2, 2, "b"))
	registers := false
	boot := Entry{Index: 3, Term: 2, Data: facts.Encode(&facts.Bootstrapped{Start: 1})}
	for _, cmd := range c.Step(3, boot) {
		p, ok := cmd.(Propose)
		registers = registers || ok && p.Key == (&facts.TrackerRegistered{Tracker: facts.Tracker{Name: "t", Process: 1}}).Name()
	}
	if !registers {
		t.Error("a tracker with a Hello that waited is not registered by the next leader")
	}
}
