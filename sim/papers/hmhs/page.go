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

// WritePage writes the page about the report, and measures run times for it; plots is the
// folder of the plots.
func WritePage(w io.Writer, r *papers.Report, plots string) error {
	p := page{r}
	return r.WritePage(w, pageText, plots, template.FuncMap{"gains": p.gains, "verdict": r.Verdict, "times": p.times}, nil)
}

type page struct{ r *papers.Report }

// gains returns a figure's table: one row per point and one column per heuristic, with mean
// [least, greatest] and the band.
func (p page) gains(figure string) string {
	var columns []string
	for _, row := range p.r.Rows {
		if row.Figure == figure && !slices.Contains(columns, row.Policy) {
			columns = append(columns, row.Policy)
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "| | %s |\n|---|%s\n", strings.Join(columns, " | "), strings.Repeat("---|", len(columns)))
	for _, point := range p.r.Points(figure) {
		cells := []string{point}
		for _, column := range columns {
			cells = append(cells, p.cell(figure, point, column))
		}
		fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | "))
	}
	return b.String()
}

func (p page) cell(figure, point, policy string) string {
	row := p.r.Find(figure, point, policy, "mean_gain")
	least := p.r.Find(figure, point, policy, "least_gain")
	greatest := p.r.Find(figure, point, policy, "greatest_gain")
	if row.Value == nil || least.Value == nil || greatest.Value == nil {
		return "–"
	}
	text := fmt.Sprintf("%.1f [%.0f, %.0f]", *row.Value, *least.Value, *greatest.Value)
	if tested, _ := row.Within(); tested {
		text += fmt.Sprintf(", band %.1f – %.1f", *row.Low, *row.High)
	}
	return text + row.Mark()
}

// times returns the table of run times of dispatching, the least of three.
func (p page) times() (string, error) {
	var b strings.Builder
	b.WriteString("| | maps | reduces | Min-Min, Pri and Dynamic-Min-Min, ms |\n|---|---|---|---|\n")
	for _, w := range workloads() {
		for _, jobs := range []int{100, 500} {
			batch := w.batch(jobs, cluster{}, papers.Rand(p.r.Options.Seed, "hmhs time "+w.name, jobs))
			best := time.Duration(math.MaxInt64)
			for range 3 {
				began := papers.ProcessorTime()
				if _, err := solve(batch, plainHMHS); err != nil {
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
