package overlap

import (
	"bytes"
	"context"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/quernmr/quern/sim/papers"
)

// TestFigures runs every figure on few arrivals: each has a value, a seed is repeatable, and
// the page can be written. With few arrivals only the order of policies is checked, not the
// bands.
func TestFigures(t *testing.T) {
	ctx := context.Background()
	o := papers.Options{Seed: 1}
	r, err := simulate(ctx, o, 10000)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range r.Rows {
		if row.Value == nil && !strings.Contains(row.Point, "size") {
			t.Errorf("%+v has no value", row)
		}
	}
	for _, load := range []string{"load=0.75", "load=0.90"} {
		mean := func(policy string) float64 { return *r.Find(figMean, load, policy, "mean").Value }
		if !(mean(boundName) < mean(maxSRPTName) && mean(boundName) < mean(srptName) && mean(maxSRPTName) < mean(splitName) && mean(splitName) < mean(lpsName)) {
			t.Errorf("%s: the policies are in an unexpected order", load)
		}
	}
	again, err := simulate(ctx, o, 10000)
	if err != nil || !reflect.DeepEqual(r.Rows, again.Rows) {
		t.Errorf("another result from the same seed: %v", err)
	}
	var page bytes.Buffer
	if err := writePage(&page, r, ".", 1000); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| 0.75 | k-LPS | ", "| 0.25–0.5 |", "| 0.9 balanced |", "SplitSRPT, strict"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := simulate(ctx, o, 10000); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// TestWorkload: means and deviations are the paper's. It computes them from logarithms, because
// the deviations of the variables converge too slowly.
func TestWorkload(t *testing.T) {
	s := &source{workload: paperWorkload(0.75), rand: papers.Rand(1, "overlap", 0)}
	jobs := make([]arrival, 400000)
	s.fill(jobs)
	checkNear := func(what string, got, want, within float64) {
		if math.Abs(got-want) > within {
			t.Errorf("%s is %v, want %v", what, got, want)
		}
	}
	for _, v := range []struct {
		name      string
		of        func(arrival) float64
		deviation float64
	}{
		{"x", func(a arrival) float64 { return a.x }, 3.65},
		{"y/x", func(a arrival) float64 { return a.ratio }, 3.28},
		{"y", func(a arrival) float64 { return a.x * a.ratio }, 12.95},
	} {
		sum, squares := 0.0, 0.0
		for _, a := range jobs {
			l := math.Log(v.of(a))
			sum += l
			squares += l * l
		}
		n := float64(len(jobs))
		mean, variance := sum/n, squares/n-sum/n*sum/n
		checkNear(v.name+"'s mean", math.Exp(mean+variance/2), 1, 0.03)
		checkNear(v.name+"'s deviation", math.Sqrt(math.Expm1(variance)), v.deviation, 0.03*v.deviation)
	}
	checkNear("arrival rate", float64(len(jobs))/jobs[len(jobs)-1].at, 0.75, 0.01)
}

// TestFigure9Classes: every job is in one class, thin or wide.
func TestFigure9Classes(t *testing.T) {
	var all tally
	for _, size := range []float64{0.1, 0.25, 0.3, 3, 99.99, 100, 1e6, 1e30} {
		all.count(size, 2*size)
	}
	jobs := 0
	for i, from := range wideEdges {
		to := -1.0
		if i+1 < len(wideEdges) {
			to = wideEdges[i+1]
		}
		jobs += all.between(from, to).jobs
	}
	if jobs != 8 || all.between(0.25, 0.5).jobs != 2 || all.between(100, -1).jobs != 3 || all.between(2, 4).mean() != 2 {
		t.Errorf("%d jobs in wide classes: %+v", jobs, all.between(0.25, 0.5))
	}
	if better, half, worse := compareThin(&all, &all); better != 0 || half != 0 || worse != 0 {
		t.Errorf("against itself: %v %v %v", better, half, worse)
	}
}
