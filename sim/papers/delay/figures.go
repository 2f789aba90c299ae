package delay

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/quernmr/quern/locality"
	"github.com/quernmr/quern/sim/papers"
)

// leastForBand is the number of experiments from which the bands apply.
const leastForBand = 10

// historyLimit bounds the time of the dynamic rule with history, divided by the better of none
// and fixed.
const historyLimit = 1.03

// add reports a number; a limit of 0 is none.
func (s *simulation) add(figure, point, policy, statistic string, value, published, low, high float64) {
	row := papers.Row{Paper: "delay", Figure: figure, Point: point, Policy: policy, Statistic: statistic, Value: papers.Num(value)}
	if published != 0 {
		row.Published = papers.Num(published)
	}
	if s.o.Experiments >= leastForBand {
		if low != 0 {
			row.Low = papers.Num(low)
		}
		if high != 0 {
			row.High = papers.Num(high)
		}
	}
	s.report.Rows = append(s.report.Rows, row)
}

// addPoint reports a point's mean responses. The band of the dynamic rule with history depends
// on none and both versions of fixed; high is the limit of the rule without history.
func (s *simulation) addPoint(figure, point string, m map[string]float64, high float64) {
	for _, p := range policies() {
		bound := 0.0
		switch p.name {
		case dynamic:
			bound = high
		case withHistory:
			bound = historyLimit * min(m[none], m[fixed], m[fixedPrinted])
		}
		s.add(figure, point, p.name, "mean_seconds", m[p.name], 0, 0, bound)
	}
}

func newSeries() []papers.Series {
	series := make([]papers.Series, len(policies()))
	for k, p := range policies() {
		series[k].Name = p.name
	}
	return series
}

func appendPoint(series []papers.Series, x float64, m map[string]float64) {
	for k := range series {
		series[k].X = append(series[k].X, x)
		series[k].Y = append(series[k].Y, m[series[k].Name])
	}
}

// sort is figure 2, with one wave and three, by the cost of remote reads. Without history the
// dynamic rule may lose its start value once, compared with none.
func (s *simulation) sort() error {
	for _, waves := range []int{1, 3} {
		series := newSeries()
		for _, cost := range s.remoteCosts {
			point := fmt.Sprintf("waves=%d remote=%vs", waves, cost)
			all, err := s.experiments(sortFactor*s.o.Experiments, "sort "+point, fmt.Sprintf("delay sort %d", waves), func(*rand.Rand) *workload {
				return sorting(waves, seconds(cost))
			})
			if err != nil {
				return err
			}
			m := means(all)
			high := 1.01 * (m[none] + locality.Start.Seconds())
			if waves > 1 {
				high = min(high, m[fixedPrinted])
			}
			s.addPoint(figSort, point, m, high)
			appendPoint(series, cost, m)
		}
		s.report.Charts = append(s.report.Charts, papers.Chart{
			Name: fmt.Sprintf("delay-%s-%d", figSort, waves), Title: fmt.Sprintf("Sort on 2 of 4 nodes, waves: %d (Fig. 2)", waves),
			X: "reading a block remotely takes longer, s", Y: "seconds", Series: series,
		})
	}
	return nil
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// published is figure 3's "roughly 10 % per query", dynamic against fixed.
const publishedRatio = 0.9

// tpch is the mix of figure 3: one and three replicas, queries alone and overlapping.
func (s *simulation) tpch() error {
	for _, replicas := range []int{1, 3} {
		for _, overlap := range []bool{false, true} {
			mix := fmt.Sprintf("replicas=%d %s", replicas, map[bool]string{false: "alone", true: "overlapping"}[overlap])
			series := newSeries()
			for _, cost := range s.remoteCosts {
				point := fmt.Sprintf("%s remote=%vs", mix, cost)
				all, err := s.experiments(s.o.Experiments, "tpch "+point, "delay tpch "+mix, func(r *rand.Rand) *workload {
					return tpch(replicas, overlap, seconds(cost), r)
				})
				if err != nil {
					return err
				}
				m := means(all)
				s.addPoint(figTPCH, point, m, 0)
				byQuery := queryMeans(all)
				for _, name := range []string{paper, dynamic, withHistory} {
					s.add(figTPCH, point, name, "to_fixed_printed_by_query", ratio(byQuery[name], byQuery[fixedPrinted]), publishedRatio, 0, 0)
				}
				appendPoint(series, cost, m)
			}
			s.report.Charts = append(s.report.Charts, papers.Chart{
				Name:  fmt.Sprintf("delay-%s-%d-%s", figTPCH, replicas, map[bool]string{false: "alone", true: "overlapping"}[overlap]),
				Title: "TPC-H, " + mix, X: "reading a block remotely takes longer, s", Y: "mean seconds a query",
				Top: highest(series), Series: series,
			})
		}
	}
	return nil
}

// highest returns an end of the Y axis for all policies but none, which may be several times
// higher.
func highest(series []papers.Series) float64 {
	top := 0.0
	for _, s := range series[1:] {
		top = max(top, papers.Largest(s.Y))
	}
	return 1.25 * top
}

// ratio returns the mean of a/b.
func ratio(a, b []float64) float64 {
	var all []float64
	for i := range a {
		all = append(all, a[i]/b[i])
	}
	return papers.Mean(all)
}

// queryCost is the extra seconds of a remote block read in the figure by query.
const queryCost = 1

// queries is figure 3 by query: one replica, each query alone.
func (s *simulation) queries() error {
	all, err := s.experiments(s.o.Experiments, "queries", "delay tpch replicas=1 alone", func(r *rand.Rand) *workload {
		return tpch(1, false, seconds(queryCost), r)
	})
	if err != nil {
		return err
	}
	byQuery := queryMeans(all)
	chart := papers.Chart{Name: "delay-" + figQuery, Title: "TPC-H by query, one replica (Fig. 3)", Y: "seconds"}
	for _, q := range queries {
		chart.Groups = append(chart.Groups, q.name)
	}
	for _, name := range []string{none, fixedPrinted, paper, dynamic} {
		chart.Series = append(chart.Series, papers.Series{Name: name, Y: byQuery[name]})
		for i, q := range queries {
			s.add(figQuery, q.name, name, "mean_seconds", byQuery[name][i], 0, 0, 0)
		}
	}
	s.report.Charts = append(s.report.Charts, chart)
	return nil
}

// leastUtilisation is the utilisation that the default rule must reach on SPARK-18886.
const leastUtilisation = 0.9

// busy is SPARK-18886: the utilisation of slots until the end.
func (s *simulation) busy() error {
	all, err := s.experiments(s.o.Experiments, "busy", "delay busy", func(*rand.Rand) *workload { return busyHost() })
	if err != nil {
		return err
	}
	for k, p := range policies() {
		var values []float64
		for _, o := range all {
			values = append(values, o.utilisation[k])
		}
		low := 0.0
		if p.rule.Kind == locality.Dynamic {
			low = leastUtilisation
		}
		s.add(figBusy, "10 hosts", p.name, "utilisation", papers.Mean(values), 0, low, 0)
	}
	return nil
}
