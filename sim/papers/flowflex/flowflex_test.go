package flowflex

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/quernmr/quern/scheduler"
	"github.com/quernmr/quern/scheduler/flowflex"
	"github.com/quernmr/quern/sim/papers"
)

// TestWorkloads: the drawn flows follow section 5.1 under every reading.
func TestWorkloads(t *testing.T) {
	for _, rd := range append(otherReadings(), chosenReading()) {
		for i := range 50 {
			w := rd.workload(papers.Rand(1, rd.name, i))
			if len(w.flows) < 5 || len(w.flows) > 20 {
				t.Fatalf("%s: %d flows", rd.name, len(w.flows))
			}
			for k, f := range w.flows {
				checkFlow(t, rd, f)
				checkGoals(t, f, w.goals[k])
			}
		}
	}
}

func checkFlow(t *testing.T, rd reading, f flowflex.Flow) {
	t.Helper()
	if len(f.Jobs) < 2 || len(f.Jobs) > 20 {
		t.Fatalf("%s: %d jobs", rd.name, len(f.Jobs))
	}
	followed := make([]bool, len(f.Jobs))
	for k, j := range f.Jobs {
		if j.Max < 1 || j.Max > slots || j.Work < float64(j.Max) || j.Work > float64(1000*j.Max) {
			t.Fatalf("%s: %+v", rd.name, j)
		}
		for _, before := range j.After {
			if before >= k {
				t.Fatalf("%s: job %d after %d", rd.name, k, before)
			}
			followed[before] = true
		}
	}
	if last := len(followed) - 1; slices.Contains(followed[:last], false) || followed[last] {
		t.Fatalf("%s: ends in %v", rd.name, followed)
	}
}

func checkGoals(t *testing.T, f flowflex.Flow, g goals) {
	t.Helper()
	alone, volume := measure(f)
	switch {
	case volume != g.volume || alone < volume/slots:
		t.Fatalf("volume %v, alone %v: %+v", volume, alone, g)
	case g.deadline < alone || g.deadline > 2*alone:
		t.Fatalf("deadline %v, alone %v", g.deadline, alone)
	case g.weight < 1 || g.weight > 10:
		t.Fatalf("weight %v", g.weight)
	case len(g.steps) < 1 || len(g.steps) > 5 || !slices.IsSorted(g.steps) || g.steps[0] < alone:
		t.Fatalf("steps %v, alone %v", g.steps, alone)
	}
}

// TestMetrics: nine sums and eight maxima, as in Figures 10 and 11.
func TestMetrics(t *testing.T) {
	if len(sums()) != 9 || len(maxima()) != 8 {
		t.Fatalf("%v, %v", sums(), maxima())
	}
	for _, m := range append(sums(), maxima()...) {
		if parsed, err := scheduler.ParseMetric(m.String()); err != nil || parsed != m {
			t.Fatalf("%v: %v, %v", m, parsed, err)
		}
	}
}

// TestBands: FlowFlex is within the bands over 25 experiments. Each has at most ten flows,
// because the integral bound takes 2^m steps.
func TestBands(t *testing.T) {
	results, err := papers.Each(t.Context(), nil, defaultExperiments, func(i int) (outcome, error) {
		w := chosenReading().workload(papers.Rand(1, "flows", i))
		m := min(10, len(w.flows))
		w.flows, w.goals = w.flows[:m], w.goals[:m]
		return experiment(w, false)
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range append(sums(), maxima()...) {
		if average := papers.Mean(series(results, key{m, policyFlowFlex, raisedBound})); average > high(m) || average < 1 {
			t.Errorf("%v: %v, at most %v", m, average, high(m))
		}
	}
}

// TestSimulate runs an experiment with few flows: all rows exist and can be written, and
// FlowFlex beats both ready lists.
func TestSimulate(t *testing.T) {
	report, err := Simulate(t.Context(), papers.Options{Seed: 154, Experiments: 1})
	if err != nil {
		t.Fatal(err)
	}
	want := 9*15 + 8*12 + 17*len(variants()) + 17*3*len(otherReadings())
	if len(report.Rows) != want {
		t.Errorf("%d rows, not %d", len(report.Rows), want)
	}
	for _, m := range append(sums(), maxima()...) {
		f := figures{report}
		ratio := *f.row(figureOf(m), m, policyFlowFlex, "avg_ratio").Value
		for _, policy := range []string{policyFair, policyFIFO} {
			if other := *f.row(figureOf(m), m, policy, "avg_ratio").Value; ratio > other+1e-9 || ratio < 1-1e-9 {
				t.Errorf("%v: FlowFlex %v, %s %v", m, ratio, policy, other)
			}
		}
	}
	var lines bytes.Buffer
	if err := report.WriteJSON(&lines); err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(lines.Bytes()) {
		var row papers.Row
		if err := json.Unmarshal(line, &row); err != nil || row.Value == nil || *row.Value < 1-1e-9 {
			t.Errorf("%s: %v", line, err)
		}
	}
	var page bytes.Buffer
	if err := WritePage(&page, report, "plots"); err != nil {
		t.Fatal(err)
	}
	if text := page.String(); strings.Contains(text, "| –, ") || strings.Contains(text, "NaN") {
		t.Errorf("page:\n%s", text)
	}
	if _, err := report.WriteCharts(t.TempDir()); err != nil {
		t.Fatal(err)
	}
}

// TestExperimentsAreRepeatable: results do not depend on other experiments.
func TestExperimentsAreRepeatable(t *testing.T) {
	w := chosenReading().workload(papers.Rand(1, "again", 0))
	w.flows, w.goals = w.flows[:5], w.goals[:5]
	first, err := experiment(w, true)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := experiment(w, true); err != nil || !reflect.DeepEqual(again, first) {
		t.Fatalf("%v, %v, then %v", err, again, first)
	}
}

// BenchmarkRelaxation measures the deadlines of the relaxation for flows of 20 jobs each.
func BenchmarkRelaxation(b *testing.B) {
	for _, m := range sums() {
		if !m.Weighted {
			continue
		}
		for _, flows := range []int{25, 50, 100} {
			b.Run(fmt.Sprintf("%v/flows=%d", m, flows), func(b *testing.B) {
				r := papers.Rand(1, "bench", flows)
				var w workload
				for range flows {
					f := chosenReading().dag(r, 20)
					w.flows, w.goals = append(w.flows, f), append(w.goals, drawGoals(r, f))
				}
				p := w.problem(m)
				for b.Loop() {
					if _, err := relaxedDeadlines(p); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
