package scheduler

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quernmr/quern/internal/spelling"
)

// Penalty is the kind of cost function of a completion time (FLEX, section 2.1).
type Penalty uint8

// The penalties. The zero Penalty means not given.
const (
	Response  Penalty = iota + 1 // the time itself
	Stretch                      // the time divided by Job.Alone, or by Flow.Alone for a flow
	Tardy                        // 1 after the deadline
	Tardiness                    // the time after the deadline
	Lateness                     // the time after the deadline, negative before it
	SLA                          // steps, each with a time and a cost
)

var penaltyNames = []string{"", "response", "stretch", "tardy", "tardiness", "lateness", "sla"}

func (p Penalty) String() string {
	if int(p) < len(penaltyNames) {
		return penaltyNames[p]
	}
	return fmt.Sprintf("penalty(%d)", uint8(p))
}

// Aggregate combines the costs of all jobs into one number.
type Aggregate uint8

const (
	Sum Aggregate = iota // minisum
	Max                  // minimax
)

var aggregateNames = []string{"sum", "max"}

func (a Aggregate) String() string {
	if int(a) < len(aggregateNames) {
		return aggregateNames[a]
	}
	return fmt.Sprintf("aggregate(%d)", uint8(a))
}

// Metric is the number that a policy minimises. Makespan is Max of Response. Weighted
// multiplies each cost by the job's weight; otherwise weights are ignored.
type Metric struct {
	Aggregate Aggregate
	Penalty   Penalty // 0: Response
	Weighted  bool
}

// Metrics lists every penalty, as sum and maximum, unweighted and weighted.
func Metrics() []Metric {
	var all []Metric
	for _, a := range []Aggregate{Sum, Max} {
		for p := Response; p <= SLA; p++ {
			all = append(all, Metric{a, p, false}, Metric{a, p, true})
		}
	}
	return all
}

// String returns the metric's name, such as "sum-response" or "max-tardiness-weighted".
func (m Metric) String() string {
	p := m.Penalty
	if p == 0 {
		p = Response
	}
	name := m.Aggregate.String() + "-" + p.String()
	if m.Weighted {
		name += "-weighted"
	}
	return name
}

// ParseMetric reads a name that String wrote.
func ParseMetric(name string) (Metric, error) {
	all := Metrics()
	if i := slices.IndexFunc(all, func(m Metric) bool { return m.String() == name }); i >= 0 {
		return all[i], nil
	}
	return Metric{}, fmt.Errorf("metric %q: want sum- or max-, one of %s, and -weighted or nothing%s",
		name, strings.Join(penaltyNames[1:], " "), spelling.DidYouMean("", name, MetricNames()))
}

// MetricNames lists the names that ParseMetric reads.
func MetricNames() []string {
	var names []string
	for _, m := range Metrics() {
		names = append(names, m.String())
	}
	return names
}

func (m Metric) check() error {
	if int(m.Aggregate) >= len(aggregateNames) || int(m.Penalty) >= len(penaltyNames) {
		return fmt.Errorf("field Metric is %v", m)
	}
	return nil
}
