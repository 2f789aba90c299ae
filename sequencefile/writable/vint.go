package writable

import (
	"fmt"
	"math"
	"math/bits"
)

// A vint is a number in 1 to 9 bytes. From -112 to 127 it is one byte. Otherwise the first byte has the
// sign and the number of further bytes n: -112-n for a number, -120-n for its complement if it is
// negative. The further bytes are big-endian. Hadoop reads a vint in more bytes than it needs, too.

// AppendVLong appends a number as a vint.
func AppendVLong(dst []byte, v int64) []byte {
	if v >= -112 && v <= 127 {
		return append(dst, byte(v))
	}
	first := -112
	if v < 0 {
		v, first = ^v, -120
	}
	n := (bits.Len64(uint64(v)) + 7) / 8
	dst = append(dst, byte(first-n))
	for i := n - 1; i >= 0; i-- {
		dst = append(dst, byte(v>>(8*i)))
	}
	return dst
}

// VLongSize returns the number of bytes of a vint by its first byte.
func VLongSize(first byte) int {
	switch b := int8(first); {
	case b >= -112:
		return 1
	case b >= -120:
		return -111 - int(b)
	default:
		return -119 - int(b)
	}
}

func decodeVLong(data []byte) (v int64, rest []byte, err error) {
	if len(data) == 0 {
		return 0, nil, ErrShort
	}
	n := VLongSize(data[0])
	if n == 1 {
		return int64(int8(data[0])), data[1:], nil
	}
	if len(data) < n {
		return 0, nil, ErrShort
	}
	for _, b := range data[1:n] {
		v = v<<8 | int64(b)
	}
	if int8(data[0]) < -120 {
		v = ^v
	}
	return v, data[n:], nil
}

func decodeVInt(data []byte) (int32, []byte, error) {
	v, rest, err := decodeVLong(data)
	if err == nil && (v < math.MinInt32 || v > math.MaxInt32) {
		err = fmt.Errorf("%w: %d has more than 32 bits", ErrEncoding, v)
	}
	return int32(v), rest, err
}
