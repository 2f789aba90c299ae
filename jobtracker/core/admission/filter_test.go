package admission

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/quernmr/quern/wire"
)

// matchesByTrying is MatchesName, but tries each text for each star.
func matchesByTrying(pattern, name string) bool {
	switch {
	case pattern == "":
		return name == ""
	case pattern[0] != '*':
		return name != "" && name[0] == pattern[0] && matchesByTrying(pattern[1:], name[1:])
	}
	for i := range len(name) + 1 {
		if matchesByTrying(pattern[1:], name[i:]) {
			return true
		}
	}
	return false
}

func TestMatchesName(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pattern := rapid.StringMatching(`[ab*]{0,6}`).Draw(t, "pattern")
		name := rapid.StringMatching(`[ab]{0,8}`).Draw(t, "name")
		if got, want := MatchesName(pattern, name), matchesByTrying(pattern, name); got != want {
			t.Fatalf("%q matches %q: %v, want %v", pattern, name, got, want)
		}
	})
}

// TestFilter: each part of a filter alone decides, and the name of a hidden job matches nothing.
func TestFilter(t *testing.T) {
	s := &wire.JobStatus{State: wire.Running, Owner: "ann", Name: "daily-words", Flow: wire.FlowID{Start: 7, N: 2}}
	const submitted = 1000
	for _, c := range []struct {
		f    Filter
		want bool
	}{
		{Filter{}, true},
		{Filter{States: []wire.State{wire.Failed, wire.Running}}, true},
		{Filter{States: []wire.State{wire.Failed}}, false},
		{Filter{Owner: "ann"}, true},
		{Filter{Owner: "bob"}, false},
		{Filter{Pool: wire.DefaultPool}, true},
		{Filter{Pool: "etl"}, false},
		{Filter{Name: "daily-*"}, true},
		{Filter{Name: "words"}, false},
		{Filter{Since: submitted}, true},
		{Filter{Since: submitted + 1}, false},
		{Filter{Flow: wire.FlowID{Start: 7, N: 2}}, true},
		{Filter{Flow: wire.FlowID{Start: 7, N: 3}}, false},
		{Filter{Owner: "ann", Name: "*", Pool: "etl"}, false},
	} {
		if got := c.f.Selects(s, submitted, true); got != c.want {
			t.Errorf("%+v selects the job: %v, want %v", c.f, got, c.want)
		}
		if got := c.f.Selects(s, submitted, false); got != (c.want && c.f.Name == "") {
			t.Errorf("%+v selects the hidden job: %v", c.f, got)
		}
		if c.f.IsZero() != (c.want && c.f.Owner == "" && c.f.Pool == "" && c.f.Name == "" && c.f.Since == 0 && c.f.Flow.IsZero() && c.f.States == nil) {
			t.Errorf("%+v is zero: %v", c.f, c.f.IsZero())
		}
	}
}
