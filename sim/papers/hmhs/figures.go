package hmhs

import (
	"fmt"

	"github.com/quernmr/quern/sim/papers"
)

// prototype has an independent prototype's means of ten seeds, by workload and jobs, against
// each baseline. Smaller batches are not tested, because one job decides their makespan.
var prototype = map[string]map[int][3]float64{
	"single": {50: {63.8, 61.6, 20.1}, 100: {67.4, 66.3, 21.3}, 200: {70.4, 69.7, 18.8}, 500: {72.7, 72.6, 16.0}},
	"hybrid": {50: {56.6, 43.8, 18.0}, 100: {58.3, 50.0, 27.9}, 200: {63.0, 58.2, 22.4}, 500: {67.1, 65.3, 20.9}},
}

// tolerance is in percentage points around the prototype's means, against each baseline: the
// possible difference of two means of ten batches. Gains of hybrid batches vary more, because a
// few jobs have most of the work.
var tolerance = map[string][3]float64{"single": {3, 3, 5}, "hybrid": {8.5, 8.5, 8.5}}

// gains reports figure 1: HMHS against each baseline, by number of jobs.
func (s *simulation) gains() error {
	for _, w := range workloads() {
		series := make([]papers.Series, len(baselines()))
		for _, jobs := range s.sizes {
			all, err := s.compare(figGains, w, jobs, cluster{}, s.o.Experiments, baselines())
			if err != nil {
				return err
			}
			for k, o := range baselines() {
				b := band{}
				if means, ok := prototype[w.name][jobs]; ok {
					b = band{means[k] - tolerance[w.name][k], means[k] + tolerance[w.name][k]}
				}
				mean := s.add(figGains, point(w, jobs), o.name, all[k], b)
				series[k].Name = o.name
				series[k].X = append(series[k].X, float64(jobs))
				series[k].Y = append(series[k].Y, mean)
			}
		}
		s.report.Charts = append(s.report.Charts, papers.Chart{
			Name: "hmhs-" + figGains + "-" + w.name, Title: "Gain of HMHS, " + w.name + " workload (Fig. 1)",
			X: "jobs", Y: "makespan saved, %", Series: series,
		})
	}
	return nil
}

func point(w workload, jobs int) string { return fmt.Sprintf("%s jobs=%d", w.name, jobs) }

// slowGains has the prototype's gains against FIFO by share of slow machines, in fifths.
var slowGains = map[string][6]float64{
	"single": {67.6, 64.9, 60.9, 54.0, 40.7, 2.0},
	"hybrid": {56.9, 53.8, 48.5, 41.3, 30.6, 4.5},
}

// slowTolerance is the tolerance if all machines are slow. Between none and all the tolerance is
// interpolated.
var slowTolerance = map[string]float64{"single": 4, "hybrid": 8}

// slow reports table 1 and figure 2: 100 jobs, more and more slow machines.
func (s *simulation) slow() error {
	const jobs = 100
	var series []papers.Series
	for _, w := range workloads() {
		line := papers.Series{Name: w.name}
		for fifth := range 6 {
			c := cluster{slow: float64(fifth) / 5}
			all, err := s.compare(figSlow, w, jobs, c, s.o.Experiments, baselines()[:1])
			if err != nil {
				return err
			}
			mean, half := slowGains[w.name][fifth], tolerance[w.name][0]*(1-c.slow)+slowTolerance[w.name]*c.slow
			gain := s.add(figSlow, fmt.Sprintf("%s slow=%d%%", w.name, 20*fifth), "FIFO", all[0], band{mean - half, mean + half})
			line.X, line.Y = append(line.X, 100*c.slow), append(line.Y, gain)
		}
		series = append(series, line)
	}
	s.report.Charts = append(s.report.Charts, papers.Chart{
		Name: "hmhs-" + figSlow, Title: "Gain of HMHS against FIFO (Fig. 2)",
		X: "slow machines, %", Y: "makespan saved, %", Series: series,
	})
	return nil
}

// large reports batches with more jobs than figure 1.
func (s *simulation) large() error {
	const jobs = 1000
	for _, w := range workloads() {
		all, err := s.compare(figLarge, w, jobs, cluster{}, max(1, s.o.Experiments/largeShare), baselines())
		if err != nil {
			return err
		}
		for k, o := range baselines() {
			s.add(figLarge, point(w, jobs), o.name, all[k], band{})
		}
	}
	return nil
}

// readings reports other readings of the paper.
func (s *simulation) readings() error {
	const jobs = 100
	for _, r := range []struct {
		name    string
		cluster cluster
	}{{"factors by machine", cluster{perMachine: true}}, {"long and large by lot", cluster{randomSizes: true}}} {
		for _, w := range workloads() {
			if r.cluster.randomSizes && w.large == 0 {
				continue
			}
			all, err := s.compare(figOther, w, jobs, r.cluster, s.o.Experiments, baselines())
			if err != nil {
				return err
			}
			for k, o := range baselines() {
				s.add(figOther, w.name+", "+r.name, o.name, all[k], band{})
			}
		}
	}
	return nil
}

// options reports the gain of HMHS against HMHS with sufferage: below 0 sufferage is better.
func (s *simulation) options() error {
	for _, w := range workloads() {
		for _, jobs := range []int{20, 50, 100} {
			all, err := s.compare(figOptions, w, jobs, cluster{}, s.o.Experiments, []baseline{{"sufferage", withSufferage}})
			if err != nil {
				return err
			}
			s.add(figOptions, point(w, jobs), "sufferage", all[0], band{})
		}
	}
	return nil
}

// measured reports the gain if factors are the [hmhs.Estimate] from one task or four, on a share
// of the pairs of job and machine. Task times vary by a fifth.
func (s *simulation) measured() error {
	const jobs = 100
	for _, w := range workloads() {
		for _, sample := range []struct {
			share float64
			tasks int
		}{{0, 1}, {0.1, 1}, {0.25, 1}, {0.5, 1}, {1, 1}, {1, 4}} {
			what := fmt.Sprintf("%s share=%v%% tasks=%d", w.name, 100*sample.share, sample.tasks)
			stream := fmt.Sprintf("hmhs %s %d", w.name, jobs)
			gains, err := papers.Run(s.ctx, s.o, "hmhs "+what, s.o.Experiments, func(i int) (float64, error) {
				truth := w.batch(jobs, cluster{}, papers.Rand(s.o.Seed, stream, i))
				return measuredGain(truth, sample.share, sample.tasks, papers.Rand(s.o.Seed, stream+" measured", i))
			})
			if err != nil {
				return err
			}
			s.add(figMeasured, what, "FIFO", gains, band{})
		}
	}
	return nil
}
