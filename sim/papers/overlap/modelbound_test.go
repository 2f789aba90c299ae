package overlap

import (
	"container/heap"
	"fmt"
	"math"
)

// modelBound returns a lower bound of the sum of response times of all policies (section 5.1).
// Each station runs SRPT, and the shuffle does not wait for maps. Between two times at which
// both are idle the larger sum counts. O(n log n).
func modelBound(arrivals []modelArrival) (float64, error) {
	total := 0.0
	var maps, shuffles single
	for i, a := range arrivals {
		if err := check(a.Map, a.Shuffle); err != nil {
			return 0, fmt.Errorf("arrival %d: %w", i, err)
		}
		maps.until(a.At)
		shuffles.until(a.At)
		if len(maps.left) == 0 && len(shuffles.left) == 0 {
			total += max(maps.sum, shuffles.sum)
			maps.sum, shuffles.sum = 0, 0
		}
		heap.Push(&maps.left, a.Map)
		heap.Push(&shuffles.left, a.Shuffle)
	}
	maps.until(math.Inf(1))
	shuffles.until(math.Inf(1))
	return total + max(maps.sum, shuffles.sum), nil
}

// single is a station under SRPT.
type single struct {
	now  float64
	left sizeHeap
	sum  float64 // integral of the number of jobs
}

// until serves the station up to a time.
func (s *single) until(at float64) {
	for len(s.left) > 0 && s.now < at {
		n := float64(len(s.left))
		if s.now+s.left[0] > at {
			s.left[0] -= at - s.now
			s.sum += n * (at - s.now)
			break
		}
		s.now += s.left[0]
		s.sum += n * s.left[0]
		heap.Pop(&s.left)
	}
	if !math.IsInf(at, 1) {
		s.now = at
	}
}

// sizeHeap is a heap of the work left, the least first.
type sizeHeap []float64

func (h sizeHeap) Len() int           { return len(h) }
func (h sizeHeap) Less(i, j int) bool { return h[i] < h[j] }
func (h sizeHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *sizeHeap) Push(x any)        { *h = append(*h, x.(float64)) }
func (h *sizeHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}
