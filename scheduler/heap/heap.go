// Package heap is a generic heap for dispatching tasks one by one, and for simulated time. The
// standard one costs an interface call per comparison, most of the time of dispatching.
package heap

// Heap has its least item first.
type Heap[T any] struct {
	Items []T
	less  func(a, b T) bool
}

// New orders the items in place.
func New[T any](items []T, less func(a, b T) bool) Heap[T] {
	h := Heap[T]{items, less}
	for i := len(items)/2 - 1; i >= 0; i-- {
		h.Sift(i)
	}
	return h
}

// Sift moves item i down to its place.
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

// Push adds an item.
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

// Pop removes the least item.
func (h *Heap[T]) Pop() {
	last := len(h.Items) - 1
	h.Items[0] = h.Items[last]
	h.Items = h.Items[:last]
	h.Sift(0)
}
