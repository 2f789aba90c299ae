package flex

import (
	"fmt"
	"math"
	"slices"

	"github.com/quernmr/quern/scheduler"
	"github.com/quernmr/quern/scheduler/flex"
	"github.com/quernmr/quern/sim/papers"
)

// optimalBand is the band of FLEX where it should find the optimum.
var optimalBand = band{high: 1.001}

// base is the paper's base case.
func (s *simulation) base() error {
	point := fmt.Sprintf("slack=%v", 100*base.slack)
	all, err := s.run(figBase, point, base, []scheduler.Metric{response}, fifo, fair, flexEpochs)
	if err != nil {
		return err
	}
	for _, p := range []struct {
		name           string
		average, worst band
	}{
		{fifo, band{2.07, 1.83, 2.08}, band{3.24, 2.9, 3.8}},
		{fair, band{1.54, 1.54 * 0.98, 1.54 * 1.02}, band{1.61, 1.61 * 0.98, 1.61 * 1.02}},
		{flexFull, optimalBand, band{1.001, 0, 1.001}},
		{flexEpochs, optimalBand, optimalBand},
	} {
		values, _ := ratios(all, 0, p.name)
		s.add(figBase, point, p.name, values, p.average, p.worst)
	}
	return nil
}

// sweep is a curve of averages per policy. fifo and fair have the averages of independent
// prototypes, the middle of the bands.
type sweep struct {
	figure, title, x string
	at               []float64 // percent
	fifo, fair       []float64
	shape            func(percent float64) shape
}

func (s *simulation) slack() error {
	return s.sweep(sweep{
		figure: figSlack, title: "Average response time, by slack (Fig. 5a)", x: "slack, %",
		at:    []float64{0, 25, 50, 75, 95},
		fifo:  []float64{1.51, 1.68, 1.83, 1.95, 2.01},
		fair:  []float64{1.18, 1.32, 1.44, 1.54, 1.60},
		shape: func(p float64) shape { sh := base; sh.slack = p / 100; return sh },
	})
}

func (s *simulation) small() error {
	return s.sweep(sweep{
		figure: figSmall, title: "Average response time, by share of small jobs (Fig. 5b)", x: "small jobs, %",
		at:    []float64{0, 20, 50, 70, 80, 90},
		fifo:  []float64{1.10, 1.30, 1.70, 1.95, 1.95, 1.69},
		fair:  []float64{1.66, 1.65, 1.60, 1.55, 1.54, 1.57},
		shape: func(p float64) shape { sh := base; sh.small = p / 100; return sh },
	})
}

func (s *simulation) sweep(w sweep) error {
	policies := []string{fifo, fair, flexFull}
	series := make([]papers.Series, 2*len(policies))
	for k, name := range policies {
		series[2*k] = papers.Series{Name: name + ", average", X: w.at}
		series[2*k+1] = papers.Series{Name: name + ", worst", X: w.at, Dashed: true}
	}
	for i, at := range w.at {
		point := fmt.Sprintf("%s=%v", w.figure[len("5a-"):], at)
		all, err := s.run(w.figure, point, w.shape(at), []scheduler.Metric{response}, fifo, fair)
		if err != nil {
			return err
		}
		for k, name := range policies {
			average, worst := optimalBand, optimalBand
			switch name {
			case fifo:
				average, worst = around(w.fifo[i], 0.05), band{}
			case fair:
				average, worst = around(w.fair[i], 0.05), band{}
			}
			values, _ := ratios(all, 0, name)
			mean, worstCase := s.add(w.figure, point, name, values, average, worst)
			series[2*k].Y = append(series[2*k].Y, mean)
			series[2*k+1].Y = append(series[2*k+1].Y, worstCase)
		}
	}
	s.report.Charts = append(s.report.Charts, papers.Chart{
		Name: "flex-" + w.figure, Title: w.title, X: w.x, Y: "ratio to the optimum", Series: series,
	})
	return nil
}

// metricBands has FLEX's bands per metric; other metrics have optimalBand.
var metricBands = map[string][2]band{
	"sum-response-weighted":  {{high: 1.005}, {high: 1.005}},
	"sum-tardy-weighted":     {{high: 1.02}, {high: 2.19}},
	"sum-tardiness":          {{high: 1.01}, {high: 1.10}},
	"sum-tardiness-weighted": {{high: 1.003}, {high: 1.15}},
	"sum-sla":                {{high: 1.05}, {high: 1.44}},
	"sum-sla-weighted":       {{high: 1.05}, {high: 1.44}},
}

func bandsOf(metric string) (average, worst band) {
	if b, ok := metricBands[metric]; ok {
		return b[0], b[1]
	}
	return optimalBand, optimalBand
}

// barsEnd is the multiple of the optimum at which bars end.
const barsEnd = 5

// metrics reports every metric except sums of lateness, which differ from sums of response by a
// constant.
func (s *simulation) metrics() error {
	menu := slices.DeleteFunc(scheduler.Metrics(), func(m scheduler.Metric) bool {
		return m.Aggregate == scheduler.Sum && m.Penalty == scheduler.Lateness
	})
	policies := []string{fifo, fair, flexNoSearch, flexFull}
	all, err := s.run(figMetrics, "all", base, menu, policies...)
	if err != nil {
		return err
	}
	averages, worsts := make([]papers.Series, len(policies)), make([]papers.Series, len(policies))
	var groups []string
	for i, m := range menu {
		groups = append(groups, m.String())
		for k, name := range policies {
			average, worst := band{}, band{}
			if name == flexFull {
				average, worst = bandsOf(m.String())
			}
			values, leftOut := ratios(all, i, name)
			mean, worstCase := s.add(figMetrics, m.String(), name, values, average, worst)
			averages[k].Name, worsts[k].Name = name, name
			averages[k].Y = append(averages[k].Y, mean)
			worsts[k].Y = append(worsts[k].Y, worstCase)
			if name == flexFull {
				s.row(figMetrics, m.String(), name, "left_out", float64(leftOut), band{})
			}
		}
	}
	for _, c := range []struct {
		name, title string
		series      []papers.Series
	}{{"averages", "average", averages}, {"worsts", "worst case", worsts}} {
		s.report.Charts = append(s.report.Charts, papers.Chart{
			Name: "flex-" + figMetrics + "-" + c.name, Title: "Ratio to the optimum by metric, " + c.title + " (Fig. 5c)",
			Y: "ratio to the optimum", Groups: groups, Top: barsEnd, Series: c.series,
		})
	}
	return nil
}

