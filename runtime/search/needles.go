package search

import (
	"regexp/syntax"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxNeedle = 64 // bytes of a needle: its beginning is enough
	maxSet    = 8  // needles of a set: a search for more is slower than tests of all lines
	maxClass  = 4  // characters of a class that are searched one by one
	maxSets   = 16 // sets of an expression
)

// setsOf returns sets of needles of an expression: each text that it matches contains a needle of every set.
//
// A Regexp does not say whether it was compiled by POSIX rules, in which a question mark after + or {n} makes the operand
// optional. So operands of such operators give no needles.
func setsOf(expr string) [][]needle {
	re, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return nil
	}
	sets := required(re)
	return sets[:min(len(sets), maxSets)]
}

// isText reports whether an expression matches what contains a text.
func isText(expr string) (text string, is bool) {
	re, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return "", false
	}
	text = string(re.Rune)
	literal := re.Op == syntax.OpLiteral && re.Flags&syntax.FoldCase == 0
	return text, re.Op == syntax.OpEmptyMatch || literal && !strings.ContainsRune(text, utf8.RuneError) // that stands for other bytes too
}

func required(re *syntax.Regexp) [][]needle {
	switch re.Op {
	case syntax.OpLiteral:
		return ofLiteral(re)
	case syntax.OpCharClass:
		return ofClass(re.Rune)
	case syntax.OpCapture:
		return required(re.Sub[0])
	case syntax.OpPlus:
		return ofRepeated(re, 1)
	case syntax.OpRepeat:
		return ofRepeated(re, re.Min)
	case syntax.OpConcat:
		var sets [][]needle
		for _, sub := range re.Sub {
			sets = append(sets, required(sub)...)
		}
		return sets
	case syntax.OpAlternate:
		return ofAlternate(re.Sub)
	}
	return nil
}

func ofRepeated(re *syntax.Regexp, times int) [][]needle {
	if times < 1 || re.Flags&syntax.NonGreedy != 0 {
		return nil
	}
	return required(re.Sub[0])
}

// ofAlternate joins the best sets of the alternatives.
func ofAlternate(subs []*syntax.Regexp) [][]needle {
	var set []needle
	for _, sub := range subs {
		best := longest(required(sub))
		if set = compact(append(set, best...)); best == nil || len(set) > maxSet {
			return nil
		}
	}
	return [][]needle{set}
}

// longest returns the set with the longest needles, by the shortest one of each set.
func longest(sets [][]needle) (best []needle) {
	size := 0
	for _, set := range sets {
		shortest := maxNeedle
		for _, n := range set {
			shortest = min(shortest, len(n.text))
		}
		if shortest > size {
			best, size = set, shortest
		}
	}
	return best
}

// ofClass returns a set with the characters of a class, if they are few.
func ofClass(ranges []rune) [][]needle {
	var set []needle
	for i := 0; i < len(ranges); i += 2 {
		for r := ranges[i]; r <= ranges[i+1]; r++ {
			if len(set) == maxClass || r == utf8.RuneError {
				return nil
			}
			set = append(set, needle{text: string(r)})
		}
	}
	if set == nil {
		return nil
	}
	return [][]needle{set}
}

// ofLiteral cuts a literal where its bytes in a text are not known: at U+FFFD, which any byte outside UTF-8 matches, and if
// case does not matter, at characters that have other forms than the two of ASCII, such as k with the Kelvin sign.
func ofLiteral(re *syntax.Regexp) (sets [][]needle) {
	fold := re.Flags&syntax.FoldCase != 0
	var run []byte
	flush := func() {
		if len(run) > 0 {
			sets = append(sets, []needle{{text: string(run), fold: fold}})
		}
		run = nil
	}
	for _, r := range re.Rune {
		switch {
		case r == utf8.RuneError, len(run) >= maxNeedle, fold && !plain(r):
			flush()
		}
		switch {
		case r == utf8.RuneError || fold && !plain(r):
		case fold:
			run = append(run, lower(byte(r)))
		default:
			run = utf8.AppendRune(run, r)
		}
	}
	flush()
	return sets
}

// plain reports whether a character has no other forms than the two cases of ASCII.
func plain(r rune) bool {
	if r >= utf8.RuneSelf {
		return false
	}
	for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
		if f >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
