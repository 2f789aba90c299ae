package sim

import "testing"

// TestMixes: over 240 jobs of most different sizes, three of four ranges that are predicted at half of a job's
// life hold its true end, and ranges narrow. The figures are in docs/benchmarks.md.
func TestMixes(t *testing.T) {
	withoutRace(t)
	var all []*Predicted
	for i, scheduler := range []string{"fair", "flex"} {
		jobs, err := Mix{Seed: uint64(i + 1), Jobs: 120, Scheduler: scheduler}.Run()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, jobs...)
	}
	last := 1.0
	for _, at := range []float64{0.25, 0.5, 0.75} {
		j := Judge(all, at)
		t.Logf("at %.2f: %+v", at, j)
		if at == 0.5 && j.Held*4 < j.Jobs*3 || j.Width >= last {
			t.Errorf("at %.2f of the jobs' lives: %+v; the median width was %.2f before", at, j, last)
		}
		last = j.Width
	}
}