// readings reports the base case under other readings of the paper.
func (s *simulation) readings() error {
	fewTasks, randomSizes := base, base
	fewTasks.tasks, randomSizes.randomSizes = 10, true
	for _, other := range []struct {
		point string
		shape shape
	}{{"10 tasks a slot", fewTasks}, {"small by lot", randomSizes}} {
		all, err := s.run(figOther, other.point, other.shape, []scheduler.Metric{response}, fifo, fair)
		if err != nil {
			return err
		}
		for _, name := range []string{fifo, fair, flexFull} {
			values, _ := ratios(all, 0, name)
			s.add(figOther, other.point, name, values, band{}, band{})
		}
	}
	return nil
}

// optimumShare divides the number of experiments of moreJobs, in which the optimum takes 2^jobs
// steps.
const optimumShare = 5

// moreJobs compares FLEX with the optimum for the hard metrics and more jobs than in the paper.
func (s *simulation) moreJobs() error {
	sh := base
	sh.jobs, sh.slots = s.optimumJobs, 10*s.optimumJobs
	sh.tasks = 100_000 // so that the optimum needs no branching
	for _, name := range []string{
		"sum-response-weighted", "sum-tardy-weighted", "sum-tardiness", "sum-tardiness-weighted", "sum-sla", "sum-sla-weighted",
	} {
		m, err := scheduler.ParseMetric(name)
		if err != nil {
			return err
		}
		point := fmt.Sprintf("jobs=%d %s", s.optimumJobs, name)
		all, err := s.run(figOptimum, point, sh, []scheduler.Metric{m}, flexNoSearch)
		if err != nil {
			return err
		}
		average, worst := bandsOf(name)
		for _, policy := range []string{flexNoSearch, flexFull} {
			values, _ := ratios(all, 0, policy)
			if policy == flexNoSearch {
				s.add(figOptimum, point, policy, values, band{}, band{})
			} else {
				s.add(figOptimum, point, policy, values, average, worst)
			}
		}
	}
	return nil
}

// largeShare divides the number of experiments of large and coarse.
const largeShare = 10

// large compares FIFO and FAIR with FLEX for so many jobs that the optimum takes too long. The
// paper says that its conclusions remain.
func (s *simulation) large() error {
	for _, jobs := range s.sizes {
		sh := base
		sh.jobs, sh.slots = jobs, 10*jobs
		point := fmt.Sprintf("jobs=%d", jobs)
		n := max(1, s.o.Experiments/(largeShare*max(1, jobs/100)))
		all, err := papers.Run(s.ctx, s.o, "flex large "+point, n, func(i int) (map[string]float64, error) {
			in, err := sh.generate(papers.Rand(s.o.Seed, figLarge+" "+point, i))
			if err != nil {
				return nil, err
			}
			outcomes, err := in.experiment([]scheduler.Metric{response}, false, fifo, fair)
			if err != nil {
				return nil, err
			}
			return outcomes[0].values, nil
		})
		if err != nil {
			return err
		}
		for _, name := range []string{fifo, fair} {
			var values []float64
			for _, o := range all {
				values = append(values, o[name]/o[flexFull])
			}
			s.row(figLarge, point, name, "avg_to_flex", papers.Mean(values), band{})
			s.row(figLarge, point, name, "least_to_flex", least(values), band{low: 1})
		}
	}
	return nil
}

// coarse compares the generic ordering's dynamic programme over units of slots with the exact
// one.
func (s *simulation) coarse() error {
	sh := base
	sh.jobs = s.sizes[len(s.sizes)-1]
	sh.slots = 10 * sh.jobs
	for _, name := range []string{"sum-tardy", "sum-tardy-weighted", "sum-sla"} {
		m, err := scheduler.ParseMetric(name)
		if err != nil {
			return err
		}
		n := max(1, s.o.Experiments/(2*largeShare))
		units := []int{100, 1000, 0}
		all, err := papers.Run(s.ctx, s.o, "flex coarse "+name, n, func(i int) ([]float64, error) {
			in, err := sh.generate(papers.Rand(s.o.Seed, figCoarse, i))
			if err != nil {
				return nil, err
			}
			p := in.problem(m)
			_, exact := flex.Moldable(p, p.Slots)
			losses := make([]float64, len(units))
			for k, u := range units {
				_, value := flex.Moldable(p, u)
				losses[k] = value / exact
			}
			return losses, nil
		})
		if err != nil {
			return err
		}
		for k, u := range units {
			point := fmt.Sprintf("units=%d", u)
			if u == 0 {
				point = "as solved"
			}
			var losses []float64
			for _, l := range all {
				losses = append(losses, l[k])
			}
			s.row(figCoarse, point, name, "avg_loss", papers.Mean(losses), band{})
			s.row(figCoarse, point, name, "worst_loss", papers.Largest(losses), band{})
		}
	}
	return nil
}

func least(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	return slices.Min(values)
}
