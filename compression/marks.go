package compression

import (
	"encoding/binary"
	"io"
	"slices"
)

// A bzip2 file, bit by bit:
//
//	+----------------------+---------------------------------+---------------------------+---------+
//	| "BZh" and level 1..9 | blocks: mark, CRC, content each | end mark, combined CRC u32| padding | ...
//	+----------------------+---------------------------------+---------------------------+---------+
//
// A mark has 48 bits and begins at any bit. Only a stream's header begins at a byte.
const (
	blockMark = 0x314159265359
	endMark   = 0x177245385090
	markBits  = 48
	crcBits   = 32

	// maxBlockBytes is more than a compressed block can have: 900,001 symbols of at most 20 bits, and tables.
	maxBlockBytes = 2_500_000
)

// markScanner finds marks in a file.
type markScanner struct {
	source io.Reader
	data   []byte // bytes of the file from base on
	base   int64  // offset of data[0] in the file
	next   int    // index in data of the first byte that was not examined
	window uint64 // the 8 bytes before next
	ended  bool   // data ends where the file ends
	err    error  // of the source
}

// find returns the position, in bits, of the first mark at from or later, and whether it is before limit.
// It goes on after the last mark that it has found: from must be higher.
func (s *markScanner) find(from, limit int64) (at int64, ok bool) {
	for {
		need := limit/8 + markBits/8 + 1 - s.base // a mark before limit ends in these bytes
		for end := int(min(need, int64(len(s.data)))); s.next < end; {
			s.window = s.window<<8 | uint64(s.data[s.next])
			s.next++
			if !insideMark[byte(s.window>>8)] {
				continue
			}
			end := 8 * (s.base + int64(s.next))
			for shift := 7; shift >= 0; shift-- { // the earliest mark first
				if w := s.window >> shift & (1<<markBits - 1); w == blockMark || w == endMark {
					if at := end - int64(shift) - markBits; at >= from {
						return at, at < limit
					}
				}
			}
		}
		if need <= int64(len(s.data)) || !s.more() {
			return 0, false
		}
	}
}

// mark returns the mark at a position.
func (s *markScanner) mark(at int64) uint64 {
	return binary.BigEndian.Uint64(append(s.bits(at, at+markBits), 0, 0)) >> 16
}

// peek returns bytes at an offset in the file; fewer where it ends or cannot be read.
func (s *markScanner) peek(offset int64, n int) []byte {
	for s.base+int64(len(s.data)) < offset+int64(n) && s.more() {
	}
	from := min(offset-s.base, int64(len(s.data)))
	return s.data[from:min(from+int64(n), int64(len(s.data)))]
}

// end returns the position up to which the file was read.
func (s *markScanner) end() int64 { return 8 * (s.base + int64(len(s.data))) }

// more reads more of the file.
func (s *markScanner) more() bool {
	if s.ended || s.err != nil {
		return false
	}
	const step = 128 << 10
	s.data = slices.Grow(s.data, step)
	n, err := io.ReadAtLeast(s.source, s.data[len(s.data):len(s.data)+step], 1)
	s.data = s.data[:len(s.data)+n]
	if err == io.EOF {
		s.ended = true
	} else if err != nil {
		s.err = err
	}
	return n > 0
}

// drop forgets the bytes before a position in bits.
func (s *markScanner) drop(before int64) {
	n := int(min(before/8-s.base, int64(s.next)))
	if n < len(s.data)/2 {
		return // moving the rest costs more
	}
	s.data = s.data[:copy(s.data, s.data[n:])]
	s.base += int64(n)
	s.next -= n
}

// bits returns the bits from one position to another, from the first bit of a byte on, with zeros
// after the last one.
func (s *markScanner) bits(from, to int64) []byte {
	first := int(from/8 - s.base)
	shift := uint(from % 8)
	n := int(to-from+7) / 8
	out := make([]byte, n, n+bitPadding)
	in := s.data[first:]
	for i := range out {
		out[i] = in[i] << shift
		if shift > 0 && i+1 < len(in) {
			out[i] |= in[i+1] >> (8 - shift)
		}
	}
	if extra := (to - from) % 8; extra > 0 {
		out[n-1] &= 0xff << (8 - extra)
	}
	return out
}

// insideMark has the last whole bytes of marks at all bits of a byte.
var insideMark = func() (inside [256]bool) {
	for _, mark := range []uint64{blockMark, endMark} {
		for shift := range 8 {
			inside[byte(mark>>(8-shift))] = true
		}
	}
	return inside
}()
