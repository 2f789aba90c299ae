package forecast

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// near reports whether moments are about those of a sample, within a part of its mean.
func near(t *testing.T, what string, m moments, sample []float64, part float64) {
	t.Helper()
	mean, variance := 0.0, 0.0
	for _, x := range sample {
		mean += x / float64(len(sample))
	}
	for _, x := range sample {
		variance += square(x-mean) / float64(len(sample))
	}
	if math.Abs(m.mean-mean) > part*mean+0.05 || math.Abs(math.Sqrt(m.variance)-math.Sqrt(variance)) > 2*part*math.Sqrt(variance)+part*mean/2+0.05 {
		t.Errorf("%s: mean %.2f and deviation %.2f, simulated %.2f and %.2f", what, m.mean, math.Sqrt(m.variance), mean, math.Sqrt(variance))
	}
	slices.Sort(sample)
	for _, q := range []struct{ z, part float64 }{{-1.645, 0.05}, {0, 0.5}, {1.645, 0.95}} {
		if got, want := m.quantile(q.z), sample[int(q.part*float64(len(sample)))]; math.Abs(got-want) > 2*part*max(mean, want)+0.05 {
			t.Errorf("%s: the quantile %v is %.2f, simulated %.2f", what, q.part, got, want)
		}
	}
}

// TestMoments: sums and products have the moments of sums and products of numbers.
func TestMoments(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	const runs = 50_000
	logNormal := func(mean, relative float64) float64 {
		v := math.Log1p(relative * relative)
		return mean * math.Exp(math.Sqrt(v)*rnd.NormFloat64()-v/2)
	}
	sample := make([]float64, runs)
	for i := range sample {
		sample[i] = (logNormal(10, 0.3)+logNormal(5, 0.5))*logNormal(1, 0.2) + 7
	}
	near(t, "a sum times a factor", spread(10, 0.3).plus(spread(5, 0.5)).times(0.2).plus(certain(7)), sample, 0.02)
	if m := certain(3); m.quantile(-5) != 3 || m.quantile(2) != 3 || m.minus(1) != certain(2) {
		t.Errorf("a certain number: %+v", m)
	}
	rapid.Check(t, func(t *rapid.T) {
		m := spread(rapid.Float64Range(0.001, 1e6).Draw(t, "mean"), rapid.Float64Range(0, 2).Draw(t, "relative")).
			plus(spread(rapid.Float64Range(0.001, 1e6).Draw(t, "other"), rapid.Float64Range(0, 2).Draw(t, "its relative")))
		last := math.Inf(-1)
		for z := -2.5; z <= 2.5; z += 0.1 {
			x := m.quantile(z)
			if x < last-1e-9 || math.IsNaN(x) {
				t.Fatalf("%+v: the quantile at %.1f is %v, before %v", m, z, x, last)
			}
			last = x
		}
	})
}

// draws returns a function that draws the time of a task, which is log-normal.
func (t *Task) draws(rnd *rand.Rand) func() float64 {
	mu, sigma := t.logNormal()
	return func() float64 { return math.Exp(mu + sigma*rnd.NormFloat64()) }
}

// TestLongest compares the time of the longest of several tasks with simulations.
func TestLongest(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for _, deviation := range []float64{0.1, 0.3, 0.6} {
		task := Task{Time: 10 * second, Deviation: deviation}
		draw := task.draws(rnd)
		for _, n := range []int{1, 2, 5, 20, 100} {
			sample := make([]float64, 4000)
			for i := range sample {
				for range n {
					sample[i] = max(sample[i], draw())
				}
			}
			near(t, "the longest", task.longest(n), sample, 0.03)
		}
	}
}

// TestRests compares the rest of the longest of running tasks with simulations, given how long they have run.
func TestRests(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	for _, deviation := range []float64{0.1, 0.3, 0.6} {
		task := Task{Time: 10 * second, Deviation: deviation}
		draw := task.draws(rnd)
		for _, n := range []int{1, 3, 12, 60} {
			p := Phase{Running: n, TasksLeft: n}
			for i := range n {
				p.Ages = append(p.Ages, Duration(float64(i%8)*1.4))
			}
			sample := make([]float64, 3000)
			for i := range sample {
				for _, age := range p.Ages {
					x := draw()
					for x < age.Seconds() {
						x = draw()
					}
					sample[i] = max(sample[i], x-age.Seconds())
				}
			}
			near(t, "the last of the running tasks", p.lastEnd(task), sample, 0.05)
		}
	}
	overdue := Phase{Running: 1, TasksLeft: 1, Ages: []time.Duration{1e5 * second}}
	if m := overdue.lastEnd(Task{Time: second, Deviation: 0.1, Error: 0.1}); !(m.mean >= 0 && m.mean < 1e7) {
		t.Errorf("a task that has run for a day: %+v", m)
	}
	if p := (Phase{TasksLeft: 5000, Running: 5000}); p.lastEnd(Task{Time: 10 * second}).mean < 10 {
		t.Error("running tasks without ages do not count as begun together")
	}
}

// TestLastTasks compares the delay of the last tasks relative to tasks that can be divided with simulations.
func TestLastTasks(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 8))
	const runs, waves = 300, 20
	for _, deviation := range []float64{0.01, 0.3, 0.6} {
		task := Task{Time: 10 * second, Deviation: deviation}
		draw := task.draws(rnd)
		for _, slots := range []int{1, 2, 10, 50} {
			sample := make([]float64, runs)
			for i := range sample {
				free := make([]float64, slots)
				for k := range free { // their previous tasks end at different times
					free[k] = 10 * rnd.Float64()
				}
				fluid := 0.0
				for _, at := range free {
					fluid += at / float64(slots)
				}
				for range waves * slots {
					first := 0
					for k, at := range free {
						if at < free[first] {
							first = k
						}
					}
					x := draw()
					free[first] += x
					fluid += x / float64(slots)
				}
				sample[i] = slices.Max(free) - fluid
			}
			mean := 0.0
			for _, x := range sample {
				mean += x / runs
			}
			if got := task.lastTasks(slots).mean; math.Abs(got-mean) > 0.8+0.1*mean {
				t.Errorf("deviation %v, %d slots: delay %.2f s, simulated %.2f s", deviation, slots, got, mean)
			}
		}
	}
}
