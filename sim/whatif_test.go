package sim

import (
	"testing"

	"github.com/quernmr/quern/scheduler/whatif"
)

// TestSwitched: what is predicted when the scheduler changes compares schedulers as the runs do, for four of five pairs or
// more. The figures over more mixes are in docs/benchmarks.md.
func TestSwitched(t *testing.T) {
	withoutRace(t)
	var response, stretch Agreement
	for seed := range uint64(2) {
		all, err := Switched{Seed: seed + 1, Jobs: 12, Schedulers: []string{"fifo", "fair", "flex", "hmhs"}}.Run()
		if err != nil {
			t.Fatal(err)
		}
		response.Add(all, func(s *whatif.Summary) float64 { return s.MeanResponse })
		stretch.Add(all, func(s *whatif.Summary) float64 { return s.MeanStretch })
	}
	for _, a := range []*Agreement{&response, &stretch} {
		t.Logf("%d of %d pairs agree, %d of %d best ones, error %.3f", a.Agreed, a.Pairs, a.Best, a.Mixes, a.Error())
		if a.Agreed*5 < a.Pairs*4 || a.Pairs < 4 || a.Best < a.Mixes || a.Error() > 0.2 {
			t.Errorf("%d of %d pairs agree, %d of %d best ones, error %.3f", a.Agreed, a.Pairs, a.Best, a.Mixes, a.Error())
		}
	}
}
