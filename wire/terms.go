package wire

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Terms are what the owner of a submission asks for: of its one job, or of all jobs
// of its flow together. They can be changed while it runs. Times are counted from
// the submission, so that no clock but the leader's matters.
type Terms struct {
	Priority Priority      `msgpack:"Priority"`
	Weight   float64       `msgpack:"Weight"`   // of its cost, where the metric is weighted; 0: 1
	Deadline time.Duration `msgpack:"Deadline"` // may be in the past; 0: none
	SLA      []SLAStep     `msgpack:"SLA"`      // by time
	Batch    string        `msgpack:"Batch"`    // jobs of one batch are planned together; empty: alone
	Pool     string        `msgpack:"Pool"`     // empty: "default"
}

// SLAStep is what ending after a time costs in total.
type SLAStep struct {
	After time.Duration `msgpack:"After"`
	Cost  float64       `msgpack:"Cost"`
}

// DefaultPool is the pool of those who name none.
const DefaultPool = "default"

// Priority is one of Hadoop's. It orders jobs under fifo, and multiplies the weight
// under all others.
type Priority int8

// Hadoop's priorities.
const (
	VeryLow Priority = iota - 2
	Low
	Normal
	High
	VeryHigh
)

var priorityNames = []string{"VERY_LOW", "LOW", "NORMAL", "HIGH", "VERY_HIGH"}

func (p Priority) String() string {
	if p < VeryLow || p > VeryHigh {
		return fmt.Sprintf("PRIORITY(%d)", int8(p))
	}
	return priorityNames[p-VeryLow]
}

// Factor is what the priority makes of a weight: 1/4, 1/2, 1, 2 or 4.
func (p Priority) Factor() float64 {
	switch {
	case p > 0:
		return float64(int(1) << min(p, VeryHigh))
	default:
		return 1 / float64(int(1)<<min(-p, -VeryLow))
	}
}

// ParsePriority reads what String writes, in any case, and what else Hadoop takes:
// 1 to 5 for the lowest to the highest, and DEFAULT or UNDEFINED_PRIORITY for NORMAL.
func ParsePriority(text string) (Priority, error) {
	for i, name := range priorityNames {
		if strings.EqualFold(text, name) || text == strconv.Itoa(i+1) {
			return VeryLow + Priority(i), nil
		}
	}
	if strings.EqualFold(text, "DEFAULT") || strings.EqualFold(text, "UNDEFINED_PRIORITY") {
		return Normal, nil
	}
	return 0, fmt.Errorf("priority %q: want one of %s", text, strings.Join(priorityNames, ", "))
}

// Scheduling is how a cluster shares its slots, by the names of the command line.
// What is empty is left as it is, where something is.
type Scheduling struct {
	Scheduler string `msgpack:"Scheduler"` // "fifo", "flex", …
	Metric    string `msgpack:"Metric"`    // "sum-response", …
	Delay     string `msgpack:"Delay"`     // "none", "fixed=3s", "paper", "dynamic"
}

// Over is s with what is empty taken from base.
func (s Scheduling) Over(base Scheduling) Scheduling {
	for _, field := range []struct {
		own  *string
		base string
	}{{&s.Scheduler, base.Scheduler}, {&s.Metric, base.Metric}, {&s.Delay, base.Delay}} {
		if *field.own == "" {
			*field.own = field.base
		}
	}
	return s
}

// Change is what of a submission's terms is to be another; nil stays.
type Change struct {
	Priority  *Priority
	Weight    *float64
	Deadline  *time.Duration // from now; 0: none any more
	SLA       *[]SLAStep     // from the submission
	Batch     *string
	Pool      *string
	Suspended *bool
}

// Late says whether a job that was submitted so long ago has missed its deadline.
func (t *Terms) Late(elapsed time.Duration) bool {
	return t.Deadline != 0 && elapsed > t.Deadline
}

// Nothing says whether a change changes nothing.
func (c *Change) Nothing() bool { return *c == Change{} }
