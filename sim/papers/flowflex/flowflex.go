// Package flowflex reproduces the simulations of the FlowFlex paper (section 5.1, Figures 10
// and 11). It compares FlowFlex, FAIR and FIFO on random flows with lower bounds of the cost of
// any schedule.
//
// A ratio is (cost + 1) / (bound + 1), as in the paper, because bounds may be 0. FlowFlex is
// scheduler/flowflex as the job tracker runs it, plus the deadlines of the relaxation
// (relax.go). Its ready list is the engine: it packs a whole schedule for FlowFlex and FIFO.
// FAIR has an engine of its own, which shares slots (fair.go).
//
// The bands are for ratios to our raised bound (raised.go). The report also has ratios to the
// plain bounds, which know only critical paths and areas of whole flows. The plain bound is the
// integral bound for sums, and the paper's second bisection for maxima. For sums it also has
// ratios to the paper's bound, the value of the minimum-cost flow.
package flowflex

import (
	"context"
	"fmt"

	"github.com/quernmr/quern/scheduler"
	"github.com/quernmr/quern/scheduler/flowflex"
	"github.com/quernmr/quern/sim/papers"
)

// defaultExperiments is the paper's number for each metric.
const defaultExperiments = 25

// boundGrid is the number of evenly spaced points in time of the flow bound.
const boundGrid = 400

// Figures of the report.
const (
	figureSums     = "minisum"
	figureMaxima   = "minimax"
	figureVariants = "variants"
	figureReadings = "readings"
)

// The policies, in the order of the tables.
const (
	policyFlowFlex = "FlowFlex"
	policyFair     = "FAIR"
	policyFIFO     = "FIFO"
)

// The bands of the figures.
const (
	highSums        = 1.26
	highMaxima      = 1.20
	publishedMaxima = 1.26 // "within 1.26 of optimal on average" in all eight sets
)

// sums are the paper's nine metrics of Figure 10, maxima the eight of Figure 11.
func sums() []scheduler.Metric {
	return []scheduler.Metric{
		{Penalty: scheduler.Response},
		{Penalty: scheduler.Response, Weighted: true},
		{Penalty: scheduler.Stretch},
		{Penalty: scheduler.Tardy},
		{Penalty: scheduler.Tardy, Weighted: true},
		{Penalty: scheduler.Tardiness},
		{Penalty: scheduler.Tardiness, Weighted: true},
		{Penalty: scheduler.SLA},
		{Penalty: scheduler.SLA, Weighted: true},
	}
}

func maxima() []scheduler.Metric {
	var all []scheduler.Metric
	for _, m := range sums() {
		// The largest of unweighted tardy counts is 1 or 0: the paper omits it.
		if m.Penalty != scheduler.Tardy || m.Weighted {
			m.Aggregate = scheduler.Max
			all = append(all, m)
		}
	}
	return all
}

// variant is a way to run FlowFlex.
type variant struct {
	name    string
	relax   bool // sums try the deadlines of the relaxation
	options flowflex.Options
}

// full is FlowFlex with all its parts.
func full() variant { return variant{name: policyFlowFlex, relax: true} }

func variants() []variant {
	return []variant{
		{name: asPrinted},
		{"chains only", true, flowflex.Options{ChainsOnly: true, Effort: -1}},
		{"no local search", true, flowflex.Options{Effort: -1}},
		{name: "no flow problem"},
	}
}

// asPrinted is the variant with the paper's exact algorithm.
const asPrinted = "as printed"

// solve runs a variant with the deadlines of the relaxation.
func (v variant) solve(p flowflex.Problem, a scheduler.Aggregate, deadlines [][]float64) (*flowflex.Schedule, error) {
	if v.name == asPrinted {
		return printed(p, a)
	}
	v.options.Aggregate = a
	if v.relax {
		v.options.Deadlines = deadlines
	}
	return flowflex.Solve(p, v.options)
}

