package mapreduce

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"strconv"
	"unsafe"

	"github.com/quernmr/quern/internal/javatext"
)

// Encodings of the basic types. Bytes have the order of the values:
//
//	bool            0 or 1
//	uintN           big-endian
//	intN            big-endian, sign bit inverted
//	floatN          IEEE 754 big-endian; positive numbers: sign bit inverted; negative
//	                numbers: all bits inverted. -0 before 0, NaN after +Inf, one NaN only
//	string, []byte  terminal: unchanged
//	                nested: 00 ends it; within it 00 is written 01 01, and 01 is 01 02
//	struct{}        nothing
//
// int and uint are written as int64 and uint64.

// fixed returns the codec of a type with encodings of a fixed size. Its two forms are
// equal.
func fixed[T any](size int, put func(dst []byte, v T) []byte, get func(b []byte) T, hash func(T) int32, text func([]byte, T) []byte) codec[T] {
	return codec[T]{
		append:       put,
		appendNested: put,
		decode: func(d *decoder, src []byte) (v T) {
			if len(src) != size {
				d.fail(wrongSize(len(src), size))
				return v
			}
			return get(src)
		},
		decodeNested: func(d *decoder, src []byte) (v T, rest []byte) {
			if len(src) < size {
				d.fail(errTruncated)
				return v, nil
			}
			return get(src), src[size:]
		},
		hash: hash,
		text: text,
	}
}

func wrongSize(got, want int) error {
	if got < want {
		return errTruncated
	}
	return errTrailing
}

// integer is any type that strconv prints as a decimal integer.
type integer interface {
	~int8 | ~int16 | ~int32 | ~int64 | ~int | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uint
}

func hashInteger[T integer](v T) int32 { return int32(v) }

func textSigned[T integer](dst []byte, v T) []byte   { return strconv.AppendInt(dst, int64(v), 10) }
func textUnsigned[T integer](dst []byte, v T) []byte { return strconv.AppendUint(dst, uint64(v), 10) }

const (
	sign8  = 1 << 7
	sign16 = 1 << 15
	sign32 = 1 << 31
	sign64 = 1 << 63
)

func put8[T integer](flip uint8) func([]byte, T) []byte {
	return func(dst []byte, v T) []byte { return append(dst, uint8(v)^flip) }
}

func get8[T integer](flip uint8) func([]byte) T {
	return func(b []byte) T { return T(b[0] ^ flip) }
}

func put16[T integer](flip uint16) func([]byte, T) []byte {
	return func(dst []byte, v T) []byte { return binary.BigEndian.AppendUint16(dst, uint16(v)^flip) }
}

func get16[T integer](flip uint16) func([]byte) T {
	return func(b []byte) T { return T(binary.BigEndian.Uint16(b) ^ flip) }
}

func put32[T integer](flip uint32) func([]byte, T) []byte {
	return func(dst []byte, v T) []byte { return binary.BigEndian.AppendUint32(dst, uint32(v)^flip) }
}

func get32[T integer](flip uint32) func([]byte) T {
	return func(b []byte) T { return T(binary.BigEndian.Uint32(b) ^ flip) }
}

func put64[T integer](flip uint64) func([]byte, T) []byte {
	return func(dst []byte, v T) []byte { return binary.BigEndian.AppendUint64(dst, uint64(v)^flip) }
}

func get64[T integer](flip uint64) func([]byte) T {
	return func(b []byte) T { return T(binary.BigEndian.Uint64(b) ^ flip) }
}

