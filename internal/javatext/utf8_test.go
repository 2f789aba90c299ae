package javatext

import "testing"

// TestAppendUTF8 has the answers of Java 17.
func TestAppendUTF8(t *testing.T) {
	for text, want := range map[string]string{
		"":                 "",
		"aé€😀\ufffd":       "aé€😀\ufffd",
		"\xff\xff":         "\ufffd\ufffd",
		"\xe2\x82":         "\ufffd",
		"\xe2\x82a":        "\ufffda",
		"\xf0\x9f\x98":     "\ufffd",
		"\xc0\xaf":         "\ufffd\ufffd",
		"\xed\xa0\x80":     "\ufffd",
		"\xf4\x90\x80\x80": "\ufffd\ufffd\ufffd\ufffd",
		"a\xffb\xfe":       "a\ufffdb\ufffd",
		"\xf0\x80\x80\x80": "\ufffd\ufffd\ufffd\ufffd",
		"\xe2\x80\x80\xff": "\u2000\ufffd",
	} {
		if got := string(AppendUTF8(nil, text)); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
