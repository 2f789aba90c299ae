package admission

import (
	"cmp"
	"fmt"
	"time"

	"github.com/quernmr/quern/jobtracker/core/facts"
	"github.com/quernmr/quern/scheduler"
	"github.com/quernmr/quern/wire"
)

// Bounds of job settings. Every policy can compute with values within them.
const (
	minWeight = 1e-6
	maxWeight = 1e6
	maxCost   = 1e12
	maxTime   = 10 * 365 * 24 * time.Hour
	maxSteps  = 100 // of an SLA
	maxName   = 200 // bytes of a name
)

// checkSettings returns why job settings are invalid. It does not check the pool. A deadline may
// be in the past.
func checkSettings(t wire.Settings) error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrBadSettings, fmt.Sprintf(format, args...))
	}
	switch {
	case t.Priority < wire.VeryLow || t.Priority > wire.VeryHigh:
		return bad("priority %d", t.Priority)
	case t.Weight != 0 && !(t.Weight >= minWeight && t.Weight <= maxWeight):
		return bad("weight %v: want a number from %g to %g", t.Weight, minWeight, maxWeight)
	case t.Deadline.Abs() > maxTime:
		return bad("the deadline is %v away, at most %v", t.Deadline, maxTime)
	case len(t.SLA) > maxSteps:
		return bad("an SLA of %d steps, at most %d", len(t.SLA), maxSteps)
	case len(t.Batch) > maxName || len(t.Pool) > maxName:
		return bad("names of more than %d bytes", maxName)
	}
	var last wire.SLAStep
	for i, step := range t.SLA {
		switch {
		case !(step.Cost >= 0 && step.Cost <= maxCost):
			return bad("the SLA's cost %v after %v: want a number that is not negative", step.Cost, step.After)
		case step.After.Abs() > maxTime:
			return bad("the SLA's step after %v, at most %v", step.After, maxTime)
		case i > 0 && (step.After <= last.After || step.Cost < last.Cost):
			return bad("the SLA's cost %v after %v follows %v after %v: both must grow", step.Cost, step.After, last.Cost, last.After)
		}
		last = step
	}
	return nil
}

// ChangeFact makes the fact of a change; wall is the time in Unix milliseconds. Settings that the
// change does not name stay. Its deadline counts from wall.
func ChangeFact(s *facts.Submission, c wire.Change, wall int64) *facts.SettingsChanged {
	x := &facts.SettingsChanged{Key: s.Key(), N: s.Changes() + 1, Suspended: s.Suspended()}
	set(&x.Suspended, c.Suspended)
	x.Settings = settings(s.Settings(), c, time.Duration(wall-s.At())*time.Millisecond)
	return x
}

// settings applies a change to the settings of a submission of this age.
func settings(t wire.Settings, c wire.Change, age time.Duration) wire.Settings {
	set(&t.Priority, c.Priority)
	set(&t.Weight, c.Weight)
	set(&t.SLA, c.SLA)
	set(&t.Pool, c.Pool)
	set(&t.Batch, c.Batch)
	switch {
	case c.Deadline == nil:
	case *c.Deadline == 0:
		t.Deadline = 0
	default:
		t.Deadline = nonzeroDeadline(age + *c.Deadline)
	}
	if len(t.SLA) == 0 {
		t.SLA = nil // as the log decodes it
	}
	return t
}

func set[T any](field *T, wanted *T) {
	if wanted != nil {
		*field = *wanted
	}
}

// nonzeroDeadline moves a deadline of 0, which would mean none, just before it.
func nonzeroDeadline(after time.Duration) time.Duration { return cmp.Or(after, -1) }

// Goal turns the settings of a job, submitted at this time, into a scheduler's goal.
func Goal(t wire.Settings, submitted time.Duration) scheduler.Goal {
	goal := scheduler.Goal{Weight: cmp.Or(t.Weight, 1) * t.Priority.Factor(), Submitted: submitted}
	if t.Deadline != 0 {
		goal.Deadline = nonzeroDeadline(submitted + t.Deadline)
	}
	for _, step := range t.SLA {
		goal.Steps = append(goal.Steps, scheduler.Step{By: submitted + step.After, Cost: step.Cost})
	}
	return goal
}
