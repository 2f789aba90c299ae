// Package flex reproduces the simulations of the FLEX paper (Wolf et al., Middleware 2010,
// section 4.1): ten jobs and a hundred slots. It runs the policies of the job tracker. Results
// are divided by the result of the best of all orderings (package optimum). Sections and
// figures are the paper's.
//
// instance.go has our choices for the paper's gaps, and the engine. closedLoop calls FIFO, FAIR
// and "FLEX, epochs" whenever a job ends, and runs jobs with the planned slots. FLEX itself
// computes one schedule at the start, as in the paper.
package flex

import (
	"context"
	"fmt"
	"slices"

	"github.com/quernmr/quern/scheduler"
	"github.com/quernmr/quern/scheduler/flex"
	"github.com/quernmr/quern/sim/papers"
	"github.com/quernmr/quern/sim/papers/flex/optimum"
)

// Figures by name.
const (
	figBase    = "base"
	figSlack   = "5a-slack"
	figSmall   = "5b-small"
	figMetrics = "5c-metrics"
	figOther   = "readings"
	figOptimum = "judged"
	figLarge   = "large"
	figCoarse  = "coarse"
)

// batch is the number of experiments of a point in the paper. Worst cases depend on it. With
// more experiments the report has the median of the worst cases of all batches.
const batch = 100

// FIFO's averages over 100 experiments vary by 2.3 %, its worst cases by more. So the base case
// and the points of the sweeps have more experiments, by these factors.
const (
	baseFactor  = 10
	sweepFactor = 4
)

// Simulate runs the paper's experiments, by default 100 for the metrics. The base case has ten
// times as many, each point of the sweeps four times.
func Simulate(ctx context.Context, o papers.Options) (*papers.Report, error) {
	if o.Experiments == 0 {
		o.Experiments = batch
	}
	s := &simulation{ctx: ctx, o: o, report: &papers.Report{Paper: "flex", Options: o}, optimumJobs: 16, sizes: []int{100, 1000}}
	return s.report, s.all()
}

func (s *simulation) all() error {
	return papers.RunFigures(s.base, s.slack, s.small, s.metrics, s.readings, s.moreJobs, s.large, s.coarse)
}

type simulation struct {
	ctx         context.Context
	o           papers.Options
	report      *papers.Report
	optimumJobs int   // number of jobs in moreJobs
	sizes       []int // numbers of jobs in large; coarse has the last one
}

// response is the metric of the base case and the sweeps.
var response = scheduler.Metric{Penalty: scheduler.Response}

// Policies by name.
const (
	fifo         = "FIFO"
	fair         = "FAIR"
	flexFull     = "FLEX"
	flexEpochs   = "FLEX, epochs"
	flexNoSearch = "FLEX, no search"
)

// outcome is an experiment's value of the metric by policy, and the optimum.
type outcome struct {
	optimum float64
	values  map[string]float64
}

