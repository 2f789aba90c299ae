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

// Policy finds a policy by its name. All say when phases should end.
func Policy(name string) (scheduler.Policy, error) {
	switch name {
	case "fifo":
		return scheduler.Foreseeing{Policy: scheduler.FIFO{}}, nil
	case "fair":
		return scheduler.Foreseeing{Policy: scheduler.Fair{}}, nil
	case "flex":
		return flex.Policy{}, nil
	case "flowflex":
		return flowflex.Policy{}, nil
	case "maxsrpt":
		return scheduler.Foreseeing{Policy: overlap.MaxSRPT{}}, nil
	case "splitsrpt":
		return scheduler.Foreseeing{Policy: overlap.SplitSRPT{}}, nil
	case "srpt":
		return scheduler.Foreseeing{Policy: overlap.SRPT{}}, nil
	case "hmhs":
		return hmhs.Policy{}, nil
	}
	return nil, fmt.Errorf("scheduler %q: want one of %s", name, strings.Join(Names(), ", "))
}

// Needs is what of a Snapshot a policy looks at beside its Jobs.
type Needs struct {
	Trackers  bool // and Measured
	Later     bool // and Flows
	Transfers bool // and Bandwidth
	Early     bool // reduces count among Jobs once the configured part of their maps has ended
}

// NeedsOf says what a policy looks at. One that is not known is shown everything.
func NeedsOf(name string) Needs {
	switch name {
	case "fifo", "fair", "flex":
		return Needs{}
	case "flowflex":
		return Needs{Later: true, Early: true}
	case "maxsrpt", "splitsrpt", "srpt":
		return Needs{Transfers: true}
	case "hmhs":
		return Needs{Trackers: true, Later: true}
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
