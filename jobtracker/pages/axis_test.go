package pages

import (
	"testing"
	"time"

	"github.com/quernmr/quern/jobtracker/web"
	"pgregory.net/rapid"
)

// TestAxis: an axis has few marks at round times, and the span is within it and fills most of it.
func TestAxis(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		begin := testNow.Add(time.Duration(rapid.Int64Range(0, int64(100*time.Hour)).Draw(t, "begin")))
		span := time.Duration(rapid.Int64Range(1, int64(400*24*time.Hour)).Draw(t, "span"))
		a := axisOf(begin, begin.Add(span))
		if a.Begin.After(begin) || a.End.Before(begin.Add(span)) {
			t.Fatalf("%v to %v lacks a part of %v", a.Begin, a.End, span)
		}
		n := len(a.Marks) - 1
		if n < 1 || n > maxIntervals || a.Marks[0].At != 0 || a.Marks[n].At != 1 {
			t.Fatalf("marks %v", a.Marks)
		}
		step := a.End.Sub(a.Begin) / time.Duration(n)
		if a.Begin.Truncate(step) != a.Begin || step > time.Millisecond && a.End.Sub(a.Begin) > 4*span+2*step {
			t.Fatalf("%v after %v is too much for %v", step, a.Begin, span)
		}
	})
}

func TestAxisLabels(t *testing.T) {
	a := axisOf(testNow, testNow.Add(95*time.Second)) // 03:04:05
	want := []string{"03:04:00", "03:04:30", "03:05:00", "03:05:30", "03:06:00"}
	for i, m := range a.Marks {
		if i >= len(want) || m.Label != want[i] {
			t.Fatalf("marks %v, want %q", a.Marks, want)
		}
	}
	length, marks := elapsedAxis(95_000)
	if last := marks[len(marks)-1]; length != 120_000 || last.Label != "2m" || marks[1].Label != "30s" {
		t.Errorf("%d ms with %v", length, marks)
	}
}

// TestNarrowAxis: labels of eight characters do not touch in the narrowest column of bars.
func TestNarrowAxis(t *testing.T) {
	const column, label = 240.0, 50.0
	rapid.Check(t, func(t *rapid.T) {
		rows := rowsOf([]web.Job{{State: "running", Prediction: &web.Prediction{LikelyMillis: rapid.Int64Range(10_000, 1e10).Draw(t, "end")}}})
		a := setBars(rows, testNow)
		last := -1.0
		for _, m := range a.Marks {
			from := m.At*column - map[string]float64{"middle": label / 2, "end": label}[m.Anchor]
			if from <= last {
				t.Fatalf("labels touch: %v", a.Marks)
			}
			last = from + label
		}
	})
}

func TestCounted(t *testing.T) {
	for want, h := range map[string]histogram{"1 reduce": {Count: 1, Of: "reduces"}, "1\u202f200 maps": {Count: 1200, Of: "maps"}} {
		if got := h.Counted(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
