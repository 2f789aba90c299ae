// Package overlap reproduces the simulations of Lin, Zhang, Wierman and Tan, Joint Optimization
// of Overlapping Phases in MapReduce (2013), section 5.3. Millions of jobs go through the
// overlapping tandem queue of section 2.1. Sections and figures are the paper's.
//
// The policies are in scheduler/overlap. They would take days if simulations called them at
// every event. So each policy has an engine here, which keeps the jobs in the policy's order
// and updates only served jobs. Tests run the policies on the same arrivals, event by event
// (model_test.go), and compare the results.
//
// Response times are to the end of the shuffle. A simulation begins and ends empty. All
// policies and both loads have the same jobs, at times scaled by the load.
package overlap

import (
	"context"
	"fmt"
	"math"

	"github.com/quernmr/quern/sim/papers"
)

// Figures by name.
const (
	figMean     = "mean-response"
	figSizes    = "9-slowdown"
	figLoads    = "7-synthetic"
	figReadings = "readings"
)

// Policies by name.
const (
	lpsName     = "k-LPS"
	maxSRPTName = "MaxSRPT"
	splitName   = "SplitSRPT"
	srptName    = "SRPT"
	boundName   = "bound"
	strictName  = "SplitSRPT, strict"
	lossyName   = "k-LPS, lossy"
)

const (
	unitArrivals = 5_000_000 // arrivals of an experiment
	seeds        = 4         // simulations of every point
	lpsLimit     = 100       // the paper's k
)

// newEngine returns a new engine for a policy.
func newEngine(name string) engine {
	switch name {
	case lpsName:
		return newLPS(lpsLimit, false)
	case lossyName:
		return newLPS(lpsLimit, true)
	case maxSRPTName:
		return &maxSRPT{}
	case splitName:
		return newSplitSRPT(false)
	case strictName:
		return newSplitSRPT(true)
	case srptName:
		return &srpt{}
	case boundName:
		return &bound{}
	}
	panic("no engine named " + name)
}

// Simulate runs four simulations for every policy and load, each with five million arrivals
// times the experiments of the options. Other points have a million arrivals or less.
func Simulate(ctx context.Context, o papers.Options) (*papers.Report, error) {
	return simulate(ctx, o, unitArrivals)
}

func simulate(ctx context.Context, o papers.Options, unit int) (*papers.Report, error) {
	o.Experiments = max(1, o.Experiments)
	s := &simulation{ctx: ctx, o: o, unit: unit, report: &papers.Report{Paper: "overlap", Options: o}}
	if err := papers.RunFigures(s.loads, s.synthetic, s.readings); err != nil {
		return nil, err
	}
	return s.report, nil
}

type simulation struct {
	ctx    context.Context
	o      papers.Options
	unit   int
	report *papers.Report
}

// point is a simulation to run.
type point struct {
	policy   string
	workload workload
	arrivals int
	seed     int
}

// run runs the simulations of a figure.
func (s *simulation) run(figure string, points []point) ([]*tally, error) {
	return papers.Run(s.ctx, s.o, "overlap "+figure, len(points), func(i int) (*tally, error) {
		p := points[i]
		from := &source{workload: p.workload, rand: papers.Rand(s.o.Seed, "overlap", p.seed)}
		t, ok := run(s.ctx, newEngine(p.policy), from, p.arrivals)
		if !ok {
			return nil, context.Cause(s.ctx)
		}
		return t, nil
	})
}

// published returns the paper's mean response time, or for policies that the paper does not
// report, the mean of independent prototypes.
func published(policy string, load float64) (mean float64, byPaper bool) {
	at := map[string][2]float64{
		lpsName: {6.50, 16.28}, maxSRPTName: {3.32, 5.58}, splitName: {3.55, 5.66},
		srptName: {3.22, 4.88}, boundName: {2.352, 3.250},
	}[policy]
	byPaper = policy == lpsName || policy == maxSRPTName || policy == splitName
	if load == highLoad {
		return at[1], byPaper
	}
	return at[0], byPaper
}

const (
	lowLoad  = 0.75
	highLoad = 0.90
)

// loads reports the two loads of section 5.3: mean response times, and slowdowns by size.
func (s *simulation) loads() error {
	policies := []string{lpsName, maxSRPTName, splitName, srptName, boundName}
	var points []point
	for _, policy := range policies {
		for _, load := range []float64{highLoad, lowLoad} { // the longer simulations first
			for seed := range seeds {
				points = append(points, point{policy, paperWorkload(load), s.unit * s.o.Experiments, seed})
			}
		}
	}
	all, err := s.run(figMean, points)
	if err != nil {
		return err
	}
	for _, load := range []float64{lowLoad, highLoad} {
		sums := make(map[string]*tally)
		for _, policy := range policies {
			var means []float64
			sum := &tally{}
			for i, p := range points {
				if p.policy == policy && p.workload.load == load {
					means = append(means, all[i].mean())
					sum.add(all[i])
				}
			}
			sums[policy] = sum
			s.means(policy, load, means)
		}
		s.slowdowns(load, sums)
	}
	return nil
}

// means reports the mean response time of a policy and its deviation over seeds.
func (s *simulation) means(policy string, load float64, means []float64) {
	at, mean := fmt.Sprintf("load=%.2f", load), papers.Mean(means)
	want, byPaper := published(policy, load)
	row := papers.Row{Figure: figMean, Point: at, Policy: policy, Statistic: "mean", Value: papers.Num(mean)}
	if byPaper {
		row.Published = &want
	}
	share := 0.05
	if s.o.Experiments >= 10 {
		share = 0.03
	}
	row.Low, row.High = papers.Num(want*(1-share)), papers.Num(want*(1+share))
	s.row(row)
	squares := 0.0
	for _, m := range means {
		squares += (m - mean) * (m - mean)
	}
	s.row(papers.Row{Figure: figMean, Point: at, Policy: policy, Statistic: "deviation over seeds", Value: papers.Num(math.Sqrt(squares / float64(len(means)-1)))})
}

func (s *simulation) row(r papers.Row) {
	r.Paper = "overlap"
	s.report.Rows = append(s.report.Rows, r)
}

// mean returns the mean response time.
func (t *tally) mean() float64 { return t.responses / float64(t.finished) }

// add adds another tally.
func (t *tally) add(other *tally) {
	t.finished += other.finished
	t.responses += other.responses
	for i := range t.classes {
		t.classes[i].jobs += other.classes[i].jobs
		t.classes[i].slowdowns += other.classes[i].slowdowns
	}
}
