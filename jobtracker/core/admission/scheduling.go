package admission

import (
	"github.com/quernmr/quern/locality"
	"github.com/quernmr/quern/scheduler"
	"github.com/quernmr/quern/scheduler/menu"
	"github.com/quernmr/quern/wire"
)

// defaultScheduling is in force unless another is requested.
var defaultScheduling = wire.Scheduling{Scheduler: "fifo", Metric: "sum-response", Delay: "none"}

// Scheduling is a wire.Scheduling with its names resolved.
type Scheduling struct {
	Requested wire.Scheduling // with defaults for empty fields
	Unknown   string          // why this build cannot use Requested; the default is in force then
	Policy    string          // its name, see scheduler/menu
	Metric    scheduler.Metric
	Rule      locality.Rule
}

// CheckScheduling returns an error if a name in s is unknown. Empty fields are valid.
func CheckScheduling(s wire.Scheduling) error {
	_, err := parse(s.WithDefaults(defaultScheduling))
	return err
}

// LookUp finds the scheduling in force when s was requested. The log may have names that only
// a later build knows: then it is the default.
func LookUp(s wire.Scheduling) Scheduling {
	requested := s.WithDefaults(defaultScheduling)
	found, err := parse(requested)
	if err != nil {
		found, _ = parse(defaultScheduling)
		found.Unknown = err.Error()
	}
	found.Requested = requested
	return found
}

// badScheduling is an ErrBadScheduling with the text of its cause, which names the wrong part.
type badScheduling struct{ error }

func (b badScheduling) Unwrap() []error { return []error{ErrBadScheduling, b.error} }

func parse(s wire.Scheduling) (found Scheduling, err error) {
	found.Policy = s.Scheduler
	if _, err = menu.Policy(s.Scheduler); err == nil {
		if found.Metric, err = scheduler.ParseMetric(s.Metric); err == nil {
			found.Rule, err = locality.ParseRule(s.Delay)
		}
	}
	if err != nil {
		err = badScheduling{err}
	}
	return found, err
}
