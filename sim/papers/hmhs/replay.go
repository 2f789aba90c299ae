package hmhs

import (
	"fmt"
	"slices"

	"github.com/quernmr/quern/scheduler/hmhs"
)

// replay runs the queues of s on another batch of the same jobs and machines: if s was made from
// estimates, on the true batch. Each machine keeps its order, and a reduce waits for the last
// map of its job. O(T log M).
func replay(b *hmhs.Batch, s *schedule) (*schedule, error) {
	if err := b.Check(); err != nil {
		return nil, err
	}
	if len(s.Maps) != len(b.Maps) || len(s.Reduces) != len(b.Reduces) || len(s.Ends) != len(b.Jobs) {
		return nil, fmt.Errorf("schedule of %d jobs on %d and %d machines, batch of %d on %d and %d",
			len(s.Ends), len(s.Maps), len(s.Reduces), len(b.Jobs), len(b.Maps), len(b.Reduces))
	}
	r := &schedule{Order: s.Order, Maps: s.Maps, Reduces: s.Reduces, Mapped: make([]float64, len(b.Jobs))}
	maps, reduces := b.MapStages(), b.ReduceStages()
	for m, runs := range r.Maps {
		hmhs.Simulate(b.Maps[m], m, runs, maps, nil, r.Mapped)
	}
	r.Ends = slices.Clone(r.Mapped)
	for m, runs := range r.Reduces {
		hmhs.Simulate(b.Reduces[m], m, runs, reduces, r.Mapped, r.Ends)
	}
	for _, end := range r.Ends {
		r.Makespan = max(r.Makespan, end)
	}
	return r, nil
}
