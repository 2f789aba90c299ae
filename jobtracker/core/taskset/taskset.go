// Package taskset holds small numbers, such as those of tasks or trackers, in little memory: a
// [Set] has one bit for each, [Lists] has lists of them end to end. Neither has pointers for
// the garbage collector to follow, since a cluster has a million tasks and more.
//
// Values are not safe for concurrent use.
package taskset

import (
	"iter"
	"math/bits"
	"slices"
	"strconv"
)

// Set is a set of small numbers, one bit each. The words below low and from high on are empty,
// so that the first and the last step of an iteration cost amortized O(1).
type Set struct {
	words     []uint64
	n         int
	low, high int
}

// Len returns the number of members.
func (s *Set) Len() int { return s.n }

// Has reports whether i is a member.
func (s *Set) Has(i int) bool {
	w := i >> 6
	return w < len(s.words) && s.words[w]&(1<<(i&63)) != 0
}

// Add adds i and reports whether it was new.
func (s *Set) Add(i int) bool {
	w := i >> 6
	for len(s.words) <= w {
		s.words = append(s.words, 0)
	}
	if s.words[w]&(1<<(i&63)) != 0 {
		return false
	}
	s.words[w] |= 1 << (i & 63)
	s.n++
	s.low, s.high = min(s.low, w), max(s.high, w+1)
	return true
}

// Remove removes i and reports whether it was in the set.
func (s *Set) Remove(i int) bool {
	if !s.Has(i) {
		return false
	}
	s.words[i>>6] &^= 1 << (i & 63)
	s.n--
	return true
}

// Set adds or removes i, and reports whether that changed the set.
func (s *Set) Set(i int, in bool) bool {
	if in {
		return s.Add(i)
	}
	return s.Remove(i)
}

// Next returns the lowest member that is at least from, or -1.
func (s *Set) Next(from int) int {
	if s.n == 0 {
		return -1
	}
	for s.words[s.low] == 0 {
		s.low++
	}
	first := max(from>>6, s.low)
	for w := first; w < s.high; w++ {
		word := s.words[w]
		if w == from>>6 {
			word &= ^uint64(0) << (from & 63)
		}
		if word != 0 {
			return w<<6 + bits.TrailingZeros64(word)
		}
	}
	s.high = min(s.high, first+1)
	return -1
}

// All yields the members in ascending order. The loop may remove members.
func (s *Set) All() iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := s.Next(0); i >= 0; i = s.Next(i + 1) {
			if !yield(i) {
				return
			}
		}
	}
}

// Ranges returns the members as text: "3, 7-9". It ends with "…" if it would be longer than maxBytes.
func (s *Set) Ranges(maxBytes int) string {
	var text []byte
	for first := s.Next(0); first >= 0; {
		last, next := first, s.Next(first+1)
		for next == last+1 {
			last, next = next, s.Next(next+1)
		}
		before := len(text)
		if before > 0 {
			text = append(text, ", "...)
		}
		text = strconv.AppendInt(text, int64(first), 10)
		if last > first {
			text = strconv.AppendInt(append(text, '-'), int64(last), 10)
		}
		if len(text) > maxBytes {
			return string(text[:before]) + "…"
		}
		first = next
	}
	return string(text)
}

// Words returns the set's memory: 64 numbers a word, the lowest in the lowest bit.
func (s *Set) Words() []uint64 { return s.words }

// Clone returns a copy of the set.
func (s *Set) Clone() Set {
	c := *s
	c.words = slices.Clone(s.words)
	return c
}

// Of makes a set of the given words, which it keeps.
func Of(words []uint64) Set {
	s := Set{words: words, high: len(words)}
	for _, w := range words {
		s.n += bits.OnesCount64(w)
	}
	return s
}
