package hmhs

// heap has its least item first. The standard one costs an interface call for each
// comparison, which is most of the time of dispatching.
type heap[T any] struct {
	items []T
	less  func(a, b T) bool
}

// newHeap orders the items in place.
func newHeap[T any](items []T, less func(a, b T) bool) heap[T] {
	h := heap[T]{items, less}
	for i := len(items)/2 - 1; i >= 0; i-- {
		h.sift(i)
	}
	return h
}

// sift moves item i down to its place.
func (h *heap[T]) sift(i int) {
	items := h.items
	for {
		child := 2*i + 1
		if child >= len(items) {
			return
		}
		if right := child + 1; right < len(items) && h.less(items[right], items[child]) {
			child = right
		}
		if !h.less(items[child], items[i]) {
			return
		}
		items[i], items[child] = items[child], items[i]
		i = child
	}
}

func (h *heap[T]) push(item T) {
	h.items = append(h.items, item)
	for i := len(h.items) - 1; i > 0; {
		parent := (i - 1) / 2
		if !h.less(h.items[i], h.items[parent]) {
			return
		}
		h.items[i], h.items[parent] = h.items[parent], h.items[i]
		i = parent
	}
}

// pop removes the least item.
func (h *heap[T]) pop() {
	last := len(h.items) - 1
	h.items[0] = h.items[last]
	h.items = h.items[:last]
	h.sift(0)
}