// The codecs by kind. They hold no state and never change.
var (
	int8Codec   = fixed(1, put8[int8](sign8), get8[int8](sign8), hashInteger, textSigned)
	int16Codec  = fixed(2, put16[int16](sign16), get16[int16](sign16), hashInteger, textSigned)
	int32Codec  = fixed(4, put32[int32](sign32), get32[int32](sign32), hashInteger, textSigned)
	int64Codec  = fixed(8, put64[int64](sign64), get64[int64](sign64), hashInteger, textSigned)
	intCodec    = fixed(8, put64[int](sign64), get64[int](sign64), hashInteger, textSigned)
	uint8Codec  = fixed(1, put8[uint8](0), get8[uint8](0), hashInteger, textUnsigned)
	uint16Codec = fixed(2, put16[uint16](0), get16[uint16](0), hashInteger, textUnsigned)
	uint32Codec = fixed(4, put32[uint32](0), get32[uint32](0), hashInteger, textUnsigned)
	uint64Codec = fixed(8, put64[uint64](0), get64[uint64](0), hashInteger, textUnsigned)
	uintCodec   = fixed(8, put64[uint](0), get64[uint](0), hashInteger, textUnsigned)

	float32Codec = fixed(4,
		func(dst []byte, v float32) []byte {
			return binary.BigEndian.AppendUint32(dst, orderFloat32(float32bits(v)))
		},
		func(b []byte) float32 { return math.Float32frombits(unorderFloat32(binary.BigEndian.Uint32(b))) },
		func(v float32) int32 { return int32(float32bits(v)) },
		func(dst []byte, v float32) []byte { return javatext.AppendFloat(dst, float64(v), 32) })
	float64Codec = fixed(8,
		func(dst []byte, v float64) []byte {
			return binary.BigEndian.AppendUint64(dst, orderFloat64(float64bits(v)))
		},
		func(b []byte) float64 { return math.Float64frombits(unorderFloat64(binary.BigEndian.Uint64(b))) },
		func(v float64) int32 { return int32(float64bits(v)) },
		func(dst []byte, v float64) []byte { return javatext.AppendFloat(dst, v, 64) })

	boolCodec = codec[bool]{
		append:       appendBool,
		appendNested: appendBool,
		decode: func(d *decoder, src []byte) bool {
			v, rest := decodeBool(d, src)
			if len(rest) > 0 {
				d.fail(errTrailing)
			}
			return v
		},
		decodeNested: decodeBool,
		hash: func(v bool) int32 { // as BooleanWritable: true is 0
			if v {
				return 0
			}
			return 1
		},
		text: strconv.AppendBool,
	}

	nullCodec = codec[struct{}]{
		null:         true,
		append:       func(dst []byte, _ struct{}) []byte { return dst },
		appendNested: func(dst []byte, _ struct{}) []byte { return dst },
		decode: func(d *decoder, src []byte) (v struct{}) {
			if len(src) > 0 {
				d.fail(errTrailing)
			}
			return v
		},
		decodeNested: func(_ *decoder, src []byte) (v struct{}, rest []byte) { return v, src },
		hash:         func(struct{}) int32 { return 0 },
		text:         func(dst []byte, _ struct{}) []byte { return dst },
	}

	stringCodec = codec[string]{
		view:         bytesOf,
		append:       func(dst []byte, v string) []byte { return append(dst, v...) },
		decode:       func(d *decoder, src []byte) string { return d.string(src) },
		appendNested: func(dst []byte, v string) []byte { return appendEscaped(dst, bytesOf(v)) },
		decodeNested: func(d *decoder, src []byte) (string, []byte) {
			content, rest := d.unescape(src)
			return d.string(content), rest
		},
		hash: func(v string) int32 { return javatext.Hash(1, bytesOf(v)) },
		text: func(dst []byte, v string) []byte { return append(dst, v...) },
	}

	bytesCodec = codec[[]byte]{
		view:         func(v []byte) []byte { return v },
		append:       func(dst []byte, v []byte) []byte { return append(dst, v...) },
		decode:       func(d *decoder, src []byte) []byte { return d.bytes(src) },
		appendNested: appendEscaped,
		decodeNested: func(d *decoder, src []byte) ([]byte, []byte) {
			content, rest := d.unescape(src)
			return d.bytes(content), rest
		},
		hash: func(v []byte) int32 { return javatext.Hash(1, v) },
		text: func(dst []byte, v []byte) []byte { return append(dst, v...) },
	}
)

// bytesOf returns a view of a string as bytes. Do not write to it.
func bytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

func appendBool(dst []byte, v bool) []byte {
	if v {
		return append(dst, 1)
	}
	return append(dst, 0)
}

func decodeBool(d *decoder, src []byte) (bool, []byte) {
	if len(src) == 0 {
		d.fail(errTruncated)
		return false, nil
	}
	if src[0] > 1 {
		d.fail(errInvalid)
		return false, nil
	}
	return src[0] == 1, src[1:]
}

// float32bits and float64bits map all NaNs to one, as Java's floatToIntBits does.
func float32bits(v float32) uint32 {
	if v != v {
		return 0x7fc00000
	}
	return math.Float32bits(v)
}

func float64bits(v float64) uint64 {
	if v != v {
		return 0x7ff8000000000000
	}
	return math.Float64bits(v)
}

