package hmhs

import (
	"slices"

	"github.com/quernmr/quern/scheduler/hmhs"
)

// heuristic is a way to schedule a batch.
type heuristic uint8

const (
	plainHMHS     heuristic = iota // Min-Min, Pri ascending, Dynamic-Min-Min (section 3.3)
	reversed                       // HMHS with Pri descending: the paper's R-HMHS
	plainFIFO                      // jobs by index, each task to the machine that is free first
	fifoPri                        // FIFO in the order of Pri
	withSufferage                  // HMHS with sufferage instead of Min-Min, an option of ours
)

// schedule is a heuristic's schedule of a batch.
type schedule struct {
	Order         []int        // jobs in the heuristic's order
	Maps, Reduces [][]hmhs.Run // by machine, in order of execution
	Mapped        []float64    // by job: end of its last map (A, equation 2); 0 without maps
	Ends          []float64    // by job: end of its last task
	Makespan      float64      // end of the last job (C, equation 3)
}

// solve schedules the batch after [hmhs.Batch.Check].
func solve(b *hmhs.Batch, h heuristic) (*schedule, error) {
	if err := b.Check(); err != nil {
		return nil, err
	}
	s := &schedule{
		Order:  priOrder(b),
		Mapped: make([]float64, len(b.Jobs)),
		Ends:   make([]float64, len(b.Jobs)),
	}
	if h == reversed {
		slices.Reverse(s.Order)
	}
	if h == plainFIFO || h == fifoPri {
		if h == plainFIFO {
			slices.Sort(s.Order)
		}
		s.Maps = fifo(b.Maps, b.MapStages(), s.Order, nil, s.Mapped)
		copy(s.Ends, s.Mapped)
		s.Reduces = fifo(b.Reduces, b.ReduceStages(), s.Order, s.Mapped, s.Ends)
	} else {
		s.dispatchMaps(b, h)
		copy(s.Ends, s.Mapped)
		s.Reduces = hmhs.MinMin(b.Reduces, b.ReduceStages(), s.Mapped, s.Ends)
	}
	for _, end := range s.Ends {
		s.Makespan = max(s.Makespan, end)
	}
	return s, nil
}

// dispatchMaps does steps 1 and 2 of section 3.3.
func (s *schedule) dispatchMaps(b *hmhs.Batch, h heuristic) {
	stages := b.MapStages()
	if h == withSufferage {
		s.Maps = sufferage(b.Maps, stages)
	} else {
		s.Maps = hmhs.MinMin(b.Maps, stages, make([]float64, len(stages)), make([]float64, len(stages)))
	}
	place := make([]int, len(s.Order))
	for at, job := range s.Order {
		place[job] = at
	}
	for m, runs := range s.Maps {
		s.Maps[m] = hmhs.SortRuns(runs, place)
		hmhs.Simulate(b.Maps[m], m, s.Maps[m], stages, nil, s.Mapped)
	}
}
