package forecast

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// expand lists the time of each slot.
func (s slotTimes) expand() (all []float64) {
	for _, x := range s {
		for range x.n {
			all = append(all, x.at)
		}
	}
	return all
}

// TestSlotTimes compares slots in groups with a list of slots: tasks begin in those that are free first, and work fills
// them up to a level.
func TestSlotTimes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s slotTimes
		for range rapid.IntRange(1, 12).Draw(t, "groups") {
			s = s.with(slotsAt{rapid.Float64Range(0, 50).Draw(t, "at"), rapid.IntRange(1, 4).Draw(t, "slots")})
		}
		for range 4 {
			all := s.expand()
			after, each := rapid.Float64Range(0, 30).Draw(t, "after"), rapid.Float64Range(0.1, 20).Draw(t, "each")
			if rapid.Bool().Draw(t, "begin") {
				tasks := rapid.IntRange(1, len(all)).Draw(t, "tasks")
				sum := 0.0
				for i := range tasks {
					at := max(after, all[i])
					sum += at
					all[i] = at + each
				}
				if mean, variance := s.begin(tasks, after, each); math.Abs(mean-sum/float64(tasks)) > 1e-6 || variance < 0 {
					t.Fatalf("%d tasks begin at %v on average, want %v", tasks, mean, sum/float64(tasks))
				}
			} else {
				work := rapid.Float64Range(1, 500).Draw(t, "work")
				end, used := s.fill(work, after)
				done := 0.0
				for i := range used {
					done += end - max(after, all[i])
					all[i] = end
				}
				if math.Abs(done-work) > 1e-6 || used < len(all) && max(after, all[used]) < end-1e-9 {
					t.Fatalf("work %v ends at %v in %d slots, which do %v; the next is free at %v", work, end, used, done, all[min(used, len(all)-1)])
				}
			}
			slices.Sort(all)
			if got := s.expand(); !slices.EqualFunc(got, all, func(a, b float64) bool { return math.Abs(a-b) < 1e-6 }) {
				t.Fatalf("slots are free at %v, want %v", got, all)
			}
		}
	})
}

// TestManySlotTimes: the number of groups is bounded, and no slot is lost.
func TestManySlotTimes(t *testing.T) {
	var s slotTimes
	sum := 0.0
	for i := range 1000 {
		s = s.with(slotsAt{float64(i), 2})
		sum += 2 * float64(i)
	}
	got := 0.0
	for _, x := range s {
		got += x.at * float64(x.n)
	}
	if len(s) > maxSlotTimes || s.count() != 2000 || math.Abs(got-sum) > 1e-3*sum {
		t.Errorf("%d groups of %d slots, free at %v in all, want %v", len(s), s.count(), got, sum)
	}
}
