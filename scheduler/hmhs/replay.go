package hmhs

import (
	"fmt"
	"slices"
)

// Replay is how the queues of s run on another batch of the same jobs and machines, such
// as the true one where s was made of estimates: each machine keeps its order, a reduce
// waits for its job's last map. O(T log M).
func Replay(b *Batch, s *Schedule) (*Schedule, error) {
	if err := b.Check(); err != nil {
		return nil, err
	}
	if len(s.Maps) != len(b.Maps) || len(s.Reduces) != len(b.Reduces) || len(s.Ends) != len(b.Jobs) {
		return nil, fmt.Errorf("schedule of %d jobs on %d and %d machines, batch of %d on %d and %d",
			len(s.Ends), len(s.Maps), len(s.Reduces), len(b.Jobs), len(b.Maps), len(b.Reduces))
	}
	r := &Schedule{Order: s.Order, Maps: s.Maps, Reduces: s.Reduces, Mapped: make([]float64, len(b.Jobs))}
	maps, reduces := b.stages(mapOf), b.stages(reduceOf)
	for m, runs := range r.Maps {
		play(b.Maps[m], m, runs, maps, nil, r.Mapped)
	}
	r.Ends = slices.Clone(r.Mapped)
	for m, runs := range r.Reduces {
		play(b.Reduces[m], m, runs, reduces, r.Mapped, r.Ends)
	}
	for _, end := range r.Ends {
		r.Makespan = max(r.Makespan, end)
	}
	return r, nil
}

// play runs a machine's tasks in order, each in the slot that is free first but not
// before its job has arrived, and raises the jobs' ends. Without arrived all are there.
func play(machine Machine, m int, runs []Run, stages []Stage, arrived, ends []float64) {
	slots := newHeap(slices.Clone(machine.Free), earlier)
	for _, r := range runs {
		takes, from := stages[r.Job].on(m), 0.0
		if arrived != nil {
			from = arrived[r.Job]
		}
		for range r.Tasks {
			slots.items[0] = max(slots.items[0], from) + takes
			ends[r.Job] = max(ends[r.Job], slots.items[0])
			slots.sift(0)
		}
	}
}
