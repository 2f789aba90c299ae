// Package heap is a generic binary heap, for dispatching tasks and for simulated time. With
// container/heap, the interface call for each comparison took most of the time of dispatching.
package heap

// Heap has its least item at Items[0].
type Heap[T any] struct {
	Items []T
	less  func(a, b T) bool
}

// New returns a heap of the items, which it orders in place in O(n).
func New[T any](items []T, less func(a, b T) bool) Heap[T] {
	h := Heap[T]{items, less}
	for i := len(items)/2 - 1; i >= 0; i-- {
		h.Sift(i)
	}
	return h
}

// Sift moves item i down to its place, after it has grown. O(log n).
func (h *Heap[T]) Sift(i int) {
	items := h.Items
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

// Push adds an item. O(log n).
func (h *Heap[T]) Push(item T) {
	h.Items = append(h.Items, item)
	for i := len(h.Items) - 1; i > 0; {
		parent := (i - 1) / 2
		if !h.less(h.Items[i], h.Items[parent]) {
			return
		}
		h.Items[i], h.Items[parent] = h.Items[parent], h.Items[i]
		i = parent
	}
}

// Pop removes the least item. O(log n).
func (h *Heap[T]) Pop() {
	last := len(h.Items) - 1
	h.Items[0] = h.Items[last]
	h.Items = h.Items[:last]
	h.Sift(0)
}
