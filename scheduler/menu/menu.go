// Package menu maps the names of policies, as in the command line, the log and the API, to a
// [scheduler.Policy].
package menu

import (
	"fmt"
	"strings"

	"github.com/quernmr/quern/internal/spelling"
	"github.com/quernmr/quern/scheduler"
	"github.com/quernmr/quern/scheduler/flex"
	"github.com/quernmr/quern/scheduler/flowflex"
	"github.com/quernmr/quern/scheduler/hmhs"
	"github.com/quernmr/quern/scheduler/overlap"
)

// entry describes a policy.
type entry struct {
	name   string
	policy scheduler.Policy
	needs  Needs
	uses   func(scheduler.Metric) Uses
	later  scheduler.Later
}

// entries lists the policies in the order in which users see them. A new policy is one line
// here. Each policy keeps the limits of pools and forecasts ends of phases; [poolLimited] and
// [forecasting] wrap those that do not.
var entries = []entry{
	{"fifo", forecasting(poolLimited(scheduler.FIFO{Minima: true})), Needs{Pools: true}, always(Uses{Priority: true}), scheduler.LaterWait},
	{"fair", forecasting(scheduler.Fair{}), Needs{Shares: true}, always(Uses{Priority: true, Weight: true}), scheduler.LaterShare},
	{"flex", poolLimited(flex.Policy{}), Needs{Pools: true}, ofMetric, scheduler.LaterShorter},
	{"flowflex", poolLimited(flowflex.Policy{}), Needs{Later: true, Pools: true, Early: true}, ofMetric, scheduler.LaterShorter},
	{"maxsrpt", forecasting(poolLimited(overlap.MaxSRPT{})), Needs{Transfers: true, Pools: true}, always(Uses{}), scheduler.LaterShorter},
	{"splitsrpt", forecasting(poolLimited(overlap.SplitSRPT{})), Needs{Transfers: true, Pools: true}, always(Uses{}), scheduler.LaterShorter},
	{"srpt", forecasting(poolLimited(overlap.SRPT{})), Needs{Transfers: true, Pools: true}, always(Uses{}), scheduler.LaterShorter},
	{"hmhs", poolLimited(hmhs.Policy{}), Needs{Trackers: true, Later: true, Pools: true}, always(Uses{}), scheduler.LaterShare},
}

func poolLimited(p scheduler.Policy) scheduler.Policy { return scheduler.PoolLimited{Policy: p} }
func forecasting(p scheduler.Policy) scheduler.Policy { return scheduler.Forecasting{Policy: p} }

// Needs says which fields of a Snapshot a policy reads besides its Jobs.
type Needs struct {
	Trackers  bool // and Measured
	Later     bool // and Flows
	Transfers bool // and Bandwidth
	Pools     bool // bounds of pools; without it Min and Max of a job have its part of them
	Shares    bool // it divides slots by shares: pools below their fair share get the next slots
	Early     bool // a reduce phase is in Jobs once the configured part of its maps has ended
}

// Uses says which job settings a policy uses.
type Uses struct{ Priority, Weight, Deadline, SLA bool }

// always is for policies that use the same settings under every metric.
func always(uses Uses) func(scheduler.Metric) Uses {
	return func(scheduler.Metric) Uses { return uses }
}

// ofMetric is for policies that use only the settings from which the metric is computed.
func ofMetric(m scheduler.Metric) Uses {
	return Uses{
		Priority: m.Weighted, Weight: m.Weighted, SLA: m.Penalty == scheduler.SLA,
		Deadline: m.Penalty == scheduler.Tardy || m.Penalty == scheduler.Tardiness || m.Penalty == scheduler.Lateness,
	}
}

// LaterOf says which slots a policy gives to later jobs.
func LaterOf(name string) scheduler.Later {
	if e := find(name); e != nil {
		return e.later
	}
	return scheduler.LaterShare
}

// find returns the entry of that name, or nil.
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
	return nil, fmt.Errorf("scheduler %q: want one of %s%s", name, strings.Join(Names(), ", "), spelling.DidYouMean("", name, Names()))
}

// NeedsOf returns a policy's needs. An unknown policy gets every field but Pools.
func NeedsOf(name string) Needs {
	if e := find(name); e != nil {
		return e.needs
	}
	return Needs{Trackers: true, Later: true, Transfers: true}
}

// UsesOf returns the job settings that a policy uses under a metric. An unknown policy counts
// as using all.
func UsesOf(name string, m scheduler.Metric) Uses {
	if e := find(name); e != nil {
		return e.uses(m)
	}
	return Uses{Priority: true, Weight: true, Deadline: true, SLA: true}
}