// experiment runs the policies on one instance under several metrics.
func (in *instance) experiment(metrics []scheduler.Metric, withOptimum bool, policies ...string) ([]outcome, error) {
	ends := make(map[string][]float64)
	for _, name := range policies {
		var err error
		switch name {
		case fifo:
			ends[name], err = in.closedLoop(scheduler.FIFO{})
		case fair:
			ends[name], err = in.closedLoop(scheduler.Fair{})
		case flexEpochs:
			ends[name], err = in.closedLoop(flex.Policy{})
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	outcomes := make([]outcome, len(metrics))
	for i, m := range metrics {
		p := in.problem(m)
		solution, err := flex.Solve(p)
		if err != nil {
			return nil, fmt.Errorf("%v: %w", m, err)
		}
		o := outcome{values: map[string]float64{flexFull: solution.Value}}
		if slices.Contains(policies, flexNoSearch) {
			if solution, err = flex.Orderings(p); err != nil {
				return nil, fmt.Errorf("%v: %w", m, err)
			}
			o.values[flexNoSearch] = solution.Value
		}
		for name, e := range ends {
			if e != nil {
				o.values[name] = p.Value(e)
			}
		}
		if withOptimum {
			if o.optimum, err = optimum.Value(p); err != nil {
				return nil, fmt.Errorf("%v: %w", m, err)
			}
		}
		outcomes[i] = o
	}
	return outcomes, nil
}

// run runs a point's experiments; each point has its own stream of random numbers.
func (s *simulation) run(figure, point string, sh shape, metrics []scheduler.Metric, policies ...string) ([][]outcome, error) {
	what := "flex " + figure + " " + point
	n, stream := s.o.Experiments, what
	switch figure {
	case figBase:
		stream = "flex " + figBase
		n *= baseFactor
	case figMetrics: // the first of the base case's experiments
		stream = "flex " + figBase
	case figSlack, figSmall:
		n *= sweepFactor
	case figOptimum:
		n = max(1, n/optimumShare)
	}
	return papers.Run(s.ctx, s.o, what, n, func(i int) ([]outcome, error) {
		in, err := sh.generate(papers.Rand(s.o.Seed, stream, i))
		if err != nil {
			return nil, err
		}
		return in.experiment(metrics, true, policies...)
	})
}

// band is the allowed range of a statistic; a limit of 0 is none.
type band struct{ published, low, high float64 }

func around(x, share float64) band { return band{0, x * (1 - share), x * (1 + share)} }

// add reports a policy's ratios to the optimum at a point.
func (s *simulation) add(figure, point, policy string, values []float64, average, worst band) (mean, worstCase float64) {
	mean = papers.Mean(values)
	averages, worsts := batches(values)
	worstCase = papers.Quantile(worsts, 0.5)
	if len(values) < batch && worst.low > 0 {
		worst.low, worst.high = 0, 0 // worst cases of fewer experiments have no band
	}
	if s.o.Experiments < batch && average.low > 0 {
		average.low, average.high = 0, 0 // nor have averages of fewer
	}
	s.row(figure, point, policy, "avg_ratio", mean, average)
	s.row(figure, point, policy, "worst_ratio", worstCase, worst)
	if figure == figBase && worst.low > 0 && len(averages) > 1 {
		s.row(figure, point, policy, "avg_ratio, least batch", least(averages), band{})
		s.row(figure, point, policy, "avg_ratio, greatest batch", papers.Largest(averages), band{})
		s.row(figure, point, policy, "worst_ratio, least batch", least(worsts), band{})
		s.row(figure, point, policy, "worst_ratio, greatest batch", papers.Largest(worsts), band{})
	}
	return mean, worstCase
}

// batches returns the average and the worst case of each full batch. Fewer values are one batch.
func batches(values []float64) (averages, worsts []float64) {
	for from := 0; from < len(values); from += batch {
		if to := min(from+batch, len(values)); to-from == batch || from == 0 {
			averages = append(averages, papers.Mean(values[from:to]))
			worsts = append(worsts, papers.Largest(values[from:to]))
		}
	}
	return averages, worsts
}

func (s *simulation) row(figure, point, policy, statistic string, value float64, b band) {
	number := func(x float64) *float64 {
		if x == 0 {
			return nil
		}
		return &x
	}
	s.report.Rows = append(s.report.Rows, papers.Row{
		Paper: "flex", Figure: figure, Point: point, Policy: policy, Statistic: statistic,
		Value: papers.Num(value), Published: number(b.published), Low: number(b.low), High: number(b.high),
	})
}

// ratios returns one policy's ratios to the optimum under metric m. It leaves out experiments
// with an optimum of 0 or less, and counts them.
func ratios(all [][]outcome, m int, policy string) (values []float64, leftOut int) {
	for _, o := range all {
		if o[m].optimum <= zeroTolerance {
			leftOut++
			continue
		}
		values = append(values, o[m].values[policy]/o[m].optimum)
	}
	return values, leftOut
}

// zeroTolerance is the largest optimum that counts as zero, because of rounding.
const zeroTolerance = 1e-9