func orderFloat32(b uint32) uint32   { return b ^ (uint32(int32(b)>>31) | sign32) }
func unorderFloat32(b uint32) uint32 { return b ^ (uint32(int32(^b)>>31) | sign32) }
func orderFloat64(b uint64) uint64   { return b ^ (uint64(int64(b)>>63) | sign64) }
func unorderFloat64(b uint64) uint64 { return b ^ (uint64(int64(^b)>>63) | sign64) }

const (
	escapeEnd  = 0 // ends a nested string
	escapeByte = 1 // the first of two bytes that encode 00 or 01
)

// appendEscaped appends the nested form of a string. It looks for bytes to escape while it
// copies words of eight bytes. The last word may overlap the one before. Most strings are
// short, and cost no call.
func appendEscaped(dst, src []byte) []byte {
	n, at := len(src), len(dst)
	if cap(dst)-at <= n {
		dst = slices.Grow(dst, n+1)
	}
	to := dst[at : at+n+1]
	special := uint64(0)
	switch {
	case n > 16:
		for i := 0; i < n-8; i += 8 {
			special |= escapes(binary.LittleEndian.Uint64(src[i:]))
		}
		special |= escapes(binary.LittleEndian.Uint64(src[n-8:]))
		copy(to, src)
	case n >= 8:
		first, last := binary.LittleEndian.Uint64(src), binary.LittleEndian.Uint64(src[n-8:])
		special = escapes(first) | escapes(last)
		binary.LittleEndian.PutUint64(to, first)
		binary.LittleEndian.PutUint64(to[n-8:], last)
	case n >= 4:
		first, last := binary.LittleEndian.Uint32(src), binary.LittleEndian.Uint32(src[n-4:])
		special = escapes(uint64(first) | uint64(last)<<32)
		binary.LittleEndian.PutUint32(to, first)
		binary.LittleEndian.PutUint32(to[n-4:], last)
	default:
		for i, b := range src {
			to[i] = b
			if b <= escapeByte {
				special = 1
			}
		}
	}
	if special != 0 {
		return appendEscapedSlowly(dst, src)
	}
	to[n] = escapeEnd
	return dst[:at+n+1]
}

// escapes is not 0 if one of eight bytes is 00 or 01: its highest bit is set after the
// subtraction, but not before.
func escapes(word uint64) uint64 {
	const ones, highest = 0x0101010101010101, 0x8080808080808080
	return (word - 2*ones) &^ word & highest
}

func appendEscapedSlowly(dst, src []byte) []byte {
	for _, b := range src {
		if b <= escapeByte {
			dst = append(dst, escapeByte, b+1)
		} else {
			dst = append(dst, b)
		}
	}
	return append(dst, escapeEnd)
}

// unescape decodes the nested form of a string. The content is a view of src if nothing
// is escaped, else it is in scratch.
func (d *decoder) unescape(src []byte) (content, rest []byte) {
	end := bytes.IndexByte(src, escapeEnd)
	if end < 0 {
		d.fail(errTruncated)
		return nil, nil
	}
	content, rest = src[:end:end], src[end+1:]
	if bytes.IndexByte(content, escapeByte) < 0 {
		return content, rest
	}
	start := len(d.scratch)
	for i := 0; i < len(content); i++ {
		b := content[i]
		if b == escapeByte {
			i++
			if i == len(content) || content[i] > 2 {
				d.fail(errInvalid)
				return nil, nil
			}
			b = content[i] - 1
		}
		d.scratch = append(d.scratch, b)
	}
	return d.scratch[start:len(d.scratch):len(d.scratch)], rest
}

// flip is a range of bytes up to the end of a buffer, and the same range inverted.
type flip struct {
	end     *byte // the last byte
	flipped []byte
}

// inverted returns src with every bit inverted, in scratch. It inverts the rest of a
// buffer once, however many values of a slice are in descending order.
func (d *decoder) inverted(src []byte) []byte {
	if len(src) == 0 {
		return nil
	}
	end := &src[len(src)-1]
	for _, f := range d.flipped {
		if f.end == end && len(src) <= len(f.flipped) {
			return f.flipped[len(f.flipped)-len(src):]
		}
	}
	start := len(d.scratch)
	d.scratch = append(d.scratch, src...)
	b := d.scratch[start:len(d.scratch):len(d.scratch)]
	invert(b)
	d.flipped = append(d.flipped, flip{end, b})
	return b
}

func invert(b []byte) {
	for i := range b {
		b[i] = ^b[i]
	}
}
