// Package menu names the policies, as the command line, the log and the API call
// them. Whoever holds a name gets a [scheduler.Policy] here and nowhere else.
package menu

import (
	"fmt"
	"strings"

	"github.com/quernmr/quern/scheduler"
	"github.com/quernmr/quern/scheduler/flex"
	"github.com/quernmr/quern/scheduler/flowflex"
	"github.com/quernmr/quern/scheduler/hmhs"
	"github.com/quernmr/quern/scheduler/overlap"
)

// Names lists the policies.
func Names() []string {
	return []string{"fifo", "fair", "flex", "flowflex", "maxsrpt", "splitsrpt", "srpt", "hmhs"}
}

// Policy finds a policy by its name. All say when phases should end, and all keep the
// bounds of pools, as [NeedsOf] has them told.
func Policy(name string) (scheduler.Policy, error) {
	switch name {
	case "fifo":
		return scheduler.Foreseeing{Policy: scheduler.Within{Policy: scheduler.FIFO{Minima: true}}}, nil
	case "fair":
		return scheduler.Foreseeing{Policy: scheduler.Fair{}}, nil
	case "flex":
		return scheduler.Within{Policy: flex.Policy{}}, nil
	case "flowflex":
		return scheduler.Within{Policy: flowflex.Policy{}}, nil
	case "maxsrpt":
		return scheduler.Foreseeing{Policy: scheduler.Within{Policy: overlap.MaxSRPT{}}}, nil
	case "splitsrpt":
		return scheduler.Foreseeing{Policy: scheduler.Within{Policy: overlap.SplitSRPT{}}}, nil
	case "srpt":
		return scheduler.Foreseeing{Policy: scheduler.Within{Policy: overlap.SRPT{}}}, nil
	case "hmhs":
		return scheduler.Within{Policy: hmhs.Policy{}}, nil
	}
	return nil, fmt.Errorf("scheduler %q: want one of %s", name, strings.Join(Names(), ", "))
}

// Needs is what of a Snapshot a policy looks at beside its Jobs.
type Needs struct {
	Trackers  bool // and Measured
	Later     bool // and Flows
	Transfers bool // and Bandwidth
	Pools     bool // with their bounds; else each job has its part of these
	Early     bool // reduces count among Jobs once the configured part of their maps has ended
}

// NeedsOf says what a policy looks at. One that is not known is shown everything,
// and no pools.
func NeedsOf(name string) Needs {
	switch name {
	case "fair":
		return Needs{}
	case "fifo", "flex":
		return Needs{Pools: true}
	case "flowflex":
		return Needs{Later: true, Pools: true, Early: true}
	case "maxsrpt", "splitsrpt", "srpt":
		return Needs{Transfers: true, Pools: true}
	case "hmhs":
		return Needs{Trackers: true, Later: true, Pools: true}
	}
	return Needs{Trackers: true, Later: true, Transfers: true}
}

// Heeds is which of a job's terms a policy looks at.
type Heeds struct{ Priority, Weight, Deadline, SLA bool }

// HeedsOf says what a policy looks at under a metric. One that is not known heeds all.
func HeedsOf(name string, m scheduler.Metric) Heeds {
	switch name {
	case "fifo":
		return Heeds{Priority: true}
	case "fair":
		return Heeds{Priority: true, Weight: true}
	case "flex", "flowflex":
		return Heeds{
			Priority: m.Weighted, Weight: m.Weighted, SLA: m.Penalty == scheduler.SLA,
			Deadline: m.Penalty == scheduler.Tardy || m.Penalty == scheduler.Tardiness || m.Penalty == scheduler.Lateness,
		}
	case "maxsrpt", "splitsrpt", "srpt", "hmhs":
		return Heeds{}
	}
	return Heeds{Priority: true, Weight: true, Deadline: true, SLA: true}
}
