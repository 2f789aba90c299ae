package wire_test

import (
	"slices"
	"testing"

	"github.com/quernmr/quern/wire"
)

func TestQueue(t *testing.T) {
	q := wire.NewQueue[int](2)
	for i, want := range []bool{true, true, false} {
		if got := q.Put(i); got != want {
			t.Errorf("put %d into a queue for 2: %v", i, got)
		}
	}
	q.Close()
	if got := slices.Collect(q.All()); !slices.Equal(got, []int{0, 1}) {
		t.Errorf("after close: got %v, want [0 1]", got)
	}
	if slices.Collect(q.All()) != nil || q.Put(3) || !q.Closed() {
		t.Error("the queue yields or accepts elements after Close")
	}
}

// TestQueueKeepsOrder passes elements to another goroutine, and then closes the queue.
func TestQueueKeepsOrder(t *testing.T) {
	q := wire.NewQueue[int](0)
	go func() {
		defer q.Close()
		for i := range 10_000 {
			q.Put(i)
		}
	}()
	next := 0
	for i := range q.All() {
		if i != next {
			t.Fatalf("took %d, want %d", i, next)
		}
		next++
	}
	if next != 10_000 {
		t.Errorf("took %d of 10000", next)
	}
}
