package flex

import (
	"bufio"
	_ "embed"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/quernmr/quern/scheduler"
	"github.com/quernmr/quern/scheduler/flex"
	"github.com/quernmr/quern/sim/papers"
)

// The text of the page, in its order.
var (
	//go:embed page/intro.md
	intro string
	//go:embed page/readings.md
	readings string
	//go:embed page/orderings.md
	orderings string
	//go:embed page/errors.md
	mistakes string
	//go:embed page/speed.md
	speed string
)

// WritePage writes the page about the report, and measures run times for it. plots is the
// folder of the plots, relative to the page.
func WritePage(w io.Writer, r *papers.Report, plots string) error {
	return writePage(w, r, plots, []int{10, 100, 1000, 10000})
}

// writePage measures run times with those numbers of jobs.
func writePage(w io.Writer, r *papers.Report, plots string, sizes []int) error {
	p := &page{Writer: bufio.NewWriter(w), r: r, plots: plots}
	fmt.Fprintf(p, "%s\n\n", strings.TrimSpace(intro))
	n := r.Options.Experiments
	fmt.Fprintf(p, "Seed %d; %d experiments for the metrics, %d for the base case, %d for each point of the sweeps.\n", r.Options.Seed, n, baseTimes*n, sweepTimes*n)
	fmt.Fprintln(p, r.Verdict())
	p.section("Base case", "Average response time over the optimum's: ten jobs, a hundred slots, 80 % small jobs, 75 % slack. A worst\ncase is the median over batches of 100 experiments; the paper's figures are those of one batch.\n", figBase)
	p.section("Slack (Fig. 5a)", p.plot("flex-"+figSlack), "")
	p.curve(figSlack, "slack, %")
	p.section("Share of small jobs (Fig. 5b)", p.plot("flex-"+figSmall), "")
	p.curve(figSmall, "small jobs, %")
	p.section("Metrics (Fig. 5c)", p.plot("flex-"+figMetrics+"-averages")+p.plot("flex-"+figMetrics+"-worsts"), "")
	p.menu()
	p.section("More jobs", "With ten jobs the local search tries up to 0.3 % of all orderings. More jobs than the paper's, with the optimum,\n"+
		"in a fifth of the experiments:\n", figOptimum)
	fmt.Fprint(p, "\n")
	p.section("Many jobs", "The paper says that its conclusions remain in much larger experiments. No optimum can be had there,\n"+
		"so FIFO and FAIR are compared with FLEX: the average and the least ratio.\n", figLarge)
	p.text(readings)
	p.section("Readings not chosen", "The base case with one reading changed.\n", figOther)
	p.text(orderings)
	p.text(mistakes)
	if err := p.counterexamples(); err != nil {
		return err
	}
	p.text(speed)
	if err := p.runTimes(sizes); err != nil {
		return err
	}
	p.section("Coarser slots", "The dynamic programme of the generic ordering divides the slack into units, at least 100, as many as time\nand memory allow (*as solved*).\n"+
		"Loss: the value of its solution over that of the exact programme, 1,000 jobs on 10,000 slots.\n", figCoarse)
	return p.Flush()
}

type page struct {
	*bufio.Writer
	r     *papers.Report
	plots string
}

func (p *page) text(text string) { fmt.Fprintf(p, "\n%s\n\n", strings.TrimSpace(text)) }

func (p *page) plot(name string) string {
	return fmt.Sprintf("![%s](%s/%s.svg)\n", name, p.plots, name)
}

func (p *page) section(title, text, figure string) {
	fmt.Fprintf(p, "\n## %s\n\n%s\n", title, text)
	if figure != "" {
		// The writer keeps the first error, which Flush returns.
		_ = p.r.WriteMarkdown(p, figure)
	}
}

// find returns a row's value as text.
func (p *page) find(figure, point, policy, statistic string) string {
	row := p.r.Find(figure, point, policy, statistic)
	switch {
	case row.Value == nil:
		return "–"
	case statistic == "left_out":
		return fmt.Sprintf("%.0f", *row.Value)
	default:
		return fmt.Sprintf("%.3f%s", *row.Value, row.Mark())
	}
}

// curve is a sweep's table: average / worst, with the bands of FIFO's and FAIR's averages.
func (p *page) curve(figure, x string) {
	fmt.Fprintf(p, "\nAverage / worst case; in brackets the average that independent prototypes measured, which is the band's middle.\n\n"+
		"| %s | FIFO | FAIR | FLEX |\n|---|---|---|---|\n", x)
	for _, point := range p.r.Points(figure) {
		_, at, _ := strings.Cut(point, "=")
		fmt.Fprintf(p, "| %s |", at)
		for _, policy := range []string{fifo, fair, best} {
			fmt.Fprintf(p, " %s / %s", p.find(figure, point, policy, "avg_ratio"), p.find(figure, point, policy, "worst_ratio"))
			for _, row := range p.r.Rows {
				if row.Figure == figure && row.Point == point && row.Policy == policy && row.Low != nil && row.High != nil {
					fmt.Fprintf(p, " (%.2f)", (*row.Low+*row.High)/2)
				}
			}
			fmt.Fprint(p, " |")
		}
		fmt.Fprintln(p)
	}
}

