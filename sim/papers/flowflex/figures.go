package flowflex

import (
	"github.com/quernmr/quern/scheduler"
	"github.com/quernmr/quern/sim/papers"
)

// series returns the ratios of one key over all experiments.
func series(results []outcome, k key) []float64 {
	values := make([]float64, len(results))
	for i, r := range results {
		values[i] = r[k]
	}
	return values
}

// row returns a number without a band.
func row(figure string, m scheduler.Metric, policy, statistic string, value float64) papers.Row {
	return papers.Row{
		Paper: "flowflex", Figure: figure, Point: m.String(),
		Policy: policy, Statistic: statistic, Value: papers.Num(value),
	}
}

func addFigures(report *papers.Report, results []outcome) {
	for _, m := range sums() {
		addMetric(report, results, figureSums, m)
	}
	for _, m := range maxima() {
		addMetric(report, results, figureMaxima, m)
	}
	for _, m := range append(sums(), maxima()...) {
		for _, v := range variants() {
			report.Rows = append(report.Rows,
				row(figureVariants, m, v.name, "avg_ratio", papers.Mean(series(results, key{m, v.name, raisedBound}))))
		}
	}
	addCharts(report, results, figureSums, sums(), "Minisum: cost against the raised bound")
	addCharts(report, results, figureMaxima, maxima(), "Minimax: cost against the raised bound")
	addVariantCharts(report, results)
}

// addMetric adds the columns of one metric in Figure 10 or 11. Averages of fewer experiments
// than the paper's have no band.
func addMetric(report *papers.Report, results []outcome, figure string, m scheduler.Metric) {
	for _, policy := range policies() {
		ratios := series(results, key{m, policy, raisedBound})
		average := row(figure, m, policy, "avg_ratio", papers.Mean(ratios))
		if policy == policyFlowFlex && len(results) >= defaultExperiments {
			average.High = papers.Num(high(m))
		}
		if policy == policyFlowFlex && m.Aggregate == scheduler.Max {
			average.Published = papers.Num(publishedMaxima)
		}
		report.Rows = append(report.Rows, average, row(figure, m, policy, "worst_ratio", papers.Largest(ratios)))
		plain := series(results, key{m, policy, plainBound})
		report.Rows = append(report.Rows,
			row(figure, m, policy, "avg_ratio_plain_bound", papers.Mean(plain)),
			row(figure, m, policy, "median_ratio_plain_bound", papers.Quantile(plain, 0.5)))
		if m.Aggregate == scheduler.Sum {
			report.Rows = append(report.Rows,
				row(figure, m, policy, "avg_ratio_flow_bound", papers.Mean(series(results, key{m, policy, minCostBound}))))
		}
	}
}

// high returns the upper end of a metric's band.
func high(m scheduler.Metric) float64 {
	if m.Aggregate == scheduler.Max {
		return highMaxima
	}
	return highSums
}

// addReading adds FlowFlex's figures under another reading of the sampling.
func addReading(report *papers.Report, rd reading, results []outcome) {
	for _, m := range append(sums(), maxima()...) {
		ratios := series(results, key{m, policyFlowFlex, raisedBound})
		plain := series(results, key{m, policyFlowFlex, plainBound})
		report.Rows = append(report.Rows,
			row(figureReadings, m, rd.name, "avg_ratio", papers.Mean(ratios)),
			row(figureReadings, m, rd.name, "worst_ratio", papers.Largest(ratios)),
			row(figureReadings, m, rd.name, "avg_ratio_plain_bound", papers.Mean(plain)))
	}
}

// barsEnd is the multiple of the bound at which bars end.
const barsEnd = 6

func addCharts(report *papers.Report, results []outcome, figure string, metrics []scheduler.Metric, title string) {
	for _, s := range []struct {
		name      string
		statistic func([]float64) float64
	}{{"average", papers.Mean}, {"worst", papers.Largest}} {
		chart := papers.Chart{
			Name: "flowflex-" + figure + "-" + s.name, Title: title + ", " + s.name,
			Y: "(cost + 1) / (bound + 1)", Top: barsEnd,
		}
		for _, m := range metrics {
			chart.Groups = append(chart.Groups, short(m))
		}
		for _, policy := range policies() {
			bars := papers.Series{Name: policy}
			for _, m := range metrics {
				bars.Y = append(bars.Y, s.statistic(series(results, key{m, policy, raisedBound})))
			}
			chart.Series = append(chart.Series, bars)
		}
		report.Charts = append(report.Charts, chart)
	}
}

func addVariantCharts(report *papers.Report, results []outcome) {
	for _, metrics := range [][]scheduler.Metric{sums(), maxima()} {
		figure := figureSums
		if metrics[0].Aggregate == scheduler.Max {
			figure = figureMaxima
		}
		chart := papers.Chart{
			Name: "flowflex-" + figureVariants + "-" + figure, Title: "What the parts of FlowFlex do, " + figure + ", average",
			Y: "(cost + 1) / (bound + 1)", Top: 2,
		}
		for _, m := range metrics {
			chart.Groups = append(chart.Groups, short(m))
		}
		for _, v := range append(variants(), full()) {
			bars := papers.Series{Name: v.name}
			for _, m := range metrics {
				bars.Y = append(bars.Y, papers.Mean(series(results, key{m, v.name, raisedBound})))
			}
			chart.Series = append(chart.Series, bars)
		}
		report.Charts = append(report.Charts, chart)
	}
}

// short returns a metric's name below a bar.
func short(m scheduler.Metric) string {
	name := m.Penalty.String()
	if m.Weighted {
		return "weighted\n" + name
	}
	return name
}
