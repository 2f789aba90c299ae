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
	introText string
	//go:embed page/readings.md
	readingsText string
	//go:embed page/orderings.md
	orderingsText string
	//go:embed page/errors.md
	errorsText string
	//go:embed page/speed.md
	speedText string
)

// WritePage writes the page about the report, and measures run times for it. plots is the
// folder of the plots, relative to the page.
func WritePage(w io.Writer, r *papers.Report, plots string) error {
	return writePage(w, r, plots, []int{10, 100, 1000, 10000})
}

// writePage measures run times with the given numbers of jobs.
func writePage(w io.Writer, r *papers.Report, plots string, sizes []int) error {
	p := &page{Writer: bufio.NewWriter(w), r: r, plots: plots}
	fmt.Fprintf(p, "%s\n\n", strings.TrimSpace(introText))
	n := r.Options.Experiments
	fmt.Fprintf(p, "The seed is %d. There are %d experiments for the metrics, %d for the base case and %d for each point of the sweeps.\n", r.Options.Seed, n, baseFactor*n, sweepFactor*n)
	fmt.Fprintln(p, r.Verdict())
	p.section("Base case", "Average response time divided by the optimum's, with ten jobs, a hundred slots, 80 % small jobs and 75 % slack.\nA worst case is the median over batches of 100 experiments; the paper's figures are from one batch.\n", figBase)
	p.section("Slack (Fig. 5a)", p.plot("flex-"+figSlack), "")
	p.curve(figSlack, "slack, %")
	p.section("Share of small jobs (Fig. 5b)", p.plot("flex-"+figSmall), "")
	p.curve(figSmall, "small jobs, %")
	p.section("Metrics (Fig. 5c)", p.plot("flex-"+figMetrics+"-averages")+p.plot("flex-"+figMetrics+"-worsts"), "")
	p.metricsTable()
	p.section("More jobs", "With ten jobs the local search tries up to 0.3 % of all orderings. This table has more jobs than the paper, still\n"+
		"with the optimum, in a fifth of the experiments:\n", figOptimum)
	fmt.Fprint(p, "\n")
	p.section("Many jobs", "The paper says that its conclusions remain in much larger experiments. The optimum cannot be computed there.\n"+
		"So FIFO and FAIR are compared with FLEX: the average and the least ratio.\n", figLarge)
	p.text(readingsText)
	p.section("Readings not chosen", "These are results of the base case with one reading changed. *Small by lot* draws for each job whether it is small.\n", figOther)
	p.text(orderingsText)
	p.text(errorsText)
	if err := p.counterexamples(); err != nil {
		return err
	}
	p.text(speedText)
	if err := p.runTimes(sizes); err != nil {
		return err
	}
	p.section("Coarser slots", "The dynamic programme of the generic ordering divides the slack into units: at least 100, and as many as time\nand memory allow (*as solved*). "+
		"The loss is the cost of its solution divided by the cost of the exact\nprogramme's solution, for 1,000 jobs on 10,000 slots.\n", figCoarse)
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

// find returns the text of a row's value.
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

// curve writes a sweep's table: average / worst, and the middle of a band in brackets.
func (p *page) curve(figure, x string) {
	fmt.Fprintf(p, "\nAverage / worst case. The brackets have the average that independent prototypes measured, the middle of the band.\n\n"+
		"| %s | FIFO | FAIR | FLEX |\n|---|---|---|---|\n", x)
	for _, point := range p.r.Points(figure) {
		_, at, _ := strings.Cut(point, "=")
		fmt.Fprintf(p, "| %s |", at)
		for _, policy := range []string{fifo, fair, flexFull} {
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

// metricsTable writes the table of all metrics.
func (p *page) metricsTable() {
	fmt.Fprintf(p, "\nBars end at %d; the table has the numbers, average / worst ratio to the optimum. *No search* is FLEX with its orderings\n"+
		"only, without the local search. *Left out* counts the experiments with an optimum of 0 or less. Sums of lateness differ\n"+
		"from sums of response by a constant and are not listed.\n\n"+
		"| metric | FIFO | FAIR | FLEX, no search | FLEX | FLEX band | left out |\n|---|---|---|---|---|---|---|\n", barsEnd)
	for _, point := range p.r.Points(figMetrics) {
		fmt.Fprintf(p, "| %s |", point)
		for _, policy := range []string{fifo, fair, flexNoSearch, flexFull} {
			fmt.Fprintf(p, " %s / %s |", p.find(figMetrics, point, policy, "avg_ratio"), p.find(figMetrics, point, policy, "worst_ratio"))
		}
		average, worst := bandsOf(point)
		fmt.Fprintf(p, " ≤ %v / ≤ %v | %s |\n", average.high, worst.high, p.find(figMetrics, point, flexFull, "left_out"))
	}
}

// counterexamples writes the table of examples below the text on errors, with computed numbers.
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

// asPrinted minimises ΣG_j(s_j) of section 3.2 with the paper's sign, G_j(s) = +Σ F_j(i), by
// trying all slots of two jobs.
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
var timedMetrics = []string{
	"sum-response", "sum-response-weighted", "sum-stretch", "max-response", "max-stretch", "max-lateness",
	"sum-tardy", "sum-tardy-weighted", "sum-tardiness", "sum-tardiness-weighted", "sum-sla",
}

// runTimes writes the table of run times, each the best of three.
func (p *page) runTimes(sizes []int) error {
	fmt.Fprintf(p, "One allocation takes this many milliseconds of processor time, the least of three, with ten slots a job and %s:\n\n| metric |", runtime.Version())
	for _, jobs := range sizes {
		fmt.Fprintf(p, " %d jobs |", jobs)
	}
	fmt.Fprintf(p, "\n|---|%s\n", strings.Repeat("---|", len(sizes)))
	for _, name := range timedMetrics {
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

// allocationTime returns processor time, which other programs hardly change.
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
