package sim

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// Judgement says how good the predictions of jobs were, when a fraction of their lives had passed. Jobs
// without a prediction count as bad.
type Judgement struct {
	Jobs   int
	Named  int     // a range was predicted
	Held   int     // it held the true end
	Right  int     // the likely end differed from the true one by at most a quarter of the job's life
	Width  float64 // median of half of the widths, as a fraction of the job's life
	Narrow int     // half of the width was at most a quarter of the job's life

	WidthLeft  float64 // median of half of the widths, as a fraction of the time left
	NarrowLeft int     // half of the width was at most a quarter of the time left

	Bound      int // jobs with an earliest end that was said before a range was known, at any time
	BoundWrong int // they ended earlier

	Again     int // jobs with a known end without later jobs
	AgainHeld int // the range held that end
	SoHeld    int // the range held the true end of these jobs
}

// narrow is the width that a range should have at most, on either side of its middle.
const narrow = 0.25

// Judge compares what was predicted at a fraction of the jobs' lives with their true ends.
func Judge(jobs []*Predicted, fraction float64) Judgement {
	j := Judgement{Jobs: len(jobs)}
	var widths, left []float64
	for _, p := range jobs {
		x := p.At(fraction)
		bound := p.bound()
		j.Bound += count(bound > 0)
		j.BoundWrong += count(bound > p.Life)
		held := x.Known() && x.Earliest <= p.Life && p.Life <= x.Latest
		if p.Alone > 0 {
			j.Again++
			j.AgainHeld += count(x.Known() && x.Earliest <= p.Alone && p.Alone <= x.Latest)
			j.SoHeld += count(held)
		}
		if !x.Known() {
			continue
		}
		width := (x.Latest - x.Earliest).Seconds() / 2 / p.Life.Seconds()
		widths, left = append(widths, width), append(left, width/(1-fraction))
		j.Named++
		j.Held += count(held)
		j.Narrow += count(width <= narrow)
		j.NarrowLeft += count(width/(1-fraction) <= narrow)
		j.Right += count((x.Likely - p.Life).Abs() <= p.Life/4)
	}
	j.Width, j.WidthLeft = median(widths), median(left)
	return j
}

// bound is the latest of the earliest ends that were said before a range was known; 0: none.
func (p *Predicted) bound() (latest time.Duration) {
	for _, s := range p.samples {
		if !s.prediction.Known() {
			latest = max(latest, s.prediction.Earliest)
		}
	}
	return latest
}

func count(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

func median(all []float64) float64 {
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// Cause is why ranges were bad.
type Cause struct {
	Why               string
	TooEarly, TooLate int // the job ended after its range, or before it
	Wide              int // the range was not narrow
	Jobs              int // to which this applies, with a good range or not
}

// Causes says why ranges did not hold the true end, or were not narrow, when a fraction of the jobs' lives had passed. The
// first cause that applies to a job counts.
func Causes(jobs []*Predicted, fraction float64) []Cause {
	byWhy := make(map[string]*Cause)
	for _, p := range jobs {
		x, why := p.At(fraction), p.cause(fraction)
		c := byWhy[why]
		if c == nil {
			c = &Cause{Why: why}
			byWhy[why] = c
		}
		c.Jobs++
		c.TooEarly += count(x.Known() && p.Life > x.Latest)
		c.TooLate += count(x.Known() && p.Life < x.Earliest)
		c.Wide += count(!x.Known() || (x.Latest-x.Earliest).Seconds()/2 > narrow*p.Life.Seconds())
	}
	list := make([]Cause, 0, len(byWhy))
	for _, why := range slices.Sorted(maps.Keys(byWhy)) {
		list = append(list, *byWhy[why])
	}
	slices.SortStableFunc(list, func(a, b Cause) int { return cmp.Compare(b.TooEarly+b.TooLate+b.Wide, a.TooEarly+a.TooLate+a.Wide) })
	return list
}

// badEstimate is the error of a task time, as a fraction, that counts as a cause.
const badEstimate = 0.2

// cause says what makes a job hard to predict.
func (p *Predicted) cause(fraction float64) string {
	x := p.at(fraction)
	waits := false
	for i, phase := range x.phases {
		waits = waits || phase.left > phase.running && (i == 0 || x.phases[0].left == 0)
	}
	switch {
	case !x.prediction.Known():
		return "no task has ended, and the name is new"
	case len(x.phases) > 1 && strings.HasPrefix(x.phases[1].source, "other jobs"):
		return "no reduce has ended, and the name is new"
	}
	for i, phase := range x.phases {
		if phase.left > 0 && math.Abs(math.Log(phase.seconds/p.shaped.each[i].Seconds())) > badEstimate {
			return []string{"maps", "reduces"}[i] + " take longer or shorter than in earlier runs, or than those that have ended"
		}
	}
	half := fraction * p.Life.Seconds()
	switch {
	case waits && slices.ContainsFunc(p.later, func(at time.Duration) bool { return half < at.Seconds() && at < p.Life }):
		return "tasks wait, and other jobs come"
	case waits:
		return "tasks wait for slots"
	}
	return "the longest of the running or last tasks decides"
}
