package forecast

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quernmr/quern/history"
)

// measuredTasks returns ended tasks of a phase, half a deviation below and above a mean.
func measuredTasks(tasks int, mean, deviation float64) Measured {
	var m Measured
	for i := range tasks {
		m.count(Duration(mean*(1+deviation*float64(i%2*2-1))), false)
	}
	return m
}

// drawAlone draws a job that is alone in a cluster; its tasks take at least 10 ms.
func drawAlone(t *rapid.T) (Cluster, Job) {
	slots := rapid.IntRange(1, 50).Draw(t, "slots")
	c := Cluster{Now: 100 * second, Slots: [2]int{slots, slots}, Fallback: [2]Task{{second, 0.3, 0.8, sourceDefault}, {second, 0.3, 0.8, sourceDefault}}}
	j := Job{N: 1, Active: true, Workers: slots}
	for i := range j.Phases {
		p := &j.Phases[i]
		p.Measured = measuredTasks(4*rapid.IntRange(0, 10).Draw(t, "measured"), rapid.Float64Range(0.1, 100).Draw(t, "mean"), rapid.Float64Range(0, 0.9).Draw(t, "deviation"))
		p.TasksLeft = rapid.IntRange(0, 200).Draw(t, "left")
		if i == Map || j.Phases[Map].TasksLeft == 0 {
			p.Running = min(p.TasksLeft, slots)
		}
		for range p.Running {
			p.Ages = append(p.Ages, Duration(rapid.Float64Range(0, 100).Draw(t, "age")))
		}
	}
	return c, j
}

// predictOne returns the estimate of the only job.
func predictOne(c Cluster, j Job) Estimate { return Predict(&c, []Job{j})[0] }

// relativeWidth is the width of a range as a fraction of the time left.
func relativeWidth(e *Estimate, now time.Duration) float64 {
	return (e.Range.Latest - e.Range.Earliest).Seconds() / (e.Range.Likely - now).Seconds()
}

// TestRangeOrder: the likely end is in its range, which is in the future. Without a measurement there is no
// range while tasks are left.
func TestRangeOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, j := drawAlone(t)
		e := predictOne(c, j)
		r := e.Range
		if unknown := r == (Range{}); unknown != (!e.Measured && e.TasksLeft != [2]int{}) {
			t.Fatalf("unknown: %v; %+v", unknown, e)
		} else if unknown {
			return
		}
		if r.Likely != e.End || r.Earliest < c.Now || r.Earliest > r.Likely || r.Latest < r.Likely {
			t.Fatalf("now %v, end %v: %+v", c.Now, e.End, r)
		}
	})
}

// TestRangeNarrows: with more measured tasks, or fewer tasks left, the range is not wider.
func TestRangeNarrows(t *testing.T) {
	task := func(measured, left int) Job {
		m := measuredTasks(measured, 10, 0.3)
		return Job{N: 1, Active: true, Workers: 4, Phases: [2]Phase{{TaskTimes: TaskTimes{Measured: m}, TasksLeft: left}}}
	}
	c := cluster()
	last := 1e9
	for _, measured := range []int{2, 4, 8, 16, 32} {
		e := predictOne(c, task(measured, 100))
		if w := relativeWidth(&e, c.Now); w >= last {
			t.Errorf("%d measured tasks: width %.3f of the time left, with fewer %.3f", measured, w, last)
		} else {
			last = w
		}
	}
	widest := time.Duration(1 << 62)
	for _, left := range []int{400, 100, 40, 10, 4} {
		r := predictOne(c, task(16, left)).Range
		if w := r.Latest - r.Earliest; w >= widest {
			t.Errorf("%d tasks left: width %v, with more %v", left, w, widest)
		} else {
			widest = w
		}
	}
	known := task(0, 100)
	m := measuredTasks(16, 10, 0.3)
	known.Phases[Map].Past, known.Phases[Map].PastOf = history.Usual{}.After(&m.All, 0), earlier
	e := predictOne(c, known)
	if few := predictOne(c, task(2, 100)); !e.Measured || relativeWidth(&e, c.Now) >= relativeWidth(&few, c.Now) {
		t.Errorf("with the tasks of an earlier job the width is %.3f, with two measured tasks %.3f", relativeWidth(&e, c.Now), relativeWidth(&few, c.Now))
	}
}

// TestRangeOfOthers: a job that waits for the unmeasured tasks of another one has a wider range than one
// that waits for measured ones.
func TestRangeOfOthers(t *testing.T) {
	c := cluster()
	width := func(first Job) float64 {
		next := job(2, 4, 0)
		next.Rank = [2]int{1, 1}
		e := Predict(&c, []Job{first, next})[1]
		return relativeWidth(&e, c.Now)
	}
	measured, guessed := job(1, 40, 0), job(1, 40, 0)
	guessed.Phases = [2]Phase{{TasksLeft: 80}} // 5 s each by the fallback
	if a, b := width(measured), width(guessed); a >= b {
		t.Errorf("behind measured tasks the width is %.3f, behind unmeasured ones %.3f", a, b)
	}
}

