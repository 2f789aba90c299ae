package flex

import (
	"bytes"
	"context"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/quernmr/quern/scheduler"
	"github.com/quernmr/quern/scheduler/flex"
	"github.com/quernmr/quern/sim/papers"
)

// TestInstances checks the paper's rules of section 4.1.
func TestInstances(t *testing.T) {
	for _, slack := range []float64{0, 0.5, 0.75, 1} {
		sh := base
		sh.slack = slack
		minima, works := 0, 0.0
		for i := range 200 {
			in, err := sh.generate(papers.Rand(1, "instances", i))
			if err != nil {
				t.Fatal(err)
			}
			total, used := 0.0, 0
			for j, job := range in.jobs {
				total += job.Work
				used += job.Min
				if job.Min < 1 || job.Min > job.Max || job.Max > in.slots || !(job.Work > 0) {
					t.Fatalf("job %+v", job)
				}
				if j >= 8 {
					works += job.Work
				}
				if !(in.weights[j] > 0 && in.weights[j] <= 1) || in.deadlines[j] < 0 || in.deadlines[j] > 10 {
					t.Fatalf("weight %v, due %v", in.weights[j], in.deadlines[j])
				}
				if !slices.IsSortedFunc(in.levels[j], func(a, b scheduler.Level) int {
					if a.Due > b.Due || a.Cost > b.Cost {
						return 1
					}
					return -1
				}) {
					t.Fatalf("levels %v", in.levels[j])
				}
			}
			if used > in.slots || math.Abs(total-totalWork) > 1e-6 {
				t.Fatalf("minima of %d, work of %v", used, total)
			}
			minima += used
		}
		if share := works / 200 / totalWork; share < 0.68 || share > 0.75 { // 20 of 28
			t.Errorf("large jobs have %v of the work", share)
		}
		if mean := float64(minima) / 200; slack > 0 && math.Abs(mean-max(10, 100*(1-slack))) > 5 {
			t.Errorf("slack %v: minima of %v on average", slack, mean)
		}
	}
}

// TestClosedLoop: FIFO allocated again at every end is MPS without minima in order of arrival
// (section 4).
func TestClosedLoop(t *testing.T) {
	for i := range 50 {
		in, err := base.generate(papers.Rand(1, "loop", i))
		if err != nil {
			t.Fatal(err)
		}
		ends, err := in.closedLoop(scheduler.FIFO{})
		if err != nil {
			t.Fatal(err)
		}
		p := in.problem(response)
		for j := range p.Jobs {
			p.Jobs[j].Min = 0
		}
		want := flex.Pack(p, in.arrival).Ends
		if !slices.EqualFunc(ends, want, func(a, b float64) bool { return math.Abs(a-b) < 1e-6 }) {
			t.Fatalf("ends %v, want %v", ends, want)
		}
	}
}

// TestBase: a batch reproduces the paper's figures of the base case.
func TestBase(t *testing.T) {
	all, err := papers.Each(t.Context(), nil, batch, func(i int) ([]outcome, error) {
		in, err := base.generate(papers.Rand(1, "flex "+figBase, i))
		if err != nil {
			return nil, err
		}
		return in.experiment([]scheduler.Metric{response}, true, fifo, fair)
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		policy    string
		low, high float64 // of the average
		worst     float64
	}{{fifo, 1.83, 2.08, 3.8}, {fair, 1.51, 1.57, 1.7}, {flexFull, 1 - 1e-9, 1.001, 1.001}} {
		values, leftOut := ratios(all, 0, c.policy)
		average, worst := papers.Mean(values), papers.Largest(values)
		if leftOut > 0 || average < c.low || average > c.high || worst > c.worst {
			t.Errorf("%s: %v on average, %v at worst, %d left out", c.policy, average, worst, leftOut)
		}
	}
}

// TestSimulate runs few experiments: FLEX's figures are in their bands, a seed is repeatable,
// and the page has every figure.
func TestSimulate(t *testing.T) {
	o := papers.Options{Seed: 3, Experiments: 2}
	r := &papers.Report{Options: o}
	if err := (&simulation{ctx: context.Background(), o: o, report: r, optimumJobs: 8, sizes: []int{20, 50}}).all(); err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]bool)
	for _, row := range r.Rows {
		seen[row.Figure+" "+row.Point] = true
		if tested, ok := row.Within(); row.Policy == flexFull && tested && !ok {
			t.Errorf("%+v is outside its band: %v", row, *row.Value)
		}
	}
	for _, want := range []string{"base slack=75", "5a-slack slack=0", "5b-small small=90", "5c-metrics max-stretch", "large jobs=50", "coarse as solved"} {
		if !seen[want] {
			t.Errorf("%s is missing", want)
		}
	}
	again := &simulation{ctx: context.Background(), o: o, report: new(papers.Report)}
	if err := again.base(); err != nil {
		t.Fatal(err)
	}
	if rows := again.report.Rows; !reflect.DeepEqual(rows, r.Rows[:len(rows)]) {
		t.Error("the same seed gives other figures")
	}
	var page bytes.Buffer
	if err := writePage(&page, r, "plots", []int{10}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"## Metrics (Fig. 5c)", "| max-stretch |", "](plots/flex-5a-slack.svg)", "| 3.33, any ordering | 3.00, by fair |", "30.00 with slots [9 1] | 4.29 with slots [3 7]"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

func TestSimulateStops(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Simulate(ctx, papers.Options{}); err == nil {
		t.Error("a cancelled simulation returns no error")
	}
}
