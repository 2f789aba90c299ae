package hmhs

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/quernmr/quern/sim/papers"
)

// TestBatches checks the paper's distributions (section 4.1).
func TestBatches(t *testing.T) {
	for _, w := range workloads() {
		b := w.batch(1000, cluster{slow: 0.4}, papers.Rand(1, "batches", 0))
		if err := b.Check(); err != nil {
			t.Fatal(err)
		}
		long, large, slow := 0, 0, 0
		for _, j := range b.Jobs {
			if j.Map.Time > 45 {
				long++
			}
			if j.Map.Tasks > 300 {
				large++
			}
		}
		for _, f := range b.Jobs[0].Map.Factor[:41] {
			if f >= 0.9 {
				slow++
			}
		}
		if long != int(1000*w.long) || large != int(1000*w.large) || slow < 40 {
			t.Errorf("%s: %d long, %d large, %d slow", w.name, long, large, slow)
		}
	}
}

// TestSimulate runs ten small batches a point: figures are in their bands, a seed is
// repeatable, and the page has every figure.
func TestSimulate(t *testing.T) {
	o := papers.Options{Seed: 3, Experiments: leastForBand}
	s := &simulation{context.Background(), o, &papers.Report{Options: o}, []int{50, 100}}
	if err := papers.RunFigures(s.gains, s.slow); err != nil {
		t.Fatal(err)
	}
	r := s.report
	tested := 0
	for _, row := range r.Rows {
		if banded, ok := row.Within(); banded {
			tested++
			if !ok {
				t.Errorf("%s %s against %s: %v, want %v to %v", row.Figure, row.Point, row.Policy, *row.Value, *row.Low, *row.High)
			}
		}
	}
	if want := 2*2*3 + 2*6; tested != want {
		t.Errorf("%d figures have bands, want %d", tested, want)
	}
	widths := make(map[string]float64)
	for _, row := range r.Rows {
		if row.Low != nil && row.Policy == "FIFO" {
			widths[row.Figure+" "+row.Point] = *row.High - *row.Low
		}
	}
	for _, w := range []string{"single", "hybrid"} {
		if a, b := widths[figGains+" "+w+" jobs=100"], widths[figSlow+" "+w+" slow=0%"]; math.Abs(a-b) > 1e-9 {
			t.Errorf("%s: the same batches have bands of %v and %v", w, a, b)
		}
	}
	s = &simulation{context.Background(), papers.Options{Seed: 3, Experiments: 1}, r, []int{20}}
	if err := papers.RunFigures(s.readings, s.options, s.measured); err != nil {
		t.Fatal(err)
	}
	for i, want := range []float64{*r.Rows[0].Value, *r.Rows[1].Value} {
		s := &simulation{context.Background(), o, new(papers.Report), []int{50}}
		if err := papers.RunFigures(s.gains); err != nil || *s.report.Rows[i].Value != want {
			t.Errorf("the same seed gives other figures: %v", err)
		}
	}
	var page bytes.Buffer
	if err := WritePage(&page, r, "plots"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| hybrid jobs=100 |", "| single slow=100% |", "](plots/hmhs-2-heterogeneity.svg)", "| hybrid, factors by machine |"} {
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

// BenchmarkSolve is Min-Min, Pri and Dynamic-Min-Min on 100 and 100 machines.
func BenchmarkSolve(b *testing.B) {
	for _, w := range workloads() {
		for _, jobs := range []int{100, 500} {
			batch := w.batch(jobs, cluster{}, papers.Rand(1, "bench", 0))
			for name, h := range map[string]heuristic{"hmhs": plainHMHS, "fifo": plainFIFO} {
				b.Run(fmt.Sprintf("%s/%s/jobs=%d", name, w.name, jobs), func(b *testing.B) {
					for b.Loop() {
						if _, err := solve(batch, h); err != nil {
							b.Fatal(err)
						}
					}
				})
			}
		}
	}
}
