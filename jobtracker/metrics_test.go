package jobtracker

import (
	"context"
	"errors"
	"testing"

	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/wire"
)

// TestMetrics: a leader's metrics have a census of its jobs and task trackers, and count Steps and plans.
// Without an answer of the loop, they have the counts, and an error.
func TestMetrics(t *testing.T) {
	s := start(t, nil)
	f := attach(t, s, "t1", 1, 5)
	go f.run()
	ids, err := s.Submit(testContext(t), core.Caller{}, submission("a", 3))
	if err != nil {
		t.Fatal(err)
	}
	for statuses, err := range s.Watch(testContext(t), ids) {
		if err != nil {
			t.Fatal(err)
		}
		if statuses[0].State.Ended() {
			break
		}
	}
	m, err := s.Metrics(testContext(t))
	for planned := false; err == nil && !planned; { // the job may end before its plan comes
		plans := m.Plans.Distribution()
		planned = plans.Total() > 0
		m, err = s.Metrics(testContext(t))
	}
	if err != nil || !m.Leads || m.Census == nil || m.Census.Trackers.Usable != 1 || m.Census.Phases[0].Slots != 2 {
		t.Fatalf("metrics %+v of %+v, %v", m, m.Census, err)
	}
	waitFor(t, "a plan to be counted", func() bool { plans := m.Plans.Distribution(); return plans.Total() > 0 }) // the job may end before
	steps, waits, plans := m.Steps.Distribution(), m.Waits.Distribution(), m.Plans.Distribution()
	if steps.Total() == 0 || waits.Total() == 0 || plans.Total() == 0 {
		t.Errorf("%d Steps, %d messages and %d plans are counted", steps.Total(), waits.Total(), plans.Total())
	}
	if m.Counts.Submitted.Value() != 1 || m.Counts.Ended[wire.Succeeded].Value() != 1 {
		t.Errorf("%d jobs submitted, %d succeeded", m.Counts.Submitted.Value(), m.Counts.Ended[wire.Succeeded].Value())
	}
	goOn, stuck := make(chan struct{}), make(chan struct{})
	s.post(func() { close(stuck); <-goOn })
	<-stuck
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	m, err = s.Metrics(ended)
	close(goOn)
	if !errors.Is(err, context.Canceled) || m.Census != nil || m.Counts.Submitted.Value() != 1 {
		t.Errorf("while the loop does not answer: %+v, %v", m, err)
	}
}