// Simulate runs the paper's experiments. Other experiments show the effects of FlowFlex's parts
// and of the paper's gaps.
func Simulate(ctx context.Context, o papers.Options) (*papers.Report, error) {
	if o.Experiments == 0 {
		o.Experiments = defaultExperiments
	}
	report := &papers.Report{Paper: "flowflex", Options: o}
	p := papers.NewProgress(o.Progress, "flowflex", o.Experiments*(1+len(otherReadings())))
	main, err := papers.Each(ctx, p, o.Experiments, func(i int) (outcome, error) {
		return experiment(chosenReading().workload(papers.Rand(o.Seed, "flows", i)), true)
	})
	if err != nil {
		return nil, err
	}
	addFigures(report, main)
	for _, rd := range otherReadings() {
		results, err := papers.Each(ctx, p, o.Experiments, func(i int) (outcome, error) {
			return experiment(rd.workload(papers.Rand(o.Seed, rd.name, i)), false)
		})
		if err != nil {
			return nil, err
		}
		addReading(report, rd, results)
	}
	return report, nil
}

// key names a series of ratios.
type key struct {
	metric scheduler.Metric
	policy string
	bound  boundKind
}

// boundKind is the bound that costs are divided by.
type boundKind int

const (
	raisedBound boundKind = iota
	plainBound
	minCostBound // the paper's flow bound, for sums
)

// outcome has an experiment's ratios.
type outcome map[key]float64

// experiment solves one workload for every metric. With all it also has FAIR, FIFO, the
// variants and the ratios to the flow bound.
func experiment(w workload, all bool) (outcome, error) {
	out := make(outcome)
	for _, m := range append(sums(), maxima()...) {
		p := w.problem(m)
		costs, err := solve(p, m, all)
		if err != nil {
			return nil, err
		}
		bounds, err := boundsOf(p, m, all)
		if err != nil {
			return nil, err
		}
		for policy, cost := range costs {
			for kind, bound := range bounds {
				out[key{m, policy, kind}] = (cost + 1) / (bound + 1)
			}
		}
	}
	return out, nil
}

// solve returns the cost of each variant of FlowFlex and, with all, of FAIR and FIFO.
func solve(p flowflex.Problem, m scheduler.Metric, all bool) (map[string]float64, error) {
	var deadlines [][]float64
	if m.Aggregate == scheduler.Sum {
		var err error
		if deadlines, err = relaxedDeadlines(p); err != nil {
			return nil, err
		}
	}
	costs := make(map[string]float64)
	compared := []variant{full()}
	if all {
		compared = append(compared, variants()...)
	}
	for _, v := range compared {
		s, err := v.solve(p, m.Aggregate, deadlines)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", v.name, err)
		}
		costs[v.name] = s.Cost
	}
	if !all {
		return costs, nil
	}
	fifo, err := flowflex.Pack(p, m.Aggregate, positions(len(p.Flows)), false)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", policyFIFO, err)
	}
	in, err := prepare(p)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", policyFair, err)
	}
	costs[policyFIFO], costs[policyFair] = fifo.Cost, in.cost(m.Aggregate, in.fair())
	return costs, nil
}

// cost returns the metric of these completion times.
func (in *instance) cost(a scheduler.Aggregate, ends []float64) float64 {
	costs := make([]scheduler.Cost, len(in.flows))
	for i := range in.flows {
		costs[i] = *in.flows[i].cost
	}
	return a.Combine(costs, ends)
}

// boundsOf returns the bounds of the metric, the flow bound only with all.
func boundsOf(p flowflex.Problem, m scheduler.Metric, all bool) (map[boundKind]float64, error) {
	bounds, plain := make(map[boundKind]float64), maxBound
	if m.Aggregate == scheduler.Sum {
		plain = integralBound
	}
	var err error
	if bounds[plainBound], err = plain(p); err != nil {
		return nil, err
	}
	if bounds[raisedBound], err = RaisedBound(p, m.Aggregate); err != nil {
		return nil, err
	}
	if all && m.Aggregate == scheduler.Sum {
		bounds[minCostBound], err = flowBound(p, boundGrid)
	}
	return bounds, err
}

func policies() []string { return []string{policyFlowFlex, policyFair, policyFIFO} }
