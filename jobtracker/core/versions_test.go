package core

import (
	"errors"
	"strings"
	"testing"

	"github.com/quernmr/quern/jobtracker/core/facts"
	"github.com/quernmr/quern/wire"
)

// TestTrackersOfOtherVersions tests that the refusal of a task tracker of another protocol names
// both versions.
func TestTrackersOfOtherVersions(t *testing.T) {
	for version, want := range map[int]string{
		0:                "tracker t speaks protocol version 0, this job tracker 4: one of them is of another build",
		wire.Version - 1: "tracker t speaks protocol version 3, this job tracker 4",
		wire.Version + 1: "tracker t speaks protocol version 5, this job tracker 4",
		wire.Version:     "",
	} {
		o, reason := newLoggedCore(Config{}), ""
		for _, c := range o.feed(FromTracker{Stream: 1, Message: &wire.Hello{Version: version, Tracker: "t", Process: 1}}) {
			if s, ok := c.(Send); ok {
				if m, ok := s.Message.(*wire.Refuse); ok {
					reason = m.Reason
				}
			}
		}
		if want == "" && reason != "" || !strings.HasPrefix(reason, want) {
			t.Errorf("version %d: refused as %q, want %q", version, reason, want)
		}
	}
}

// TestUnknownSnapshots tests that a snapshot of a later build halts the core with an error that
// names both versions.
func TestUnknownSnapshots(t *testing.T) {
	c := New(Config{})
	commands := c.Step(0, Restored{Snapshot: []byte{9, 0x80}})
	if len(commands) != 1 {
		t.Fatal(commands)
	}
	if halt, ok := commands[0].(Halt); !ok || !errors.Is(halt.Err, facts.ErrUnknownFact) || !strings.Contains(halt.Err.Error(), "version 9, this build knows 2") {
		t.Errorf("%+v", commands)
	}
}
