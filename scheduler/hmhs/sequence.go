package hmhs

import (
	"cmp"
	"slices"
)

// Priority is Pri (equation 4) of a job whose maps take mapWork and whose reduces take
// reduceWork slot-seconds in all; least goes first. A job without reduces is last, one
// without maps first.
func Priority(mapWork, reduceWork float64) float64 {
	sign := -1.0
	if mapWork > reduceWork {
		sign = 1
	}
	return sign / min(mapWork, reduceWork) // by 0: infinite, which sorts as it should
}

// Sequence is the jobs by ascending Pri of their average total processing times
// (equation 1), ties by index: Johnson's rule. O(J·M + J log J).
func Sequence(b *Batch) []int {
	order, pri := make([]int, len(b.Jobs)), make([]float64, len(b.Jobs))
	for i := range b.Jobs {
		order[i] = i
		pri[i] = Priority(b.Jobs[i].Map.work(), b.Jobs[i].Reduce.work())
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(pri[a], pri[b]), cmp.Compare(a, b))
	})
	return order
}

// work is P̄ of equation 1 in slot-seconds.
func (s *Stage) work() float64 {
	if s.Tasks == 0 {
		return 0
	}
	sum := 0.0
	for _, f := range s.Factor {
		sum += f
	}
	return s.Time * sum / float64(len(s.Factor)) * float64(s.Tasks)
}
