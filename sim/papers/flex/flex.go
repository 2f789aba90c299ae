// Package flex reproduces the simulations of the FLEX paper (Wolf et al., Middleware 2010,
// section 4.1) with the policies that run in the job tracker: ten jobs, a hundred slots, and
// the best of all orderings (package optimum) as the denominator. Sections and figures are the
// paper's.
//
// instance.go has our choices for the paper's gaps, and the engine: closedLoop asks FIFO, FAIR
// and "FLEX, epochs" at every end of a job, and runs jobs with the planned slots. FLEX's ends
// are those of the one schedule it computes at the start, as in the paper.
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

// batch is the paper's number of experiments of a point. Worst cases depend on it: of more
// experiments, the median of the batches' worst cases is reported.
const batch = 100

// FIFO's averages over 100 experiments vary by 2.3 %, the worst cases by more. So the base case
// has several batches and the points of the sweeps more experiments.
const (
	baseTimes  = 10
	sweepTimes = 4
)

// Simulate runs the paper's experiments: by default 100 for the metrics, ten times as many for
// the base case and four times for each point of the sweeps.
func Simulate(ctx context.Context, o papers.Options) (*papers.Report, error) {
	if o.Experiments == 0 {
		o.Experiments = batch
	}
	s := &simulation{ctx: ctx, o: o, report: &papers.Report{Paper: "flex", Options: o}, optimumJobs: 16, sizes: []int{100, 1000}}
	return s.report, s.all()
}

func (s *simulation) all() error {
	return papers.InTurn(s.base, s.slack, s.small, s.metrics, s.readings, s.more, s.large, s.coarse)
}

type simulation struct {
	ctx         context.Context
	o           papers.Options
	report      *papers.Report
	optimumJobs int   // jobs of the experiments with an optimum beyond the paper's size
	sizes       []int // jobs of the large experiments; the last is also that of the coarse ones
}

// response is the metric of the base case and the sweeps.
var response = scheduler.Metric{Penalty: scheduler.Response}

// Policies by name.
const (
	fifo   = "FIFO"
	fair   = "FAIR"
	best   = "FLEX"
	epochs = "FLEX, epochs"
	plain  = "FLEX, no search"
)

// outcome is an experiment's value of the metric by policy, and the optimum.
type outcome struct {
	optimum float64
	values  map[string]float64
}

// experiment runs the policies on one instance under several metrics.
func (in *instance) experiment(metrics []scheduler.Metric, judge bool, policies ...string) ([]outcome, error) {
	ends := make(map[string][]float64)
	for _, name := range policies {
		var err error
		switch name {
		case fifo:
			ends[name], err = in.closedLoop(scheduler.FIFO{})
		case fair:
			ends[name], err = in.closedLoop(scheduler.Fair{})
		case epochs:
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
		o := outcome{values: map[string]float64{best: solution.Value}}
		if slices.Contains(policies, plain) {
			if solution, err = flex.Orderings(p); err != nil {
				return nil, fmt.Errorf("%v: %w", m, err)
			}
			o.values[plain] = solution.Value
		}
		for name, e := range ends {
			if e != nil {
				o.values[name] = p.Value(e)
			}
		}
		if judge {
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
		n *= baseTimes
	case figMetrics: // the first of the base case's experiments
		stream = "flex " + figBase
	case figSlack, figSmall:
		n *= sweepTimes
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

// band is the range of a statistic; a bound of 0 is none.
type band struct{ published, low, high float64 }

func about(x, share float64) band { return band{0, x * (1 - share), x * (1 + share)} }

// add reports a policy's ratios to the optimum at a point.
func (s *simulation) add(figure, point, policy string, values []float64, average, worst band) (avg, most float64) {
	avg = papers.Mean(values)
	averages, worsts := batches(values)
	most = papers.Quantile(worsts, 0.5)
	if len(values) < batch && worst.low > 0 {
		worst.low, worst.high = 0, 0 // a worst case of fewer experiments says nothing
	}
	if s.o.Experiments < batch && average.low > 0 {
		average.low, average.high = 0, 0 // nor do averages of few
	}
	s.row(figure, point, policy, "avg_ratio", avg, average)
	s.row(figure, point, policy, "worst_ratio", most, worst)
	if figure == figBase && worst.low > 0 && len(averages) > 1 {
		s.row(figure, point, policy, "avg_ratio, least batch", least(averages), band{})
		s.row(figure, point, policy, "avg_ratio, greatest batch", papers.Largest(averages), band{})
		s.row(figure, point, policy, "worst_ratio, least batch", least(worsts), band{})
		s.row(figure, point, policy, "worst_ratio, greatest batch", papers.Largest(worsts), band{})
	}
	return avg, most
}

// batches returns the average and the worst case of each batch, at least one.
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

// ratios returns one policy's ratios to the optimum under metric m; it omits experiments with
// an optimum of 0 or less.
func ratios(all [][]outcome, m int, policy string) (values []float64, leftOut int) {
	for _, o := range all {
		if o[m].optimum <= tiny {
			leftOut++
			continue
		}
		values = append(values, o[m].values[policy]/o[m].optimum)
	}
	return values, leftOut
}

// tiny is the size of an optimum that is zero except for rounding.
const tiny = 1e-9
