package top

import (
	"slices"
	"testing"
)

func TestParseKeys(t *testing.T) {
	for _, c := range []struct {
		bytes string
		keys  []Key
		rest  string
	}{
		{"", nil, ""},
		{"qä", []Key{"q", "ä"}, ""},
		{"a\xc3", []Key{"a"}, "\xc3"},
		{"\xff", []Key{"\ufffd"}, ""},
		{"\x1b", []Key{"esc"}, ""},
		{"\x1b\x1b", []Key{"esc", "esc"}, ""},
		{"\x1bq", []Key{"esc", "q"}, ""},
		{"\x1b[A\x1bOB\x1b[5~\x1b[6~", []Key{"up", "down", "pgup", "pgdown"}, ""},
		{"\x1b[1;5A\x1b[200~x", []Key{"x"}, ""},
		{"\x1b[", nil, ""},
		{"\r\n\x7f\b\x03\t\x00", []Key{"enter", "enter", "backspace", "backspace", "ctrl+c"}, ""},
	} {
		keys, rest := parseKeys([]byte(c.bytes))
		if !slices.Equal(keys, c.keys) || string(rest) != c.rest {
			t.Errorf("%q: keys %q and rest %q, want %q and %q", c.bytes, keys, rest, c.keys, c.rest)
		}
	}
}
