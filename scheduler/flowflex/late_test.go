package flowflex

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/quernmr/quern/scheduler"
)

// TestExpected: a step cost becomes its mean over lateFactors, and other costs do not change.
func TestExpected(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string, least, most int) float64 {
			return float64(rapid.IntRange(least, most).Draw(t, name)) / 8
		}
		c := scheduler.Cost{
			Penalty: rapid.SampledFrom([]scheduler.Penalty{scheduler.Response, scheduler.Tardy, scheduler.Tardiness, scheduler.SLA}).Draw(t, "penalty"),
			Weight:  draw("weight", 1, 80), Due: draw("due", -80, 800),
		}
		due, cost := draw("first", -160, 400), 0.0
		for range rapid.IntRange(0, 5).Draw(t, "levels") {
			cost += draw("cost", 0, 80)
			c.Levels = append(c.Levels, scheduler.Level{Due: due, Cost: cost})
			due += draw("gap", 0, 240)
		}
		made, at := expectedCost(c), draw("at", 0, 1600)
		if err := checkCost(made); err != nil {
			t.Fatal(err)
		}
		want := 0.0
		for _, factor := range lateFactors {
			if !c.IsStep() {
				factor = 1
			}
			want += c.At(at*factor) / float64(len(lateFactors))
		}
		if got := made.At(at); math.Abs(got-want) > 1e-9*(1+want) {
			t.Fatalf("%+v at %v: %v, want %v", c, at, got, want)
		}
	})
}
