// Package delay reproduces the experiments of "The Misbelief in Delay Scheduling" (Dynamic
// Delay Scheduling) by simulation. It has a sort with data on half of the nodes, and the
// queries of TPC-H under fair sharing. The delay rules, in package locality, also run in the
// job tracker. Sections, figures and Algorithm 1 are the paper's.
//
// The paper measured on clusters and does not give the cost of remote reads, so simulations
// vary it. workload.go has our choices for other gaps, and the tables that queries scan. Work
// after the scans is omitted, because it is the same for every rule. The engine is in
// cluster.go: nodes with slots, and one task for each block. The job with the fewest running
// tasks comes first; a job is one scan of a query.
package delay

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/quernmr/quern/locality"
	"github.com/quernmr/quern/sim/papers"
)

// Figures by name.
const (
	figSort  = "2-sort"
	figTPCH  = "3-tpch"
	figQuery = "3-queries"
	figBusy  = "busy-host"
)

// Policies by name.
const (
	none         = "none"
	fixedPrinted = "fixed=3s, as printed"
	fixed        = "fixed=3s"
	paper        = "paper, as printed"
	paperCounted = "paper"
	dynamic      = "dynamic"
	withHistory  = "dynamic, with history"
)

// policies lists the policies in the order of the tables. Policies "as printed" restart waits at
// every launch; the others count waits as package locality does.
func policies() []policy {
	three := locality.Rule{Kind: locality.Fixed, Delay: 3 * time.Second}
	return []policy{
		{name: none},
		{name: fixedPrinted, rule: three, asPrinted: true},
		{name: fixed, rule: three},
		{name: paper, rule: locality.Rule{Kind: locality.Paper}, asPrinted: true},
		{name: paperCounted, rule: locality.Rule{Kind: locality.Paper}},
		{name: dynamic, rule: locality.Rule{Kind: locality.Dynamic}},
		{name: withHistory, rule: locality.Rule{Kind: locality.Dynamic}, history: true},
	}
}

// experiments is the default for each point, sortFactor a factor for the sort. The sort is one
// job of few tasks: with expensive remote reads, experiments vary by a tenth.
const (
	experiments = 20
	sortFactor  = 15
)

// remoteCosts lists extra seconds of remote block reads, from a fast network to a very slow one.
func remoteCosts() []float64 { return []float64{0.25, 0.5, 1, 2, 4, 6, 8} }

// Simulate runs 20 experiments a point by default, and 15 times as many for the sort.
func Simulate(ctx context.Context, o papers.Options) (*papers.Report, error) {
	if o.Experiments == 0 {
		o.Experiments = experiments
	}
	s := &simulation{ctx, o, &papers.Report{Paper: "delay", Options: o}, remoteCosts()}
	return s.report, papers.RunFigures(s.sort, s.tpch, s.queries, s.busy)
}

type simulation struct {
	ctx         context.Context
	o           papers.Options
	report      *papers.Report
	remoteCosts []float64
}

// outcome is an experiment under every policy.
type outcome struct {
	responses   [][]float64 // by policy and query: seconds from arrival to the end of the last scan
	utilisation []float64   // by policy: fraction of all slot-time spent in tasks until the end
}

// experiments runs a workload under every policy, n times. Points with the same stream have the
// same random numbers, so that only the workload differs. History comes from another drawing of
// the workload, run under none.
func (s *simulation) experiments(n int, what, stream string, make func(r *rand.Rand) *workload) ([]outcome, error) {
	draw := func(i int) *workload {
		w := make(papers.Rand(s.o.Seed, stream, i))
		w.seed = func(name string) *rand.Rand { return papers.Rand(s.o.Seed, stream+" "+name, i) }
		return w
	}
	return papers.Run(s.ctx, s.o, "delay "+what, n, func(i int) (o outcome, err error) {
		history := run(draw(n+i), policy{name: none}, measurements{}).measured
		w := draw(i)
		for _, p := range policies() {
			known := measurements{}
			if p.history {
				known = history
			}
			c := run(w, p, known)
			o.responses = append(o.responses, c.responses(w))
			slots := time.Duration(w.nodes * w.slots)
			o.utilisation = append(o.utilisation, c.busy.Seconds()/(slots*c.now).Seconds())
		}
		return o, nil
	})
}

// responses returns each query's seconds from arrival to end.
func (c *cluster) responses(w *workload) []float64 {
	all := make([]float64, w.queries)
	for _, s := range w.specs {
		all[s.query] = (c.queryEnds[s.query] - s.arrives).Seconds()
	}
	return all
}

// means returns by policy the mean response of all queries and experiments.
func means(all []outcome) map[string]float64 {
	m := make(map[string]float64)
	for k, p := range policies() {
		var values []float64
		for _, o := range all {
			values = append(values, papers.Mean(o.responses[k]))
		}
		m[p.name] = papers.Mean(values)
	}
	return m
}

// queryMeans returns by policy and query the mean response of all experiments.
func queryMeans(all []outcome) map[string][]float64 {
	m := make(map[string][]float64)
	for k, p := range policies() {
		for q := range all[0].responses[k] {
			var values []float64
			for _, o := range all {
				values = append(values, o.responses[k][q])
			}
			m[p.name] = append(m[p.name], papers.Mean(values))
		}
	}
	return m
}
