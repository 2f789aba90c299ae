package taskset

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestTaskSet checks Set against a map.
// TestRanges checks the text of sets, and that it is cut between members.
func TestRanges(t *testing.T) {
	for _, c := range []struct {
		members []int
		bytes   int
		want    string
	}{
		{nil, 100, ""}, {[]int{0}, 100, "0"}, {[]int{3, 7, 8, 9, 64}, 100, "3, 7-9, 64"}, {[]int{62, 63, 64, 65}, 100, "62-65"},
		{[]int{3, 7, 8, 9, 64}, 6, "3, 7-9…"}, {[]int{3, 7, 8, 9, 64}, 5, "3…"},
	} {
		var s Set
		for _, i := range c.members {
			s.Add(i)
		}
		if got := s.Ranges(c.bytes); got != c.want {
			t.Errorf("%v: %q, want %q", c.members, got, c.want)
		}
	}
}

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
