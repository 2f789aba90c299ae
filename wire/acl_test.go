package wire

import (
	"slices"
	"strings"
	"testing"
)

// TestACL checks Hadoop's syntax.
func TestACL(t *testing.T) {
	for text, want := range map[string]struct {
		admits, groups string // separated by commas
		refused        string
	}{
		"":                            {"", "", ""},
		" ":                           {"", "", ""},
		"*":                           {"ann,bob", "", ""},
		" * ":                         {"ann,bob", "", ""},
		"ann":                         {"ann", "", ""},
		"ann,carl":                    {"ann", "", ""},
		"ann,bob staff":               {"ann,bob", "staff", ""},
		" staff,bob":                  {"", "staff,bob", ""},
		"ann  staff":                  {"ann", "staff", ""},
		",bob,":                       {"bob", "", ""},
		"ann bob carl":                {"", "", "more than two lists"},
		"ann,*":                       {"", "", "only without other names"},
		"ann *":                       {"", "", "only without other names"},
		"ann\tbob":                    {"", "", "more than two lists"},
		strings.Repeat("a", MaxACL+1): {"", "", "at most 4096"},
	} {
		a, err := ParseACL(text)
		if want.refused != "" {
			if err == nil || !strings.Contains(err.Error(), want.refused) || a.Admits("ann") {
				t.Errorf("%.20q: %v, want %q", text, err, want.refused)
			}
			continue
		}
		for _, user := range []string{"ann", "bob", "", "staff"} {
			listed := user != "" && (slices.Contains(strings.Split(want.admits, ","), user) || a.All)
			if err != nil || a.Admits(user) != listed {
				t.Errorf("%q admits %q: %v, %v", text, user, a.Admits(user), err)
			}
		}
		if got := strings.Join(a.Groups, ","); got != want.groups {
			t.Errorf("%q: groups %q, want %q", text, got, want.groups)
		}
	}
}

// TestLogToken: the tokens for the logs of a job differ by user.
func TestLogToken(t *testing.T) {
	ann, bob := LogToken("t", "ann"), LogToken("t", "bob")
	if ann == bob || len(ann) != 64 || ann == LogToken("u", "ann") || LogToken("", "ann") != "" {
		t.Errorf("%q, %q", ann, bob)
	}
}
