package flowflex

import (
	_ "embed"
	"fmt"
	"io"
	"strings"
	"text/template"

	"github.com/quernmr/quern/scheduler"
	"github.com/quernmr/quern/sim/papers"
)

//go:embed page.md.tmpl
var pageText string

// WritePage writes the page about the report; plots is the folder of the plots.
func WritePage(w io.Writer, r *papers.Report, plots string) error {
	f := figures{r}
	return r.WritePage(w, pageText, plots, template.FuncMap{
		"ratios":   f.ratios,
		"plain":    f.plain,
		"variants": f.variants,
		"readings": f.readings,
		"worstSet": f.worstSet,
	}, nil)
}

// figures makes tables of a report's rows, one metric a line.
type figures struct{ report *papers.Report }

func (f figures) row(figure string, m scheduler.Metric, policy, statistic string) papers.Row {
	return f.report.Find(figure, m.String(), policy, statistic)
}

func (f figures) number(figure string, m scheduler.Metric, policy, statistic string) string {
	if v := f.row(figure, m, policy, statistic).Value; v != nil {
		return fmt.Sprintf("%.2f", *v)
	}
	return "–"
}

// pair returns average and worst as text.
func (f figures) pair(figure string, m scheduler.Metric, policy string) string {
	return f.number(figure, m, policy, "avg_ratio") + " / " + f.number(figure, m, policy, "worst_ratio")
}

// ratios returns the table of Figure 10 or 11 against the raised bound.
func (f figures) ratios(figure string) string {
	head := []string{"metric", "FlowFlex", "to reach", "", "FAIR", "FIFO"}
	var b strings.Builder
	line(&b, head)
	line(&b, rule(head))
	for _, m := range metricsOf(figure) {
		verdict := "–"
		if tested, ok := f.row(figure, m, policyFlowFlex, "avg_ratio").Within(); tested && ok {
			verdict = "ok"
		} else if tested {
			verdict = "**missed**"
		}
		line(&b, []string{
			m.String(), f.pair(figure, m, policyFlowFlex), fmt.Sprintf("≤ %.2f", high(m)), verdict,
			f.pair(figure, m, policyFair), f.pair(figure, m, policyFIFO),
		})
	}
	return b.String()
}

// plain returns the table of FlowFlex, FAIR and FIFO against the plain bounds.
func (f figures) plain(figure string) string {
	statistics, head := []string{"avg_ratio_plain_bound", "median_ratio_plain_bound"}, []string{"metric", "average", "median"}
	if figure == figureSums {
		statistics, head = append(statistics, "avg_ratio_flow_bound"), append(head, "average, flow bound")
	}
	var b strings.Builder
	line(&b, head)
	line(&b, rule(head))
	for _, m := range metricsOf(figure) {
		cells := []string{m.String()}
		for _, s := range statistics {
			var ratios []string
			for _, policy := range policies() {
				ratios = append(ratios, f.number(figure, m, policy, s))
			}
			cells = append(cells, strings.Join(ratios, ", "))
		}
		line(&b, cells)
	}
	return b.String()
}

func metricsOf(figure string) []scheduler.Metric {
	if figure == figureMaxima {
		return maxima()
	}
	return sums()
}

// variants returns the table of FlowFlex without some of its parts.
func (f figures) variants() string {
	head := []string{"metric"}
	for _, v := range variants() {
		head = append(head, v.name)
	}
	head = append(head, "all of it")
	var b strings.Builder
	line(&b, head)
	line(&b, rule(head))
	for _, m := range append(sums(), maxima()...) {
		cells := []string{m.String()}
		for _, v := range variants() {
			cells = append(cells, f.number(figureVariants, m, v.name, "avg_ratio"))
		}
		line(&b, append(cells, f.number(figureOf(m), m, policyFlowFlex, "avg_ratio")))
	}
	return b.String()
}

func figureOf(m scheduler.Metric) string {
	if m.Aggregate == scheduler.Max {
		return figureMaxima
	}
	return figureSums
}

// readings returns the table of FlowFlex under other readings.
func (f figures) readings() string {
	head := []string{"metric"}
	for _, rd := range otherReadings() {
		head = append(head, rd.name)
	}
	var b strings.Builder
	line(&b, head)
	line(&b, rule(head))
	for _, m := range append(sums(), maxima()...) {
		cells := []string{m.String()}
		for _, rd := range otherReadings() {
			cells = append(cells, f.pair(figureReadings, m, rd.name)+" / "+f.number(figureReadings, m, rd.name, "avg_ratio_plain_bound"))
		}
		line(&b, cells)
	}
	return b.String()
}

// worstSet returns the highest average of FlowFlex in a figure.
func (f figures) worstSet(figure string) string {
	var averages []float64
	for _, row := range f.report.Rows {
		if row.Figure == figure && row.Policy == policyFlowFlex && row.Statistic == "avg_ratio" && row.Value != nil {
			averages = append(averages, *row.Value)
		}
	}
	return fmt.Sprintf("%.2f", papers.Largest(averages))
}

func line(b *strings.Builder, cells []string) {
	b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
}

func rule(head []string) []string {
	cells := make([]string, len(head))
	for i := range cells {
		cells[i] = "---"
	}
	return cells
}
