package hmhs

import (
	_ "embed"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/template"
	"time"

	"github.com/quernmr/quern/sim/papers"
)

//go:embed page.md.tmpl
var pageText string

// WritePage writes the page about the report, with run times measured while it is
// written; plots are found in that folder.
func WritePage(w io.Writer, r *papers.Report, plots string) error {
	p := page{r}
	t, err := template.New("page").Funcs(template.FuncMap{"gains": p.gains, "verdict": p.verdict, "times": p.times}).Parse(pageText)
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

func (p page) find(figure, point, policy, statistic string) (row papers.Row, ok bool) {
	i := slices.IndexFunc(p.r.Rows, func(r papers.Row) bool {
		return r.Figure == figure && r.Point == point && r.Policy == policy && r.Statistic == statistic
	})
	if i < 0 {
		return row, false
	}
	return p.r.Rows[i], true
}

// gains is a figure's table: a point a line, an other a column, as mean [least,
// greatest] and the band.
func (p page) gains(figure string) string {
	var points, columns []string
	for _, row := range p.r.Rows {
		if row.Figure != figure {
			continue
		}
		if !slices.Contains(points, row.Point) {
			points = append(points, row.Point)
		}
		if !slices.Contains(columns, row.Policy) {
			columns = append(columns, row.Policy)
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "| | %s |\n|---|%s\n", strings.Join(columns, " | "), strings.Repeat("---|", len(columns)))
	for _, point := range points {
		cells := []string{point}
		for _, column := range columns {
			cells = append(cells, p.cell(figure, point, column))
		}
		fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | "))
	}
	return b.String()
}

func (p page) cell(figure, point, policy string) string {
	row, ok := p.find(figure, point, policy, "mean_gain")
	least, _ := p.find(figure, point, policy, "least_gain")
	most, _ := p.find(figure, point, policy, "greatest_gain")
	if !ok || row.Value == nil || least.Value == nil || most.Value == nil {
		return "–"
	}
	text := fmt.Sprintf("%.1f [%.0f, %.0f]", *row.Value, *least.Value, *most.Value)
	if tested, ok := row.Within(); tested {
		text += fmt.Sprintf(", band %.1f – %.1f", *row.Low, *row.High)
		if !ok {
			text += " **missed**"
		}
	}
	return text
}

// times is the run times of dispatching, the least of three.
func (p page) times() (string, error) {
	var b strings.Builder
	b.WriteString("| | maps | reduces | Min-Min, Pri and Dynamic-Min-Min, ms |\n|---|---|---|---|\n")
	for _, w := range workloads() {
		for _, jobs := range []int{100, 500} {
			batch := w.batch(jobs, cluster{}, papers.Rand(p.r.Options.Seed, "hmhs time "+w.name, jobs))
			best := time.Duration(math.MaxInt64)
			for range 3 {
				began := papers.ProcessorTime()
				if _, err := solve(batch, full); err != nil {
					return "", err
				}
				best = min(best, papers.ProcessorTime()-began)
			}
			maps, reduces := 0, 0
			for _, j := range batch.Jobs {
				maps += j.Map.Tasks
				reduces += j.Reduce.Tasks
			}
			fmt.Fprintf(&b, "| %s | %d | %d | %.1f |\n", point(w, jobs), maps, reduces, 1000*best.Seconds())
		}
	}
	return b.String(), nil
}
