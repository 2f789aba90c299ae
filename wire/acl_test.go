package wire

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/quernmr/quern/internal/membound"
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
		"ann\x1b[2J":                  {"", "", `name "ann\x1b[2J": want`},
		"ann b\x00b":                  {"", "", `name "b\x00b": want`},
		"a\u202enn":                   {"", "", "without spaces, commas and control characters"},
		"a\u00a0nn":                   {"", "", "without spaces"}, // a blank that does not break
		"\xff":                        {"", "", "without spaces"},
		strings.Repeat("a", 201):      {"", "", "1 to 200 bytes"},
		"jürgen,a@b.c größe":          {"jürgen,a@b.c", "größe", ""},
	} {
		a, err := ParseACL(text)
		if want.refused != "" {
			if err == nil || !strings.Contains(err.Error(), want.refused) || a.Admits("ann", inNone) {
				t.Errorf("%.20q: %v, want %q", text, err, want.refused)
			}
			continue
		}
		for _, user := range []string{"ann", "bob", "", "staff"} {
			listed := user != "" && (slices.Contains(strings.Split(want.admits, ","), user) || a.All)
			if err != nil || a.Admits(user, inNone) != listed {
				t.Errorf("%q admits %q: %v, %v", text, user, a.Admits(user, inNone), err)
			}
			inBob := func(group string) bool { return group == "bob" }
			if inGroup := strings.HasSuffix(want.groups, "bob"); a.Admits(user, inBob) != (listed || inGroup && user != "") {
				t.Errorf("%q admits %q of the group bob: %v", text, user, a.Admits(user, inBob))
			}
		}
		if got := strings.Join(a.Groups, ","); got != want.groups {
			t.Errorf("%q: groups %q, want %q", text, got, want.groups)
		}
	}
}

// inNone is of a user without groups.
func inNone(string) bool { return false }

// FuzzACL: an ACL is refused, or has only names that can be written in a log and in another ACL, which
// admits the same users.
func FuzzACL(f *testing.F) {
	for _, text := range []string{"", " ", "*", "ann,bob staff,ops", " staff", "ann\tb", "a\x00", "a\u202eb c", ",,a,, b,,"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var a ACL
		var err error
		membound.Bound{Free: 1 << 16, PerByte: 128}.Check(t, len(text), func() { a, err = ParseACL(text) })
		if err != nil {
			if a.Admits("ann", func(string) bool { return true }) || strings.ContainsAny(err.Error(), "\n\x00\x1b") {
				t.Fatalf("%q: %+v, %q", text, a, err)
			}
			return
		}
		for _, name := range slices.Concat(a.Users, a.Groups) {
			if CheckACLName(name) != nil || strings.ContainsAny(name, " ,\t\n\r") || !utf8.ValidString(name) {
				t.Fatalf("%q has the name %q", text, name)
			}
		}
		if a.All {
			return
		}
		again, err := ParseACL(strings.Join(a.Users, ",") + " " + strings.Join(a.Groups, ","))
		if err != nil || !slices.Equal(again.Users, a.Users) || !slices.Equal(again.Groups, a.Groups) {
			t.Fatalf("%q: %+v, again %+v, %v", text, a, again, err)
		}
	})
}

// TestLogToken: the tokens for the logs of a job differ by user.
func TestLogToken(t *testing.T) {
	ann, bob := LogToken("t", "ann"), LogToken("t", "bob")
	if ann == bob || len(ann) != 64 || ann == LogToken("u", "ann") || LogToken("", "ann") != "" {
		t.Errorf("%q, %q", ann, bob)
	}
}