// menu is the table of all metrics.
func (p *page) menu() {
	fmt.Fprintf(p, "\nBars end at %d; the table has the numbers: average / worst ratio to the optimum. *No search* is the orderings\n"+
		"alone, without the local search that follows them. Left out: experiments with an optimum of 0 or less. Sums of lateness\n"+
		"differ from sums of response by a constant and are not listed.\n\n"+
		"| metric | FIFO | FAIR | FLEX, no search | FLEX | FLEX band | left out |\n|---|---|---|---|---|---|---|\n", barsEnd)
	for _, point := range p.r.Points(figMetrics) {
		fmt.Fprintf(p, "| %s |", point)
		for _, policy := range []string{fifo, fair, plain, best} {
			fmt.Fprintf(p, " %s / %s |", p.find(figMetrics, point, policy, "avg_ratio"), p.find(figMetrics, point, policy, "worst_ratio"))
		}
		average, worst := bandsOf(point)
		fmt.Fprintf(p, " ≤ %v / ≤ %v | %s |\n", average.high, worst.high, p.find(figMetrics, point, best, "left_out"))
	}
}

// counterexamples computes the numbers of the text on errors.
func (p *page) counterexamples() error {
	lemma := &flex.Problem{Slots: 10, Aggregate: scheduler.Max}
	for range 3 {
		lemma.Jobs = append(lemma.Jobs, flex.Job{Work: 10, Min: 1, Max: 6, Cost: scheduler.Cost{Penalty: scheduler.Response, Weight: 1}})
	}
	found, err := flex.Solve(lemma)
	if err != nil {
		return err
	}
	two := &flex.Problem{Slots: 10, Aggregate: scheduler.Max, Jobs: slices.Clone(lemma.Jobs[:2])}
	two.Jobs[0].Max, two.Jobs[1].Max, two.Jobs[1].Work = 10, 10, 30
	corrected, value := flex.Moldable(two, 0)
	printed := asPrinted(two)
	fmt.Fprint(p, "| example | as printed | corrected |\n|---|---|---|\n")
	fmt.Fprintf(p, "| Lemma 1: makespan of three jobs (W = 10, m = 1, M = 6) on 10 slots | %.2f, any ordering | %.2f, by %s |\n",
		flex.Pack(lemma, []int{0, 1, 2}).Value, found.Value, found.Method)
	fmt.Fprintf(p, "| Minimax transformation: makespan of two moldable jobs (W = 10, 30) on 10 slots | %.2f with slots %v | %.2f with slots %v |\n\n",
		max(10/float64(printed[0]), 30/float64(printed[1])), printed, value, corrected)
	return nil
}

// asPrinted minimises ΣG_j(s_j) of section 3.2 with the paper's sign, G_j(s) = +Σ F_j(i), for
// two jobs by trying everything.
func asPrinted(p *flex.Problem) []int {
	sum := func(j flex.Job, slots int) (g float64) {
		for i := 1; i <= slots; i++ {
			g += j.Cost.At(j.Work / float64(i))
		}
		return g
	}
	var slots []int
	least := 0.0
	for s := 1; s < p.Slots; s++ {
		if g := sum(p.Jobs[0], s) + sum(p.Jobs[1], p.Slots-s); slots == nil || g < least {
			slots, least = []int{s, p.Slots - s}, g
		}
	}
	return slots
}

// timed lists the metrics with measured run times.
var timed = []string{
	"sum-response", "sum-response-weighted", "sum-stretch", "max-response", "max-stretch", "max-lateness",
	"sum-tardy", "sum-tardy-weighted", "sum-tardiness", "sum-tardiness-weighted", "sum-sla",
}

// runTimes measures one allocation, the best of three.
func (p *page) runTimes(sizes []int) error {
	fmt.Fprintf(p, "One allocation in milliseconds of processor time, the least of three, on ten slots a job; %s.\n\n| metric |", runtime.Version())
	for _, jobs := range sizes {
		fmt.Fprintf(p, " %d jobs |", jobs)
	}
	fmt.Fprintf(p, "\n|---|%s\n", strings.Repeat("---|", len(sizes)))
	for _, name := range timed {
		m, err := scheduler.ParseMetric(name)
		if err != nil {
			return err
		}
		fmt.Fprintf(p, "| %s |", name)
		for _, jobs := range sizes {
			took, err := allocationTime(p.r.Options.Seed, jobs, m)
			if err != nil {
				return err
			}
			fmt.Fprintf(p, " %.1f |", 1000*took.Seconds())
		}
		fmt.Fprintln(p)
	}
	return nil
}

// allocationTime is in processor time, which other programs hardly change.
func allocationTime(seed uint64, jobs int, m scheduler.Metric) (best time.Duration, err error) {
	sh := base
	sh.jobs, sh.slots = jobs, 10*jobs
	in, err := sh.generate(papers.Rand(seed, "flex time", jobs))
	if err != nil {
		return 0, err
	}
	problem := in.problem(m)
	for range 3 {
		began := papers.ProcessorTime()
		if _, err := flex.Solve(problem); err != nil {
			return 0, err
		}
		if took := papers.ProcessorTime() - began; best == 0 || took < best {
			best = took
		}
	}
	return best, nil
}
