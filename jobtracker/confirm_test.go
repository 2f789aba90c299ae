package jobtracker

import (
	"errors"
	"testing"

	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/jobtracker/core/admission"
	"github.com/quernmr/quern/wire"
)

// TestDeposedWithoutNotice: a job tracker that no longer leads, and does not know it yet, neither
// refuses requests nor answers queries from its old facts. Row 45 of docs/promises.md.
func TestDeposedWithoutNotice(t *testing.T) {
	log := newScriptedLog()
	s := start(t, func(c *Config) { c.Log = log })
	log.play(core.Elected{Term: 1})
	log.play(proposedEntries(core.Config{ID: "jobtracker", Staging: staging})...)
	unknown := wire.JobID{Start: 1, N: 7}
	check := func(want error) {
		t.Helper()
		if err := s.Kill(testContext(t), core.Caller{}, unknown, "test"); !errors.Is(err, want) {
			t.Errorf("a kill of an unknown job: %v, want %v", err, want)
		}
		if _, err := s.Attempts(testContext(t), core.Caller{}, unknown); !errors.Is(err, want) {
			t.Errorf("attempts of an unknown job: %v, want %v", err, want)
		}
		for _, err := range s.Watch(testContext(t), []wire.JobID{unknown}) {
			if !errors.Is(err, want) {
				t.Errorf("a watch of an unknown job: %v, want %v", err, want)
			}
		}
	}
	check(admission.ErrUnknownJob)
	for _, term := range []uint64{0, 2} { // another one leads; or led, before this one led again
		log.mu.Lock()
		log.term = term
		log.mu.Unlock()
		check(core.ErrNotLeader)
	}
}
