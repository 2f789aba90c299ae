package spelling

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestNearest(t *testing.T) {
	known := []string{"list", "logs", "kill", "scheduler", "set", "status", "suspend"}
	for name, want := range map[string]string{
		"kil": "kill", "lsit": "list", "lists": "list", "sched": "scheduler", "shcedler": "", "statsu": "status", "s": "", "su": "suspend", "sett": "set",
		"": "", "x": "", "kill": "kill", "delete": "", strings.Repeat("s", maxName+1): "",
	} {
		if got := Nearest(name, known); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
	if got := DidYouMean("-", "reasons", []string{"json", "reason"}); got != " (did you mean -reason?)" {
		t.Error(got)
	}
}

// TestEdits compares Edits with its definition.
func TestEdits(t *testing.T) {
	var slow func(a, b string) int
	slow = func(a, b string) int {
		switch {
		case a == "" || b == "":
			return len(a) + len(b)
		case a[0] == b[0]:
			return slow(a[1:], b[1:])
		}
		return 1 + min(slow(a[1:], b), slow(a, b[1:]), slow(a[1:], b[1:]))
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.StringMatching("[ab]{0,6}").Draw(t, "a"), rapid.StringMatching("[ab]{0,6}").Draw(t, "b")
		if got, want := Edits(a, b), slow(a, b); got != want {
			t.Errorf("%q, %q: %d, want %d", a, b, got, want)
		}
	})
}
