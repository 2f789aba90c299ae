// Package search finds lines that pass predicates in whole buffers, so that a reader need not cut other lines.
//
// A predicate tests one line. It also has sets of needles, which are short texts: each line that passes contains at least
// one needle of every set. A [Finder] searches a buffer for the needles of the set that is rarest in the data, by the rarest byte
// of each needle. Where it finds one, the caller cuts the line and asks [Lines.Match]. So needles may be found
// where no line passes, but no line that passes is without one. This holds for any bytes, also those that are not UTF-8.
//
// Predicates are values without state, for use by several goroutines. A Lines belongs to one goroutine.
package search

import (
	"bytes"
	"regexp"
	"slices"
)

// Predicate tests a line.
type Predicate struct {
	match func(line []byte) bool // nil: every line passes
	sets  [][]needle             // each line that passes contains a needle of every set
}

// Text is passed by lines that contain text.
func Text(text string) Predicate {
	if text == "" {
		return Predicate{}
	}
	want := []byte(text)
	return Predicate{
		match: func(line []byte) bool { return bytes.Contains(line, want) },
		sets:  [][]needle{{{text: text[:min(len(text), maxNeedle)]}}},
	}
}

// Expression is passed by lines that re matches.
func Expression(re *regexp.Regexp) Predicate {
	if text, is := isText(re.String()); is {
		return Text(text)
	}
	return Predicate{match: re.Match, sets: setsOf(re.String())}
}

// All reports whether every line passes.
func (p Predicate) All() bool { return p.match == nil }

// Lines is the conjunction of predicates.
type Lines struct {
	predicates []Predicate
	sets       [][]needle
	finder     *Finder
}

// Add adds a predicate that some lines do not pass.
func (l *Lines) Add(p Predicate) {
	l.predicates = append(l.predicates, p)
	l.sets = append(l.sets, p.sets...)
}

// Match reports whether a line passes all predicates.
func (l *Lines) Match(line []byte) bool {
	for i := range l.predicates {
		if !l.predicates[i].match(line) {
			return false
		}
	}
	return true
}

// Needles reports whether there are needles to search for. Otherwise each line must be tested.
func (l *Lines) Needles() bool { return len(l.sets) > 0 }

// In prepares the search of a text for needles. The first text decides which ones are searched.
func (l *Lines) In(text []byte) *Finder {
	if l.finder == nil {
		l.finder = newFinder(l.sets, text[:min(len(text), sampleSize)])
	}
	l.finder.reset(text)
	return l.finder
}

// sampleSize is the number of bytes that are counted to find rare bytes.
const sampleSize = 8 << 10

// Finder finds needles in a text.
type Finder struct {
	text  []byte
	scans []scan // one for each needle
}

// scan is the search for one needle by one of its bytes, in both cases if case does not matter.
type scan struct {
	needle
	at    int // index of the byte in the needle
	bytes [2]byte
	next  [2]int // the next occurrences of these bytes in the text; len(text): none
	hit   int    // the next occurrence of the needle; len(text): none
}

// newFinder chooses the set with the rarest needles, by the rarest byte of each, in a sample of the data.
// Of equally rare sets it takes the one with the longest needles.
func newFinder(sets [][]needle, sample []byte) *Finder {
	var count [256]int
	for _, b := range sample {
		count[b]++
	}
	var best []scan
	least, longest := 0, 0
	for _, set := range sets {
		scans, total, size := make([]scan, len(set)), len(set), maxNeedle
		for i, n := range set {
			var occurrences int
			scans[i], occurrences = n.scan(&count)
			total, size = total+occurrences, min(size, len(n.text))
		}
		if best == nil || total < least || total == least && size > longest {
			best, least, longest = scans, total, size
		}
	}
	return &Finder{scans: best}
}

// scan returns the search for a needle by its rarest byte, and how often that occurs in the sample.
func (n needle) scan(count *[256]int) (s scan, occurrences int) {
	of := func(b byte) int {
		if o := n.other(b); o != b {
			return count[b] + count[o]
		}
		return count[b]
	}
	at := 0
	for i := range len(n.text) {
		if of(n.text[i]) < of(n.text[at]) {
			at = i
		}
	}
	b := n.text[at]
	return scan{needle: n, at: at, bytes: [2]byte{b, n.other(b)}}, of(b)
}

func (f *Finder) reset(text []byte) {
	f.text = text
	for i := range f.scans {
		f.scans[i].next, f.scans[i].hit = [2]int{-1, -1}, -1
	}
}

// Next returns the index of the first occurrence of a needle that begins at from or later, or -1. Calls must not go back.
func (f *Finder) Next(from int) int {
	first := len(f.text)
	for i := range f.scans {
		s := &f.scans[i]
		if s.hit < from {
			s.hit = s.find(f.text, from)
		}
		first = min(first, s.hit)
	}
	if first == len(f.text) {
		return -1
	}
	return first
}

// find returns the first occurrence of the needle that begins at from or later.
func (s *scan) find(text []byte, from int) int {
	if s.bytes[0] == s.bytes[1] {
		return s.findOne(text, from)
	}
	for from += s.at; ; from++ {
		if from = min(s.nextOf(text, from, 0), s.nextOf(text, from, 1)); from == len(text) {
			return from
		}
		begin := from - s.at
		if end := begin + len(s.text); end <= len(text) && s.equal(text[begin:end]) {
			return begin
		}
	}
}

// findOne is find for a byte without another case.
func (s *scan) findOne(text []byte, from int) int {
	for from += s.at; from < len(text); from++ {
		n := bytes.IndexByte(text[from:], s.bytes[0])
		if n < 0 {
			break
		}
		from += n
		begin := from - s.at
		if end := begin + len(s.text); end <= len(text) && s.equal(text[begin:end]) {
			return begin
		}
	}
	return len(text)
}

// nextOf returns the index of the first occurrence of one of the two bytes at from or later. It remembers it, since the
// other byte may come first many times.

func (s *scan) nextOf(text []byte, from, which int) int {
	next := &s.next[which]
	if *next >= from {
		return *next
	}
	*next = len(text)
	if from < len(text) {
		if n := bytes.IndexByte(text[from:], s.bytes[which]); n >= 0 {
			*next = from + n
		}
	}
	return *next
}

// needle is a text that must occur.
type needle struct {
	text string
	fold bool // case does not matter; text has only bytes of ASCII, and no capitals
}

func (n needle) equal(text []byte) bool {
	if !n.fold {
		return string(text) == n.text
	}
	for i, b := range text {
		if lower(b) != n.text[i] {
			return false
		}
	}
	return true
}

// other returns a byte of the needle in the other case, and the byte itself if its case matters.
func (n needle) other(b byte) byte {
	if n.fold && 'a' <= b && b <= 'z' {
		return b - 'a' + 'A'
	}
	return b
}

func lower(b byte) byte {
	if 'A' <= b && b <= 'Z' {
		return b - 'A' + 'a'
	}
	return b
}

func compact(set []needle) []needle {
	var unique []needle
	for _, n := range set {
		if !slices.Contains(unique, n) {
			unique = append(unique, n)
		}
	}
	return unique
}
