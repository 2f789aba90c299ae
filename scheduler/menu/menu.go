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

// entry is what the menu says of a policy.
type entry struct {
	name   string
	policy scheduler.Policy
	needs  Needs
	heeds  func(scheduler.Metric) Heeds
}

// entries is the menu, in the order in which users see it. A new policy is one line here.
// Each policy keeps the limits of pools and tells when phases should end: one that does
// not do so itself is wrapped, see [within] and [foreseeing].
var entries = []entry{
	{"fifo", foreseeing(within(scheduler.FIFO{Minima: true})), Needs{Pools: true}, always(Heeds{Priority: true})},
	{"fair", foreseeing(scheduler.Fair{}), Needs{}, always(Heeds{Priority: true, Weight: true})},
	{"flex", within(flex.Policy{}), Needs{Pools: true}, ofMetric},
	{"flowflex", within(flowflex.Policy{}), Needs{Later: true, Pools: true, Early: true}, ofMetric},
	{"maxsrpt", foreseeing(within(overlap.MaxSRPT{})), Needs{Transfers: true, Pools: true}, always(Heeds{})},
	{"splitsrpt", foreseeing(within(overlap.SplitSRPT{})), Needs{Transfers: true, Pools: true}, always(Heeds{})},
	{"srpt", foreseeing(within(overlap.SRPT{})), Needs{Transfers: true, Pools: true}, always(Heeds{})},
	{"hmhs", within(hmhs.Policy{}), Needs{Trackers: true, Later: true, Pools: true}, always(Heeds{})},
}

func within(p scheduler.Policy) scheduler.Policy     { return scheduler.Within{Policy: p} }
func foreseeing(p scheduler.Policy) scheduler.Policy { return scheduler.Foreseeing{Policy: p} }

// Needs is what of a Snapshot a policy looks at beside its Jobs.
type Needs struct {
	Trackers  bool // and Measured
	Later     bool // and Flows
	Transfers bool // and Bandwidth
	Pools     bool // with their bounds; else each job has its part of these
	Early     bool // reduces count among Jobs once the configured part of their maps has ended
}

// Heeds is which of a job's terms a policy looks at.
type Heeds struct{ Priority, Weight, Deadline, SLA bool }

// always is for policies that heed the same terms under every metric.
func always(h Heeds) func(scheduler.Metric) Heeds {
	return func(scheduler.Metric) Heeds { return h }
}

// ofMetric is for policies that heed the terms that the metric is computed from.
func ofMetric(m scheduler.Metric) Heeds {
	return Heeds{
		Priority: m.Weighted, Weight: m.Weighted, SLA: m.Penalty == scheduler.SLA,
		Deadline: m.Penalty == scheduler.Tardy || m.Penalty == scheduler.Tardiness || m.Penalty == scheduler.Lateness,
	}
}

// find is the entry of that name, nil if there is none.
func find(name string) *entry {
	for i := range entries {
		if entries[i].name == name {
			return &entries[i]
		}
	}
	return nil
}

// Names lists the policies.
func Names() []string {
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.name
	}
	return names
}

// Policy finds a policy by its name.
func Policy(name string) (scheduler.Policy, error) {
	if e := find(name); e != nil {
		return e.policy, nil
	}
	return nil, fmt.Errorf("scheduler %q: want one of %s", name, strings.Join(Names(), ", "))
}

// NeedsOf says what a policy looks at. One that is not known is shown everything,
// and no pools.
func NeedsOf(name string) Needs {
	if e := find(name); e != nil {
		return e.needs
	}
	return Needs{Trackers: true, Later: true, Transfers: true}
}

// HeedsOf says what a policy looks at under a metric. One that is not known heeds all.
func HeedsOf(name string, m scheduler.Metric) Heeds {
	if e := find(name); e != nil {
		return e.heeds(m)
	}
	return Heeds{Priority: true, Weight: true, Deadline: true, SLA: true}
}
