package overlap

import (
	"fmt"

	"github.com/quernmr/quern/sim/papers"
)

// wideEdges has the lower ends of the wide size classes, multiples of thinWidth. The last class
// has no upper end.
var wideEdges = []float64{0, 0.25, 0.5, 1, 2, 4, 8, 16, 32, 64, 100}

// between combines the jobs with a size in [from, to). If to is below from, there is no upper
// end.
func (t *tally) between(from, to float64) (c class) {
	end := int(to / thinWidth)
	if to < from {
		end = thinClasses + 1
	}
	for _, thin := range t.classes[int(from/thinWidth):end] {
		c.jobs += thin.jobs
		c.slowdowns += thin.slowdowns
	}
	return c
}

func (c class) mean() float64 { return c.slowdowns / float64(c.jobs) }

// slowdowns reports Fig. 9 at a load. Every wide class must be better off than under k-LPS. Nine
// jobs in ten must be in thin classes with at most half the slowdown of k-LPS.
func (s *simulation) slowdowns(load float64, sums map[string]*tally) {
	at := fmt.Sprintf("load=%.2f", load)
	high := 1.0
	for i, from := range wideEdges {
		to, name := -1.0, fmt.Sprintf("%s size≥%v", at, from)
		if i+1 < len(wideEdges) {
			to = wideEdges[i+1]
			name = fmt.Sprintf("%s size=%v–%v", at, from, to)
		}
		fair := sums[lpsName].between(from, to).mean()
		s.row(papers.Row{Figure: figSizes, Point: name, Policy: lpsName, Statistic: "slowdown", Value: papers.Num(fair)})
		for _, policy := range []string{maxSRPTName, splitName, srptName} {
			r := papers.Row{Figure: figSizes, Point: name, Policy: policy, Statistic: "slowdown over k-LPS's"}
			r.Value = papers.Num(sums[policy].between(from, to).mean() / fair)
			if policy != srptName {
				r.High = &high
			}
			s.row(r)
		}
	}
	for _, policy := range []string{maxSRPTName, splitName, srptName} {
		better, half, worse := compareThin(sums[policy], sums[lpsName])
		low := 0.9
		s.row(papers.Row{Figure: figSizes, Point: at, Policy: policy, Statistic: "jobs in thin classes with half k-LPS's or less", Value: papers.Num(half), Low: &low})
		s.row(papers.Row{Figure: figSizes, Point: at, Policy: policy, Statistic: "jobs in thin classes better off", Value: papers.Num(better)})
		s.row(papers.Row{Figure: figSizes, Point: at, Policy: policy, Statistic: "thin classes worse off, of 400", Value: papers.Num(float64(worse))})
	}
	s.sizesChart(load, sums)
}

// compareThin compares the slowdowns of thin classes with those under fair. It returns the
// share of jobs in classes with a smaller slowdown, the share in classes with at most half, and
// the number of classes with a larger slowdown.
func compareThin(t, fair *tally) (better, half float64, worse int) {
	for i := range t.classes {
		own, theirs := t.classes[i].mean(), fair.classes[i].mean()
		share := float64(t.classes[i].jobs) / float64(t.finished)
		if own < theirs {
			better += share
		}
		if own <= theirs/2 {
			half += share
		}
		if own > theirs && i < thinClasses {
			worse++
		}
	}
	return better, half, worse
}

// sizesChart draws Fig. 9 with a point for every four units of size.
func (s *simulation) sizesChart(load float64, sums map[string]*tally) {
	const width = 4
	c := papers.Chart{
		Name: fmt.Sprintf("overlap-slowdown-%.0f", 100*load), Title: fmt.Sprintf("Mean slowdown by size, load %.2f (Fig. 9)", load),
		X: "size, max(x, y)", Y: "response over size",
	}
	for _, policy := range []string{lpsName, maxSRPTName, splitName, srptName} {
		series := papers.Series{Name: policy}
		for from := 0.0; from < thinClasses*thinWidth; from += width {
			if in := sums[policy].between(from, from+width); in.jobs > 0 {
				series.X, series.Y = append(series.X, from+width/2), append(series.Y, in.mean())
			}
		}
		c.Series = append(c.Series, series)
	}
	s.report.Charts = append(s.report.Charts, c)
}

// synthetic reports Fig. 7 with section 5.3's workload instead of the trace, which we do not
// have: mean response times divided by the bound's, by load. In balanced runs the logarithm of
// shuffle size by map size has a third of the deviation: the paper's cube root, with mean 1.
func (s *simulation) synthetic() error {
	loads := []float64{0.1, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9}
	policies := []string{boundName, lpsName, maxSRPTName, splitName, srptName}
	for _, balanced := range []bool{false, true} {
		var points []point
		for _, load := range loads {
			w := paperWorkload(load)
			if balanced {
				w.ratioSigma /= 3
			}
			for _, policy := range policies {
				points = append(points, point{policy, w, max(1, s.unit/5), 0})
			}
		}
		all, err := s.run(figLoads, points)
		if err != nil {
			return err
		}
		c := papers.Chart{Name: "overlap-loads", Title: "Mean response time by load (as Fig. 7a)", X: "load", Y: "over the lower bound"}
		if balanced {
			c.Name, c.Title = "overlap-loads-balanced", "Mean response time by load, balanced sizes (as Fig. 7b)"
		}
		for k, policy := range policies[1:] {
			series := papers.Series{Name: policy, X: loads}
			for i, load := range loads {
				least := all[i*len(policies)].mean()
				over := all[i*len(policies)+1+k].mean() / least
				series.Y = append(series.Y, over)
				name := fmt.Sprintf("load=%v", load)
				if balanced {
					name += " balanced"
				}
				s.row(papers.Row{Figure: figLoads, Point: name, Policy: policy, Statistic: "mean over the bound's", Value: papers.Num(over)})
			}
			c.Series = append(c.Series, series)
		}
		s.report.Charts = append(s.report.Charts, c)
	}
	return nil
}

// readings reports other readings of the paper.
func (s *simulation) readings() error {
	short := max(1, s.unit/50)
	points := []point{
		{lossyName, paperWorkload(lowLoad), max(1, s.unit/5), 0},
		{lossyName, paperWorkload(highLoad), max(1, s.unit/5), 0},
		{strictName, paperWorkload(0.5), max(1, s.unit/5), 0},
		{strictName, paperWorkload(0.6), max(1, s.unit/5), 0},
		{strictName, paperWorkload(lowLoad), short, 0},
		{strictName, paperWorkload(lowLoad), 2 * short, 0},
	}
	all, err := s.run(figReadings, points)
	if err != nil {
		return err
	}
	for i, p := range points {
		r := papers.Row{Figure: figReadings, Policy: p.policy, Statistic: "mean", Value: papers.Num(all[i].mean())}
		r.Point = fmt.Sprintf("load=%.2f, %d arrivals", p.workload.load, p.arrivals)
		if want, ok := published(map[string]string{lossyName: lpsName, strictName: splitName}[p.policy], p.workload.load); ok && p.workload.load >= lowLoad {
			r.Published = &want
		}
		s.row(r)
	}
	return nil
}
