package hmhs

import "fmt"

// maxTime bounds times and factors, so that no sum of them is infinite.
const maxTime = 1e15

// maxTasks limits a batch's tasks, because each is dispatched by itself.
const maxTasks = 100_000_000

// Check reports the first job or machine with an invalid field. Tasks must not be negative, and
// need machines. Times and factors must be above 0 and at most 1e15, with one factor for each
// machine. A machine needs slots, with Free times from 0 to 1e15. Stages without tasks are not
// checked. O(J·M).
func (b *Batch) Check() error {
	for _, kind := range []struct {
		name     string
		machines []Machine
		of       func(*Job) *Stage
	}{{"Map", b.Maps, mapOf}, {"Reduce", b.Reduces, reduceOf}} {
		for m, machine := range kind.machines {
			if err := machine.check(); err != nil {
				return fmt.Errorf("%ss[%d]: %w", kind.name, m, err)
			}
		}
		total := 0
		for i := range b.Jobs {
			stage := kind.of(&b.Jobs[i])
			if err := stage.check(kind.name, len(kind.machines)); err != nil {
				return fmt.Errorf("job %d %s: %w", i, b.Jobs[i].ID, err)
			}
			if total += stage.Tasks; total > maxTasks {
				return fmt.Errorf("job %d %s: field %s.Tasks: the batch has more than %d", i, b.Jobs[i].ID, kind.name, maxTasks)
			}
		}
	}
	return nil
}

func (m Machine) check() error {
	if len(m.Free) == 0 {
		return fmt.Errorf("field Free is empty")
	}
	for _, at := range m.Free {
		if !(at >= 0 && at <= maxTime) {
			return fmt.Errorf("field Free has %v", at)
		}
	}
	return nil
}

func (s *Stage) check(name string, machines int) error {
	switch {
	case s.Tasks < 0 || s.Tasks > maxTasks:
		return fmt.Errorf("field %s.Tasks is %d", name, s.Tasks)
	case s.Tasks == 0:
		return nil
	case machines == 0:
		return fmt.Errorf("field %s.Tasks is %d, and no machine has slots for them", name, s.Tasks)
	case !positive(s.Time):
		return fmt.Errorf("field %s.Time is %v", name, s.Time)
	case len(s.Factor) != machines:
		return fmt.Errorf("field %s.Factor has %d entries for %d machines", name, len(s.Factor), machines)
	}
	for m, f := range s.Factor {
		if !positive(f) {
			return fmt.Errorf("field %s.Factor[%d] is %v", name, m, f)
		}
	}
	return nil
}

func positive(x float64) bool { return x > 0 && x <= maxTime }
