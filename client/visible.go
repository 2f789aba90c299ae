package client

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Visible makes control characters of a text visible, except for ends of lines and tabs: a terminal
// would obey them. The escape character becomes \x1b. Characters that change the direction of a
// line count as control characters, and so do bytes that are not UTF-8.
func Visible(text string) string {
	if !strings.ContainsFunc(text, isHidden) && utf8.ValidString(text) {
		return text
	}
	var b strings.Builder
	for len(text) > 0 {
		r, n := utf8.DecodeRuneInString(text)
		switch {
		case r == utf8.RuneError && n == 1, isHidden(r) && r < 0x80:
			fmt.Fprintf(&b, `\x%02x`, text[0])
		case isHidden(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteString(text[:n])
		}
		text = text[n:]
	}
	return b.String()
}

func isHidden(r rune) bool {
	return r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r))
}

// VisibleWriter writes text to a terminal as [Visible] shows it. It keeps an incomplete character for
// the next Write.
type VisibleWriter struct {
	To   io.Writer
	rest []byte
}

func (v *VisibleWriter) Write(p []byte) (int, error) {
	text := append(v.rest, p...)
	whole := len(text)
	for back := 1; back < utf8.UTFMax && back <= len(text); back++ {
		if at := len(text) - back; utf8.RuneStart(text[at]) {
			if !utf8.FullRune(text[at:]) {
				whole = at
			}
			break
		}
	}
	if _, err := io.WriteString(v.To, Visible(string(text[:whole]))); err != nil {
		return 0, err
	}
	v.rest = append([]byte(nil), text[whole:]...)
	return len(p), nil
}
