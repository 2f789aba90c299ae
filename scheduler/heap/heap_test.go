package heap

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestHeap compares pushes, pops and changes of the first item with a sorted list.
func TestHeap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOf(rapid.IntRange(0, 9)).Draw(t, "items")
		h := New(slices.Clone(want), cmp.Less[int])
		for _, x := range rapid.SliceOf(rapid.IntRange(-1, 9)).Draw(t, "changes") {
			switch slices.Sort(want); {
			case len(want) == 0 || x%3 == 0:
				h.Push(x)
				want = append(want, x)
			case x%3 == 1:
				h.Pop()
				want = want[1:]
			default:
				h.Items[0], want[0] = h.Items[0]+x, want[0]+x
				h.Sift(0)
			}
		}
		for slices.Sort(want); len(want) > 0; want = want[1:] {
			if h.Items[0] != want[0] {
				t.Fatalf("the least is %d, want %d", h.Items[0], want[0])
			}
			h.Pop()
		}
		if len(h.Items) > 0 {
			t.Fatalf("%v are left", h.Items)
		}
	})
}
