package jobtracker

import (
	"context"
	"errors"
	"time"

	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/jobtracker/core/census"
	"github.com/quernmr/quern/meter"
)

// meters are what the loop and its effects count.
type meters struct {
	steps, waits, plans *meter.Histogram
	failedPlans         *meter.Count
}

func newMeters() meters {
	return meters{
		steps: meter.NewTimes(50 * time.Microsecond), waits: meter.NewTimes(100 * time.Microsecond),
		plans: meter.NewTimes(250 * time.Microsecond), failedPlans: new(meter.Count),
	}
}

// Metrics are the numbers of a job tracker for its metrics. The counts go on growing.
type Metrics struct {
	Leads       bool
	Census      *census.Census // nil: it does not lead
	Counts      *census.Counts
	Steps       *meter.Histogram // times of the core's Steps, and of reads of the core for clients
	Waits       *meter.Histogram // from the arrival of a task tracker's message to its Step
	Plans       *meter.Histogram // times of calls of the scheduler
	FailedPlans *meter.Count     // such calls that failed, or took too long
}

// Metrics returns the job tracker's numbers. If the loop makes no census while ctx lasts, it returns the
// others and an error.
func (s *Server) Metrics(ctx context.Context) (Metrics, error) {
	m := Metrics{
		Leads: s.Leadership().Leads, Counts: s.core.Counts(),
		Steps: s.meters.steps, Waits: s.meters.waits, Plans: s.meters.plans, FailedPlans: s.meters.failedPlans,
	}
	if !m.Leads {
		return m, nil
	}
	r, err := s.request(ctx, func(token core.Token) core.Event { return core.TakeCensus{Token: token} })
	if errors.Is(err, core.ErrNotLeader) {
		m.Leads, err = false, nil
	}
	m.Census = r.Census
	return m, err
}

// timeStep passes an event to the core, and counts how long the Step takes.
func (s *Server) timeStep(ev core.Event) []core.Command {
	began := s.now()
	if m, ok := ev.(core.FromTracker); ok && m.ReadAt > 0 {
		s.meters.waits.AddTime(began - m.ReadAt)
	}
	commands := s.core.Step(began, ev)
	s.meters.steps.AddTime(s.now() - began)
	return commands
}
