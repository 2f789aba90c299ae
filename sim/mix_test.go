package sim

import "testing"

// TestMixes: over 240 jobs of most different sizes, nine of ten ranges of predicted ends hold the true end, at
// half of a job's life and around it. At half of its life nine of ten are at most a quarter of the life wide,
// on either side of their middle, if a job with the same name was known; and they narrow.
func TestMixes(t *testing.T) {
	withoutRace(t)
	var all, known []*Predicted
	for i, scheduler := range []string{"fair", "flex"} {
		jobs, err := Mix{Seed: uint64(i + 1), Jobs: 120, Scheduler: scheduler}.Run()
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range jobs {
			if all = append(all, p); p.Known {
				known = append(known, p)
			}
		}
	}
	last := 1.0
	for _, at := range []float64{0.25, 0.5, 0.75} {
		j, k := Judge(all, at), Judge(known, at)
		t.Logf("at %.2f: all %+v; with a known name %+v", at, j, k)
		if k.Held*10 < k.Jobs*9 || j.Width >= last {
			t.Errorf("at %.2f of the jobs' lives: all %+v; with a known name %+v; the median width was %.2f before", at, j, k, last)
		}
		last = j.Width
	}
	if j, k := Judge(all, 0.5), Judge(known, 0.5); j.Held*10 < j.Jobs*9 || k.Narrow*10 < k.Jobs*9 {
		t.Errorf("at half of the jobs' lives: all %+v; with a known name %+v", j, k)
	}
}
