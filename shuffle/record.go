package shuffle

import (
	"encoding/binary"
	"math/bits"
)

// maxLengths is the maximum size of the two encoded lengths of a record, in bytes.
const maxLengths = 2 * binary.MaxVarintLen32

// uvarintLen returns the size of n as a varint.
func uvarintLen(n int) int { return (bits.Len64(uint64(n)|1) + 6) / 7 }

// recordSize returns the size of an encoded record.
func recordSize(key, value int) int {
	if key|value < 0x80 {
		return 2 + key + value
	}
	return uvarintLen(key) + uvarintLen(value) + key + value
}

// putRecord encodes a record into dst, which must have room for it.
func putRecord(dst, key, value []byte) {
	n := 2
	if len(key)|len(value) < 0x80 {
		dst[0], dst[1] = byte(len(key)), byte(len(value))
	} else {
		n = binary.PutUvarint(dst, uint64(len(key)))
		n += binary.PutUvarint(dst[n:], uint64(len(value)))
	}
	n += copy(dst[n:], key)
	copy(dst[n:], value)
}

// AppendRecord appends an encoded record to dst, for [Writer.Write].
func AppendRecord(dst, key, value []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(key)))
	dst = binary.AppendUvarint(dst, uint64(len(value)))
	dst = append(dst, key...)
	return append(dst, value...)
}

// lengths decodes the lengths at the start of an encoded record. The key is b[start:mid],
// the value b[mid:end], but b may be shorter. If ok is false, the lengths are damaged or too
// large.
func lengths(b []byte) (start, mid, end int, ok bool) {
	if len(b) >= 2 && b[0]|b[1] < 0x80 {
		mid = 2 + int(b[0])
		return 2, mid, mid + int(b[1]), true
	}
	key, n := binary.Uvarint(b)
	if n <= 0 || key > MaxMaxRecord {
		return 0, 0, 0, false
	}
	value, m := binary.Uvarint(b[n:])
	if m <= 0 || value > MaxMaxRecord {
		return 0, 0, 0, false
	}
	start = n + m
	mid = start + int(key)
	return start, mid, mid + int(value), true
}

// prefixOf returns the first 8 bytes of a key as a number, padded with zeros. Different
// prefixes have the order of their keys.
func prefixOf(key []byte) uint64 {
	n := len(key)
	switch {
	case n >= 8:
		return binary.BigEndian.Uint64(key)
	case n >= 4: // Two loads that overlap.
		high := uint64(binary.BigEndian.Uint32(key))
		low := uint64(binary.BigEndian.Uint32(key[n-4:]))
		return high<<32 | low<<(8*(8-n))
	case n > 0: // First, middle and last byte, which may coincide.
		return uint64(key[0])<<56 | uint64(key[n/2])<<(56-8*(n/2)) | uint64(key[n-1])<<(64-8*n)
	}
	return 0
}
