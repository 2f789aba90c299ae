package meter

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestBuckets: a value is counted in the first bucket with a bound that is not below it.
func TestBuckets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		first := rapid.Int64Range(1, 1<<40).Draw(t, "first")
		h := NewHistogram(first)
		var want Distribution
		for i := range want.Bounds {
			want.Bounds[i] = first << i
		}
		near := rapid.Custom(func(t *rapid.T) int64 {
			return first<<rapid.IntRange(0, Buckets).Draw(t, "bound") + rapid.Int64Range(-2, 2).Draw(t, "off")
		})
		for _, v := range rapid.SliceOf(rapid.OneOf(rapid.Int64Range(-5, 1<<60), near)).Draw(t, "values") {
			h.Add(v)
			want.Sum += max(v, 0)
			at := 0
			for at < Buckets && v > want.Bounds[at] {
				at++
			}
			want.Counts[at]++
		}
		if got := h.Distribution(); got != want {
			t.Fatalf("counted\n%v, want\n%v", got, want)
		}
	})
}

func TestCount(t *testing.T) {
	var c Count
	c.Add(2)
	c.Add(1)
	if c.Value() != 3 {
		t.Errorf("counted %d, want 3", c.Value())
	}
	h := NewTimes(time.Millisecond)
	h.AddTime(time.Second)
	if d := h.Distribution(); d.Total() != 1 || d.Sum != int64(time.Second) {
		t.Errorf("counted %+v", d)
	}
}

func BenchmarkHistogram(b *testing.B) {
	h := NewTimes(50 * time.Microsecond)
	for b.Loop() {
		h.AddTime(time.Millisecond)
	}
}
