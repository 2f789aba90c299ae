package overlap

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"runtime"
	"strings"
	"text/template"

	"github.com/quernmr/quern/sim/papers"
)

//go:embed page.md.tmpl
var pageText string

// WritePage writes the page about the report, and measures speeds for it; plots is the folder
// of the plots.
func WritePage(w io.Writer, r *papers.Report, plots string) error {
	return writePage(w, r, plots, unitArrivals/5)
}

// writePage measures speeds with the given number of arrivals.
func writePage(w io.Writer, r *papers.Report, plots string, arrivals int) error {
	verdict := "Every figure with a band is in it."
	if missed := r.Missed(); len(missed) > 0 {
		verdict = fmt.Sprintf("**%d figures are outside their bands**; they are marked.", len(missed))
	}
	tables := template.FuncMap{
		"means":    func() string { return means(r) },
		"sizes":    func(load string) string { return sizes(r, load) },
		"shares":   func() string { return shares(r) },
		"loads":    func() string { return loads(r) },
		"readings": func() string { return markdown(r, figReadings) },
		"speeds":   func() string { return speeds(r.Options.Seed, arrivals) },
	}
	return r.WritePage(w, pageText, plots, tables, map[string]any{
		"Seeds": seeds, "Arrivals": millions(r.Options.Experiments * unitArrivals), "Short": millions(unitArrivals / 5), "Verdict": verdict, "Go": runtime.Version(),
	})
}

func millions(n int) string { return fmt.Sprintf("%d million", n/1_000_000) }

func markdown(r *papers.Report, figure string) string {
	var b strings.Builder
	_ = r.WriteMarkdown(&b, figure) // a Builder does not fail
	return b.String()
}

func number(x *float64, digits int) string {
	if x == nil {
		return "–"
	}
	return fmt.Sprintf("%.*f", digits, *x)
}

// marked returns a row's value, with a mark if it is outside its band.
func marked(row papers.Row, digits int) string { return number(row.Value, digits) + row.Mark() }

func table(b *strings.Builder, head ...string) {
	line(b, head...)
	b.WriteString(strings.Repeat("|---", len(head)) + "|\n")
}

func line(b *strings.Builder, cells ...string) {
	b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
}

func means(r *papers.Report) string {
	var b strings.Builder
	table(&b, "load", "policy", "mean ± deviation over seeds", "published", "band")
	for _, point := range []string{"load=0.75", "load=0.90"} {
		for _, policy := range []string{lpsName, maxSRPTName, splitName, srptName, boundName} {
			row := r.Find(figMean, point, policy, "mean")
			deviation := r.Find(figMean, point, policy, "deviation over seeds")
			line(&b, point[len("load="):], policy, marked(row, 3)+" ± "+number(deviation.Value, 3), number(row.Published, 2),
				number(row.Low, 2)+" – "+number(row.High, 2))
		}
	}
	return b.String()
}

func sizes(r *papers.Report, load string) string {
	var b strings.Builder
	table(&b, "size", "k-LPS", "MaxSRPT / k-LPS", "SplitSRPT / k-LPS", "SRPT / k-LPS")
	for _, row := range r.Rows {
		size, ok := strings.CutPrefix(row.Point, "load="+load+" size")
		if !ok || row.Figure != figSizes || row.Policy != lpsName {
			continue
		}
		cells := []string{strings.TrimPrefix(size, "="), number(row.Value, 2)}
		for _, policy := range []string{maxSRPTName, splitName, srptName} {
			cells = append(cells, marked(r.Find(figSizes, row.Point, policy, "slowdown over k-LPS's"), 3))
		}
		line(&b, cells...)
	}
	return b.String()
}

func shares(r *papers.Report) string {
	var b strings.Builder
	table(&b, "load", "policy", "jobs better off, %", "at half or less, %", "of 400 classes worse off")
	for _, point := range []string{"load=0.75", "load=0.90"} {
		for _, policy := range []string{maxSRPTName, splitName, srptName} {
			percent := func(statistic string) string {
				row := r.Find(figSizes, point, policy, statistic)
				if row.Value == nil {
					return "–"
				}
				value := 100 * *row.Value
				return number(&value, 1)
			}
			line(&b, point[len("load="):], policy, percent("jobs in thin classes better off"),
				percent("jobs in thin classes with half k-LPS's or less"),
				number(r.Find(figSizes, point, policy, "thin classes worse off, of 400").Value, 0))
		}
	}
	return b.String()
}

func loads(r *papers.Report) string {
	var b strings.Builder
	table(&b, "load", "k-LPS", "MaxSRPT", "SplitSRPT", "SRPT")
	for _, row := range r.Rows {
		if row.Figure != figLoads || row.Policy != lpsName {
			continue
		}
		cells := []string{strings.TrimPrefix(row.Point, "load=")}
		for _, policy := range []string{lpsName, maxSRPTName, splitName, srptName} {
			cells = append(cells, number(r.Find(figLoads, row.Point, policy, "mean over the bound's").Value, 2))
		}
		line(&b, cells...)
	}
	return b.String()
}

// speeds measures the engines, the best of three.
func speeds(seed uint64, arrivals int) string {
	var b strings.Builder
	table(&b, "policy", "million arrivals a second, load 0.75", "load 0.90", "to reach at 0.75")
	for _, p := range []struct{ policy, goal string }{
		{maxSRPTName, "4"}, {splitName, "2.5"}, {lpsName, "1.5"}, {srptName, "–"}, {boundName, "–"},
	} {
		cells := []string{p.policy}
		for _, load := range []float64{lowLoad, highLoad} {
			best := 0.0
			for range 3 {
				from := &source{workload: paperWorkload(load), rand: papers.Rand(seed, "overlap", 0)}
				e := newEngine(p.policy)
				began := papers.ProcessorTime()
				run(context.Background(), e, from, arrivals)
				if took := (papers.ProcessorTime() - began).Seconds(); took > 0 {
					best = max(best, float64(arrivals)/took/1e6)
				}
			}
			cells = append(cells, fmt.Sprintf("%.1f", best))
		}
		line(&b, append(cells, p.goal)...)
	}
	return b.String()
}
