package admission

import (
	"fmt"

	"github.com/quernmr/quern/locality"
	"github.com/quernmr/quern/scheduler"
	"github.com/quernmr/quern/scheduler/menu"
	"github.com/quernmr/quern/wire"
)

// defaultScheduling is in force unless another is asked for.
var defaultScheduling = wire.Scheduling{Scheduler: "fifo", Metric: "sum-response", Delay: "none"}

// Scheduling is how slots are shared, with its names looked up on the menu.
type Scheduling struct {
	Asked   wire.Scheduling // as it was asked for, complete
	Unknown string          // what of Asked this build does not know; the default is in force then
	Policy  string          // its name, see scheduler/menu
	Metric  scheduler.Metric
	Rule    locality.Rule
}

// CheckScheduling says what of s is not on the menu. Empty fields are.
func CheckScheduling(s wire.Scheduling) error {
	_, err := parse(s.WithDefaults(defaultScheduling))
	return err
}

// LookUp finds the scheduling that is in force when s was asked for. A later build may have
// put into the log what this one does not know.
func LookUp(s wire.Scheduling) Scheduling {
	asked := s.WithDefaults(defaultScheduling)
	found, err := parse(asked)
	if err != nil {
		found, _ = parse(defaultScheduling)
		found.Unknown = err.Error()
	}
	found.Asked = asked
	return found
}

func parse(s wire.Scheduling) (found Scheduling, err error) {
	found.Policy = s.Scheduler
	if _, err = menu.Policy(s.Scheduler); err == nil {
		if found.Metric, err = scheduler.ParseMetric(s.Metric); err == nil {
			found.Rule, err = locality.ParseRule(s.Delay)
		}
	}
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrBadScheduling, err)
	}
	return found, err
}
