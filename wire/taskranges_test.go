package wire

import (
	"fmt"
	"testing"
)

func TestTaskRanges(t *testing.T) {
	for text, want := range map[string]string{
		"": "[]", " ": "[]", "0-2": "[0 1 2]", "1, 4-": "[1 4 5]", "-1,3": "[0 1 3]", "5": "[5]",
		"x": "error", "1-x": "error", "2-1": "error", ",": "error", "-": "error", "1--2": "error",
	} {
		ranges, err := ParseTaskRanges(text)
		got := []int{}
		for n := range 6 {
			if ranges.Has(n) {
				got = append(got, n)
			}
		}
		if err != nil && want == "error" {
			continue
		}
		if err != nil || fmt.Sprint(got) != want {
			t.Errorf("%q: %v, error %v; want %s", text, got, err, want)
		}
	}
}
