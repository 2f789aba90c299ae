package taskset

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestTaskSet checks Set against a map.
func TestTaskSet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s Set
		model := make(map[int]bool)
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			i := rapid.IntRange(0, 200).Draw(t, "number")
			in := rapid.Bool().Draw(t, "in")
			if changed := s.Set(i, in); changed == (model[i] == in) {
				t.Fatalf("Set(%d, %v) says %v", i, in, changed)
			}
			if model[i] = in; !in {
				delete(model, i)
			}
			want := slices.Sorted(maps.Keys(model))
			if got := slices.Collect(s.All()); !slices.Equal(got, want) || s.Len() != len(want) {
				t.Fatalf("%v, not %v", got, want)
			}
			from := rapid.IntRange(0, 200).Draw(t, "from")
			next := -1
			if k, _ := slices.BinarySearch(want, from); k < len(want) {
				next = want[k]
			}
			if got := s.Next(from); got != next {
				t.Fatalf("Next(%d) of %v is %d", from, want, got)
			}
		}
	})
}