// simulated plays tasks in slots: each free slot takes the next task. It returns the begin and the end of
// each task.
func simulated(tasks, slots int, draw func() float64) (begins, ends []float64) {
	free := make([]float64, slots)
	for range tasks {
		first := 0
		for i, at := range free {
			if at < free[first] {
				first = i
			}
		}
		begins = append(begins, free[first])
		free[first] += draw()
		ends = append(ends, free[first])
	}
	return begins, ends
}

// TestRangeHolds plays jobs that are alone, and predicts their ends at half of their lives. The ranges hold the
// ends of nine of ten. Three of four are at most a quarter of the life wide on either side of their middle.
func TestRangeHolds(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 8))
	const jobs = 600
	held, narrow, total := 0, 0, 0
	for range jobs {
		slots := 1 + rnd.IntN(20)
		deviation := 0.1 + 0.4*rnd.Float64()
		draw := func() float64 { return 10 * max(0.1, 1+deviation*rnd.NormFloat64()) }
		if rnd.IntN(2) == 0 {
			draw = func() float64 { return 10 * math.Exp(deviation*rnd.NormFloat64()) }
		}
		begins, ends := simulated(slots*(2+rnd.IntN(8)), slots, draw)
		life := slices.Max(ends)
		now := life / 2
		p := Phase{}
		for i := range ends {
			switch {
			case ends[i] <= now:
				p.count(Duration(ends[i]-begins[i]), false)
				continue
			case begins[i] <= now:
				p.Running++
				p.Ages = append(p.Ages, Duration(now-begins[i]))
			}
			p.TasksLeft++
		}
		if p.All.Tasks == 0 {
			continue
		}
		c := Cluster{Now: Duration(now), Slots: [2]int{slots, 0}}
		r := predictOne(c, Job{N: 1, Active: true, Workers: slots, Phases: [2]Phase{p}}).Range
		total++
		if end := Duration(life); r.Earliest <= end && end <= r.Latest {
			held++
		}
		if (r.Latest-r.Earliest).Seconds()/2 <= life/4 {
			narrow++
		}
	}
	t.Logf("%d of %d ranges hold the end, %d are narrow", held, total, narrow)
	if held < total*9/10 || narrow < total*3/4 {
		t.Errorf("%d of %d ranges hold the end, %d are narrow; want nine and seven and a half of ten", held, total, narrow)
	}
}

// TestRangeScales: if everything takes k times longer, so does the rest of each end of the range.
func TestRangeScales(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, j := drawAlone(t)
		k := rapid.IntRange(2, 50).Draw(t, "k")
		longer := j
		for i := range longer.Phases {
			p := &longer.Phases[i]
			if n := p.All.Tasks; n > 0 {
				p.Measured = measuredTasks(n, p.All.Mean().Seconds()*float64(k), p.All.Deviation())
			}
			p.Ages = slices.Clone(p.Ages)
			for a := range p.Ages {
				p.Ages[a] *= time.Duration(k)
			}
		}
		one, many := predictOne(c, j), predictOne(c, longer)
		if !one.Measured || one.Tasks[Reduce].Source != sourceMeasured || one.Tasks[Map].Source != sourceMeasured {
			return // defaults do not scale
		}
		for _, pair := range [][2]time.Duration{
			{one.Range.Earliest, many.Range.Earliest}, {one.Range.Likely, many.Range.Likely}, {one.Range.Latest, many.Range.Latest},
		} {
			if want, got := float64(k)*(pair[0]-c.Now).Seconds(), (pair[1] - c.Now).Seconds(); got < 0.99*want-0.01 || got > 1.01*want+0.01 {
				t.Fatalf("%d times longer: %v after now, not %v\n%+v\n%+v", k, got, want, one, many)
			}
		}
	})
}

// TestSoonest: tasks of other jobs give an unmeasured job an earliest end, but no range. A default time gives neither.
func TestSoonest(t *testing.T) {
	c := cluster()
	unmeasured := Job{N: 1, Active: true, Workers: 9, Phases: [2]Phase{{TasksLeft: 400}}}
	if e := predictOne(c, unmeasured); e.Range != (Range{}) || e.Soonest <= c.Now || e.Soonest > e.End {
		t.Errorf("other jobs have task times: %+v", e)
	}
	c.Fallback[Map].Source = sourceDefault
	if e := predictOne(c, unmeasured); e.Range != (Range{}) || e.Soonest != 0 {
		t.Errorf("no task times are known: %+v", e)
	}
	if e := predictOne(c, job(1, 400, 0)); e.Range == (Range{}) || e.Soonest != 0 {
		t.Errorf("measured: %+v", e)
	}
}
