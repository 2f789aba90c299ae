// Package hmhs reproduces the simulation of the HMHS paper (Chen, Shen, Chen, Guo, NPC 2013,
// section 4). It compares the makespans of HMHS, FIFO, FIFO-Pri and R-HMHS for batches of jobs
// on a hundred map machines and a hundred reduce machines. Sections, figures and tables are the
// paper's. generate.go has our choices for the paper's gaps.
//
// HMHS is the job tracker's code: dispatching, Pri and estimates of scheduler/hmhs. The engine
// is in solve.go: it schedules the maps of a whole batch and then its reduces. baseline.go has
// the heuristics that HMHS is compared with.
package hmhs

import (
	"context"
	"fmt"
	"slices"

	"github.com/quernmr/quern/sim/papers"
)

// Figures by name.
const (
	figGains   = "1-heuristics"
	figSlow    = "2-heterogeneity"
	figLarge   = "large"
	figOther   = "readings"
	figOptions = "sufferage"

	figMeasured = "measured"
)

const (
	experiments = 20 // default number for each point
	largeShare  = 5  // divisor of experiments for points with more than 500 jobs
)

// baseline is a heuristic that HMHS is compared with.
type baseline struct {
	name      string
	heuristic heuristic
}

func baselines() []baseline {
	return []baseline{{"FIFO", plainFIFO}, {"FIFO-Pri", fifoPri}, {"R-HMHS", reversed}}
}

// Simulate runs the paper's experiments: by default 20 a point.
func Simulate(ctx context.Context, o papers.Options) (*papers.Report, error) {
	if o.Experiments == 0 {
		o.Experiments = experiments
	}
	s := &simulation{ctx, o, &papers.Report{Paper: "hmhs", Options: o}, []int{20, 50, 100, 200, 500}}
	return s.report, papers.RunFigures(s.gains, s.slow, s.large, s.readings, s.options, s.measured)
}

type simulation struct {
	ctx    context.Context
	o      papers.Options
	report *papers.Report
	sizes  []int // jobs of the batches of figure 1
}

// gain returns the share of another makespan that HMHS saves, in per cent.
func gain(ours, other *schedule) float64 { return 100 * (1 - ours.Makespan/other.Makespan) }

// compare returns the gains against baselines at a point, by baseline and experiment.
func (s *simulation) compare(figure string, w workload, jobs int, c cluster, n int, against []baseline) ([][]float64, error) {
	what := fmt.Sprintf("hmhs %s %s jobs=%d", figure, w.name, jobs)
	stream := fmt.Sprintf("hmhs %s %d", w.name, jobs) // the same jobs for readings and tables
	all, err := papers.Run(s.ctx, s.o, what, n, func(i int) ([]float64, error) {
		b := w.batch(jobs, c, papers.Rand(s.o.Seed, stream, i))
		ours, err := solve(b, plainHMHS)
		if err != nil {
			return nil, err
		}
		gains := make([]float64, len(against))
		for k, o := range against {
			theirs, err := solve(b, o.heuristic)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", o.name, err)
			}
			gains[k] = gain(ours, theirs)
		}
		return gains, nil
	})
	if err != nil {
		return nil, err
	}
	byBaseline := make([][]float64, len(against))
	for _, gains := range all {
		for k, g := range gains {
			byBaseline[k] = append(byBaseline[k], g)
		}
	}
	return byBaseline, nil
}

// band is the allowed range of a mean; a high of 0 means no band.
type band struct{ low, high float64 }

// leastForBand is the number of experiments from which the bands apply.
const leastForBand = 10

// add reports the gains against one baseline.
func (s *simulation) add(figure, point, against string, values []float64, b band) float64 {
	mean := papers.Mean(values)
	row := papers.Row{Paper: "hmhs", Figure: figure, Point: point, Policy: against, Statistic: "mean_gain", Value: papers.Num(mean)}
	if len(values) >= leastForBand && b.high > 0 {
		row.Low, row.High = papers.Num(b.low), papers.Num(b.high)
	}
	s.report.Rows = append(s.report.Rows, row)
	for _, extreme := range []struct {
		name string
		pick func([]float64) float64
	}{{"least_gain", slices.Min[[]float64]}, {"greatest_gain", slices.Max[[]float64]}} {
		row := papers.Row{Paper: "hmhs", Figure: figure, Point: point, Policy: against, Statistic: extreme.name, Value: papers.Num(extreme.pick(values))}
		s.report.Rows = append(s.report.Rows, row)
	}
	return mean
}
