package hmhs

import (
	"cmp"
	"slices"

	"github.com/quernmr/quern/scheduler/hmhs"
)

// priOrder returns the jobs by ascending Pri of their average total processing times (equation
// 1), then by index: Johnson's rule. O(J·M + J log J).
func priOrder(b *hmhs.Batch) []int {
	order, pri := make([]int, len(b.Jobs)), make([]float64, len(b.Jobs))
	for i := range b.Jobs {
		order[i] = i
		pri[i] = hmhs.Priority(work(&b.Jobs[i].Map), work(&b.Jobs[i].Reduce))
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(pri[a], pri[b]), cmp.Compare(a, b))
	})
	return order
}

// work returns P̄ of equation 1 in slot-seconds.
func work(s *hmhs.Stage) float64 {
	if s.Tasks == 0 {
		return 0
	}
	sum := 0.0
	for _, f := range s.Factor {
		sum += f
	}
	return s.Time * sum / float64(len(s.Factor)) * float64(s.Tasks)
}
