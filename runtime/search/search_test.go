package search

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/quernmr/quern/internal/membound"
)

// TestSets lists the needles of expressions.
func TestSets(t *testing.T) {
	for expr, want := range map[string]string{
		"error":                  "error",
		"error [0-9]+ms$":        "error  & ms",
		"(GET|POST) /a":          "GET|POST &  /a",
		"fo[ox]":                 "fo & o|x",
		"(?i)warnIng: skip":      "warning:  & ip", // k and s have other forms
		"[qQ]ueue":               "q & ueue",
		"(ab){2,}c?":             "ab",
		"(ab){0,2}c*":            "",
		"(a+)?b+?":               "", // optional by POSIX rules
		".*":                     "",
		"a|.":                    "",
		"[a-z]x":                 "x",
		"a|b|c|d|e|f|gg|hh|ii":   "",
		"(?:)":                   "",
		"x\ufffdy":               "x & y",
		strings.Repeat("é", 40):  strings.Repeat("é", 32) + " & " + strings.Repeat("é", 8),
		"(?:(?:foo|bar)\\d)+baz": "foo|bar & baz",
	} {
		var sets []string
		for _, set := range setsOf(expr) {
			var texts []string
			for _, n := range set {
				texts = append(texts, n.text)
			}
			sets = append(sets, strings.Join(texts, "|"))
		}
		if got := strings.Join(sets, " & "); got != want {
			t.Errorf("%s: got %q, want %q", expr, got, want)
		}
	}
}

// TestNext compares the finder with a loop over all places.
func TestNext(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		letters := rapid.StringOfN(rapid.SampledFrom([]rune("aAbB")), 1, 4, -1)
		var set []needle
		for range rapid.IntRange(1, 3).Draw(t, "needles") {
			n := needle{text: letters.Draw(t, "needle"), fold: rapid.Bool().Draw(t, "fold")}
			if n.fold {
				n.text = strings.ToLower(n.text)
			}
			set = append(set, n)
		}
		text := []byte(rapid.StringOfN(rapid.SampledFrom([]rune("aAbBc")), 0, 40, -1).Draw(t, "text"))
		f := newFinder([][]needle{set}, text)
		f.reset(text)
		for from := 0; from <= len(text); from += rapid.IntRange(1, 5).Draw(t, "step") {
			if got, want := f.Next(from), dumbNext(set, text, from); got != want {
				t.Fatalf("%v in %q from %d: got %d, want %d", set, text, from, got, want)
			}
		}
	})
}

func dumbNext(set []needle, text []byte, from int) int {
	for i := from; i < len(text); i++ {
		for _, n := range set {
			if here := text[i:min(i+len(n.text), len(text))]; string(here) == n.text || n.fold && strings.EqualFold(string(here), n.text) {
				return i
			}
		}
	}
	return -1
}

// FuzzExpression: the predicate of an expression passes the same texts, and these contain a needle of each set, by both
// readings of the expression.
func FuzzExpression(f *testing.F) {
	for expr, text := range map[string]string{
		"a(b|c)+?d": "abd", "(?i)ks\u212a": "\u212a\u017fk", "[\ufffdx]y": "\xffy", "(?s)a.{2}b$": "a\r\nb", `\bé|e\z`: "é", "a{2}?": "x", `\x{d800}`: "\ufffd", "[[:alpha:]]+x": "ax",
	} {
		f.Add(expr, []byte(text))
	}
	f.Fuzz(func(t *testing.T, expr string, text []byte) {
		for _, compile := range []func(string) (*regexp.Regexp, error){regexp.Compile, regexp.CompilePOSIX} {
			re, err := compile(expr)
			if err != nil {
				continue
			}
			var p Predicate
			membound.Bound{Free: 1 << 20, PerByte: 4096}.Check(t, len(expr), func() { p = Expression(re) })
			if !p.All() && p.match(text) != re.Match(text) || p.All() && !re.Match(text) {
				t.Errorf("%q, %q: the predicate does not tell what the expression does", expr, text)
			}
			for _, set := range p.sets {
				if re.Match(text) && newFinder([][]needle{set}, nil).in(text) < 0 {
					t.Errorf("%q matches %q, which has none of %v", expr, text, set)
				}
			}
		}
	})
}

func (f *Finder) in(text []byte) int {
	f.reset(text)
	return f.Next(0)
}

// BenchmarkFind searches a text of random letters.
func BenchmarkFind(b *testing.B) {
	text := bytes.Repeat([]byte("lorem ipsum dolor sit amet consectetur adipiscing elit sed do eiusmod tempor incididunt ut labore\n"), 2600)
	for _, expr := range []string{"qu", "labour", "(?i)labour", "quis|sint|mollit"} {
		b.Run(expr, func(b *testing.B) {
			f := newFinder(setsOf(expr), text[:sampleSize])
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				f.reset(text)
				for at := f.Next(0); at >= 0; at = f.Next(at + 1) {
				}
			}
		})
	}
}
