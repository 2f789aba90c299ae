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

// WritePage writes the page about the report; plots are found in that folder.
func WritePage(w io.Writer, r *papers.Report, plots string) error {
	p := page{r}
	t, err := template.New("page").Funcs(template.FuncMap{
		"table": p.table, "published": p.published, "verdict": p.verdict, "worst": p.worst,
	}).Parse(pageText)
	if err != nil {
		return fmt.Errorf("page: %w", err)
	}
	return t.Execute(w, map[string]any{"Plots": plots, "Seed": r.Options.Seed, "Experiments": r.Options.Experiments})
}

type page struct{ r *papers.Report }

// verdict says whether all figures lie in their bands.
func (p page) verdict() string {
	if missed := p.r.Missed(); len(missed) > 0 {
		return fmt.Sprintf("**%d figures lie outside their bands**; they are marked below.", len(missed))
	}
	return "Every figure that has a band lies in it."
}

// value is a number of the report; not ok if it has none.
func (p page) value(figure, point, policy, statistic string) (x float64, row papers.Row, ok bool) {
	i := slices.IndexFunc(p.r.Rows, func(r papers.Row) bool {
		return r.Figure == figure && r.Point == point && r.Policy == policy && r.Statistic == statistic
	})
	if i < 0 || p.r.Rows[i].Value == nil {
		return 0, row, false
	}
	return *p.r.Rows[i].Value, p.r.Rows[i], true
}

func (p page) points(figure, prefix string) []string {
	var points []string
	for _, row := range p.r.Rows {
		if row.Figure == figure && strings.HasPrefix(row.Point, prefix) && !slices.Contains(points, row.Point) {
			points = append(points, row.Point)
		}
	}
	return points
}

// table is a statistic of a figure's points of that prefix, a policy a column. Numbers
// that missed their band are marked.
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
	for _, point := range p.points(figure, prefix) {
		cells := []string{strings.TrimSpace(strings.TrimPrefix(point, prefix))}
		for _, column := range columns {
			x, row, ok := p.value(figure, point, column, statistic)
			cell := "–"
			if ok {
				cell = fmt.Sprintf("%.2f", x)
			}
			if _, within := row.Within(); ok && !within {
				cell += " **missed**"
			}
			cells = append(cells, cell)
		}
		fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | "))
	}
	return b.String()
}

// published is figure 3's ratios: rows are mixes, columns what reading remotely costs.
func (p page) published(policy string) string {
	var mixes, costs []string
	for _, point := range p.points(figTPCH, "") {
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
			x, _, _ := p.value(figTPCH, mix+" remote="+cost, policy, "to_fixed_printed_by_query")
			cells = append(cells, fmt.Sprintf("%.2f", x))
		}
		fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | "))
	}
	return b.String()
}

// worst is the largest share by which a policy is behind the best of none and fixed, in
// per cent, and where.
func (p page) worst(policy string) string {
	most, where := 0.0, "nowhere"
	for _, figure := range []string{figSort, figTPCH} {
		for _, point := range p.points(figure, "") {
			x, _, _ := p.value(figure, point, policy, "mean_seconds")
			a, _, _ := p.value(figure, point, none, "mean_seconds")
			b, _, _ := p.value(figure, point, fixed, "mean_seconds")
			c, _, _ := p.value(figure, point, fixedPrinted, "mean_seconds")
			if behind := 100 * (x/min(a, b, c) - 1); behind > most {
				most, where = behind, point
			}
		}
	}
	return fmt.Sprintf("%.1f %% (%s)", most, where)
}
