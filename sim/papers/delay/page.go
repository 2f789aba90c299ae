package delay

import (
	_ "embed"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/template"

	"github.com/quernmr/quern/sim/papers"
)

//go:embed page.md.tmpl
var pageText string

// WritePage writes the page about the report; plots is the folder of the plots.
func WritePage(w io.Writer, r *papers.Report, plots string) error {
	p := page{r}
	return r.WritePage(w, pageText, plots, template.FuncMap{
		"table": p.table, "published": p.published, "verdict": r.Verdict, "worst": p.worst,
	}, nil)
}

type page struct{ r *papers.Report }

// value returns a number of the report; 0 if it is missing.
func (p page) value(figure, point, policy, statistic string) float64 {
	if x := p.r.Find(figure, point, policy, statistic).Value; x != nil {
		return *x
	}
	return 0
}

// table has a statistic of a figure's points with names that begin with prefix, with one column per
// policy. Numbers outside their band are marked.
func (p page) table(figure, prefix, statistic string) string {
	var columns []string
	for _, policy := range policies() {
		for _, row := range p.r.Rows {
			if row.Figure == figure && row.Statistic == statistic && row.Policy == policy.name {
				columns = append(columns, policy.name)
				break
			}
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "| | %s |\n|---|%s\n", strings.Join(columns, " | "), strings.Repeat("---|", len(columns)))
	for _, point := range p.r.Points(figure) {
		rest, ok := strings.CutPrefix(point, prefix)
		if !ok {
			continue
		}
		cells := []string{strings.TrimSpace(rest)}
		for _, column := range columns {
			cell, row := "–", p.r.Find(figure, point, column, statistic)
			if row.Value != nil {
				cell = fmt.Sprintf("%.2f", *row.Value) + row.Mark()
			}
			cells = append(cells, cell)
		}
		fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | "))
	}
	return b.String()
}

// published has the ratios of figure 3: one row per mix, one column per cost of remote reads.
func (p page) published(policy string) string {
	var mixes, costs []string
	for _, point := range p.r.Points(figTPCH) {
		mix, cost, _ := strings.Cut(point, " remote=")
		if !slices.Contains(mixes, mix) {
			mixes = append(mixes, mix)
		}
		if !slices.Contains(costs, cost) {
			costs = append(costs, cost)
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "| %s | %s |\n|---|%s\n", policy, strings.Join(costs, " | "), strings.Repeat("---|", len(costs)))
	for _, mix := range mixes {
		cells := []string{mix}
		for _, cost := range costs {
			x := p.value(figTPCH, mix+" remote="+cost, policy, "to_fixed_printed_by_query")
			cells = append(cells, fmt.Sprintf("%.2f", x))
		}
		fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | "))
	}
	return b.String()
}

// worst returns the largest percentage by which a policy is behind the best of none and fixed,
// and the point.
func (p page) worst(policy string) string {
	worst, where := 0.0, "nowhere"
	for _, figure := range []string{figSort, figTPCH} {
		for _, point := range p.r.Points(figure) {
			x := p.value(figure, point, policy, "mean_seconds")
			a := p.value(figure, point, none, "mean_seconds")
			b := p.value(figure, point, fixed, "mean_seconds")
			c := p.value(figure, point, fixedPrinted, "mean_seconds")
			if behind := 100 * (x/min(a, b, c) - 1); behind > worst {
				worst, where = behind, point
			}
		}
	}
	return fmt.Sprintf("%.1f %% (%s)", worst, where)
}
