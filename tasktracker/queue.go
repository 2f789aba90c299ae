package tasktracker

import "sync"

// queue holds what one goroutine hands another without waiting for it.
type queue[T any] struct {
	limit int // 0: none

	mu    sync.Mutex
	more  chan struct{} // has one element while list has some, or ended is set
	list  []T
	ended bool
}

func (q *queue[T]) wake() {
	if q.more == nil {
		q.more = make(chan struct{}, 1)
	}
	select {
	case q.more <- struct{}{}:
	default:
	}
}

// put adds an element; false: the queue is full or closed.
func (q *queue[T]) put(v T) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ended || q.limit > 0 && len(q.list) >= q.limit {
		return false
	}
	q.list = append(q.list, v)
	q.wake()
	return true
}

// take waits for elements and returns all; nil: the queue is closed and empty.
func (q *queue[T]) take() []T {
	q.mu.Lock()
	for len(q.list) == 0 && !q.ended {
		if q.more == nil {
			q.more = make(chan struct{}, 1)
		}
		more := q.more
		q.mu.Unlock()
		<-more
		q.mu.Lock()
	}
	defer q.mu.Unlock()
	list := q.list
	q.list = nil
	return list
}

// close lets the taker have what is left and then end.
func (q *queue[T]) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ended = true
	q.wake()
}
