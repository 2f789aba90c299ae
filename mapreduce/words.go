package mapreduce

import (
	"encoding/binary"
	"iter"
	"math/bits"
	"strings"
)

// Words returns the words of a text, separated by white space: the same as [strings.FieldsSeq], but faster for text
// that is mostly ASCII.
func Words(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		start := 0         // of the current word
		mixed := uint64(0) // not 0: the current word may have bytes that are not ASCII
		for at := 0; at < len(text); at += wordBlock {
			spaces, others := findSpaces(bytesOf(text), at)
			mixed |= others
			for ; spaces != 0; spaces &= spaces - 1 {
				end := at + bits.TrailingZeros64(spaces)
				if end > start && !yieldWord(text[start:end], mixed, yield) {
					return
				}
				start, mixed = end+1, others
			}
		}
		if start < len(text) {
			yieldWord(text[start:], mixed, yield)
		}
	}
}

// yieldWord yields a word without ASCII white space. If mixed is not 0, it may have other white space.
func yieldWord(word string, mixed uint64, yield func(string) bool) (more bool) {
	if mixed == 0 {
		return yield(word)
	}
	for w := range strings.FieldsSeq(word) {
		if !yield(w) {
			return false
		}
	}
	return true
}

// wordBlock is the number of bytes in a block: one bit of a number for each.
const wordBlock = 64

// findSpaces returns a bit for each byte of the block at an offset, the lowest for the first byte: whether it is ASCII
// white space. others is not 0 if some bytes are not ASCII.
func findSpaces(text []byte, at int) (spaces, others uint64) {
	end, shift := min(at+wordBlock, len(text)), 0
	for ; at+8 <= end; at += 8 {
		eight := binary.LittleEndian.Uint64(text[at:])
		others |= eight
		spaces |= spacesOf(eight) << shift
		shift += 8
	}
	if at < end {
		rest := uint64(0)
		if len(text) >= 8 {
			rest = binary.LittleEndian.Uint64(text[end-8:]) >> (8 * (8 - (end - at)))
		} else {
			for i, b := range text {
				rest |= uint64(b) << (8 * i)
			}
		}
		others |= rest
		spaces |= spacesOf(rest) << shift
	}
	return spaces, others & highBits
}

const (
	eachByte = 0x0101010101010101
	highBits = 0x80 * eachByte
)

// spacesOf returns a bit for each of eight bytes: whether it is a blank, or one of the control characters from tab to CR.
// Sums of seven bits have no carry into the next byte.
func spacesOf(eight uint64) uint64 {
	low := eight &^ highBits
	control := (low + (0x80-'\t')*eachByte) &^ (low + (0x80-'\r'-1)*eachByte)
	other := (low ^ ' '*eachByte) + 0x7f*eachByte
	space := (control | ^other) &^ eight & highBits
	return space >> 7 * 0x0102040810204080 >> 56
}
