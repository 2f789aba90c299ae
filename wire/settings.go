package wire

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Settings are the job settings of a submission: for its single job, or for all jobs of its flow.
// They can change while jobs run. Times count from the submission, so that only the leader's clock
// matters.
type Settings struct {
	Priority Priority      `msgpack:"Priority"`
	Weight   float64       `msgpack:"Weight"`   // in weighted metrics; 0 means 1
	Deadline time.Duration `msgpack:"Deadline"` // may be in the past; 0: none
	SLA      []SLAStep     `msgpack:"SLA"`      // sorted by time
	Batch    string        `msgpack:"Batch"`    // name of a batch, which is planned together; empty: none
	Pool     string        `msgpack:"Pool"`     // empty: "default"
}

// SLAStep is the total cost if the job ends later than After.
type SLAStep struct {
	After time.Duration `msgpack:"After"`
	Cost  float64       `msgpack:"Cost"`
}

// DefaultPool is the pool of jobs that do not name a pool.
const DefaultPool = "default"

// Priority is one of Hadoop's priorities. It orders jobs under fifo, and multiplies the weight
// under other schedulers.
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

// Factor returns the multiplier for a job's weight: 1/4, 1/2, 1, 2 or 4.
func (p Priority) Factor() float64 {
	switch {
	case p > 0:
		return float64(int(1) << min(p, VeryHigh))
	default:
		return 1 / float64(int(1)<<min(-p, -VeryLow))
	}
}

// ParsePriority parses the text of String in upper or lower case. It also accepts Hadoop's other
// forms: 1 to 5 for lowest to highest, DEFAULT and UNDEFINED_PRIORITY for NORMAL.
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

// Scheduling is how a cluster shares its slots, in the words of the command line. In a change, an
// empty field keeps the current value.
type Scheduling struct {
	Scheduler string `msgpack:"Scheduler"` // "fifo", "flex", …
	Metric    string `msgpack:"Metric"`    // "sum-response", …
	Delay     string `msgpack:"Delay"`     // "none", "fixed=3s", "paper", "dynamic"
}

// WithDefaults returns s with its empty fields taken from base.
func (s Scheduling) WithDefaults(base Scheduling) Scheduling {
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

// Change is a change of job settings. nil keeps a setting.
type Change struct {
	Priority  *Priority
	Weight    *float64
	Deadline  *time.Duration // time from now; 0: remove the deadline
	SLA       *[]SLAStep     // times from the submission
	Batch     *string
	Pool      *string
	Suspended *bool
	TakeBack  bool // kill the running attempts of a job that the change suspends
}

// Late reports whether a job has missed its deadline. elapsed is the time since its submission.
func (t *Settings) Late(elapsed time.Duration) bool {
	return t.Deadline != 0 && elapsed > t.Deadline
}

// Empty reports whether a change is empty.
func (c *Change) Empty() bool { return *c == Change{} }
