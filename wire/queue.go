package wire

import (
	"iter"
	"sync"
)

// Queue passes elements from a loop that must not block to another goroutine, such as the writer of
// a [Conn]. Several goroutines may call Put, but only one All.
type Queue[T any] struct {
	limit int

	mu      sync.Mutex
	changed sync.Cond
	list    []T
	closed  bool
}

// NewQueue makes a queue for at most limit elements; 0: any number.
func NewQueue[T any](limit int) *Queue[T] {
	q := &Queue[T]{limit: limit}
	q.changed.L = &q.mu
	return q
}

// Put adds an element. It returns false if the queue is full or closed.
func (q *Queue[T]) Put(v T) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || q.limit > 0 && len(q.list) >= q.limit {
		return false
	}
	q.list = append(q.list, v)
	q.changed.Signal()
	return true
}

// All yields elements as they arrive, until the queue is closed and empty. If the loop ends early,
// elements may be lost.
func (q *Queue[T]) All() iter.Seq[T] {
	return func(yield func(T) bool) {
		for batch := q.take(); batch != nil; batch = q.take() {
			for _, v := range batch {
				if !yield(v) {
					return
				}
			}
		}
	}
}

// take waits for elements and returns all of them, or nil if the queue is closed and empty.
func (q *Queue[T]) take() []T {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.list) == 0 && !q.closed {
		q.changed.Wait()
	}
	list := q.list
	q.list = nil
	return list
}

// Close makes Put refuse elements. All still yields the remaining ones.
func (q *Queue[T]) Close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.changed.Signal()
}

// Closed reports whether the queue was closed.
func (q *Queue[T]) Closed() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.closed
}
