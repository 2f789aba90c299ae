// Package writable encodes values as Hadoop's Writable classes do. A [Class] has the name of the
// class, as files keep it, and the Go type of its values:
//
//	Text              Text                string    length as a vint, bytes of UTF-8
//	TextBytes         Text                []byte
//	Bytes             BytesWritable       []byte    length in 4 bytes, bytes
//	Boolean           BooleanWritable     bool      1 byte
//	Byte, Short       …                   int8, …   1 and 2 bytes
//	Int, Long         …                   int32, …  4 and 8 bytes
//	VInt, VLong       …                   int32, …  vint: see vint.go
//	Float, Double     …                   float32 … 4 and 8 bytes, IEEE 754
//	Null              NullWritable        struct{}  nothing
//	Array(name, elem) a subclass of       []T       count in 4 bytes, elements
//	                  ArrayWritable
//	Map(k, v)         MapWritable         map[K]V   see map.go
//	Entries(k, v)     MapWritable         []Entry   the same in the order of the file
//	Any               every one above     any       within maps
//	Raw(name)         every class         []byte    bytes as they are
//
// Numbers are big-endian. Your own Writable is a Class that you fill in.
//
// Decoded strings and slices use the memory of the encoded data, which must not change later.
// Decoding takes memory in proportion to the data. A Class has no state and is safe for concurrent
// use.
package writable

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"unsafe"
)

// Class is a Writable class with values of type T.
type Class[T any] struct {
	Name string // Hadoop's, with package; empty: any class

	// Append appends an encoded value to dst.
	Append func(dst []byte, v T) ([]byte, error)
	// Decode returns the value at the beginning of data, and the rest of data.
	Decode func(data []byte) (v T, rest []byte, err error)
}

// Value decodes data that has one value and nothing else.
func (c Class[T]) Value(data []byte) (T, error) {
	v, rest, err := c.Decode(data)
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("%w: %d bytes follow", ErrEncoding, len(rest))
	}
	if err != nil {
		err = fmt.Errorf("%s of %d bytes: %w", simple(c.Name), len(data), err)
	}
	return v, err
}

// Errors of encoded values.
var (
	ErrShort    = errors.New("it ends too early")
	ErrEncoding = errors.New("wrong encoding")
)

const packageIO = "org.apache.hadoop.io."

// The classes of single values.
var (
	Text      = Class[string]{packageIO + "Text", appendText[string], decodeString}
	TextBytes = Class[[]byte]{packageIO + "Text", appendText[[]byte], decodeText}
	Bytes     = Class[[]byte]{packageIO + "BytesWritable", appendBytes, decodeBytes}
	Boolean   = Class[bool]{packageIO + "BooleanWritable", appendBool, decodeBool}
	Byte      = fixed(packageIO+"ByteWritable", 1, func(dst []byte, v int8) []byte { return append(dst, byte(v)) }, func(b []byte) int8 { return int8(b[0]) })
	Short     = fixed(packageIO+"ShortWritable", 2, func(dst []byte, v int16) []byte { return binary.BigEndian.AppendUint16(dst, uint16(v)) }, func(b []byte) int16 { return int16(binary.BigEndian.Uint16(b)) })
	Int       = fixed(packageIO+"IntWritable", 4, func(dst []byte, v int32) []byte { return binary.BigEndian.AppendUint32(dst, uint32(v)) }, int32Of)
	Long      = fixed(packageIO+"LongWritable", 8, func(dst []byte, v int64) []byte { return binary.BigEndian.AppendUint64(dst, uint64(v)) }, func(b []byte) int64 { return int64(binary.BigEndian.Uint64(b)) })
	Float     = fixed(packageIO+"FloatWritable", 4, appendFloat, func(b []byte) float32 { return math.Float32frombits(binary.BigEndian.Uint32(b)) })
	Double    = fixed(packageIO+"DoubleWritable", 8, appendDouble, func(b []byte) float64 { return math.Float64frombits(binary.BigEndian.Uint64(b)) })
	VInt      = Class[int32]{packageIO + "VIntWritable", func(dst []byte, v int32) ([]byte, error) { return AppendVLong(dst, int64(v)), nil }, decodeVInt}
	VLong     = Class[int64]{packageIO + "VLongWritable", func(dst []byte, v int64) ([]byte, error) { return AppendVLong(dst, v), nil }, decodeVLong}
	Null      = Class[struct{}]{packageIO + "NullWritable", func(dst []byte, _ struct{}) ([]byte, error) { return dst, nil }, func(data []byte) (v struct{}, rest []byte, err error) { return v, data, nil }}
)

// Raw returns a class that takes values as encoded bytes: for classes that this package does not know,
// and to copy files.
func Raw(name string) Class[[]byte] {
	return Class[[]byte]{name,
		func(dst, v []byte) ([]byte, error) { return append(dst, v...), nil },
		func(data []byte) (v, rest []byte, err error) { return data, nil, nil }}
}

// fixed returns the class of values of n bytes.
func fixed[T any](name string, n int, put func([]byte, T) []byte, get func([]byte) T) Class[T] {
	return Class[T]{name,
		func(dst []byte, v T) ([]byte, error) { return put(dst, v), nil },
		func(data []byte) (v T, rest []byte, err error) {
			if len(data) < n {
				return v, nil, ErrShort
			}
			return get(data), data[n:], nil
		}}
}

func int32Of(b []byte) int32 { return int32(binary.BigEndian.Uint32(b)) }

// appendFloat and appendDouble write one NaN, as Java does.
func appendFloat(dst []byte, v float32) []byte {
	bits := math.Float32bits(v)
	if v != v {
		bits = 0x7fc00000
	}
	return binary.BigEndian.AppendUint32(dst, bits)
}

func appendDouble(dst []byte, v float64) []byte {
	bits := math.Float64bits(v)
	if v != v {
		bits = 0x7ff8000000000000
	}
	return binary.BigEndian.AppendUint64(dst, bits)
}

func appendText[T string | []byte](dst []byte, v T) ([]byte, error) {
	if len(v) > math.MaxInt32 {
		return dst, fmt.Errorf("a text of %d bytes: at most %d", len(v), math.MaxInt32)
	}
	return append(AppendVLong(dst, int64(len(v))), v...), nil
}

func decodeText(data []byte) (v, rest []byte, err error) {
	n, rest, err := decodeVInt(data)
	if err != nil {
		return nil, nil, err
	}
	return cut(rest, int(n))
}

func decodeString(data []byte) (string, []byte, error) {
	v, rest, err := decodeText(data)
	return unsafe.String(unsafe.SliceData(v), len(v)), rest, err
}

func appendBytes(dst, v []byte) ([]byte, error) {
	if len(v) > math.MaxInt32 {
		return dst, fmt.Errorf("%d bytes: at most %d", len(v), math.MaxInt32)
	}
	return append(binary.BigEndian.AppendUint32(dst, uint32(len(v))), v...), nil
}

func decodeBytes(data []byte) (v, rest []byte, err error) {
	n, rest, err := count(data)
	if err != nil {
		return nil, nil, err
	}
	return cut(rest, n)
}

// count reads a length or count of 4 bytes.
func count(data []byte) (n int, rest []byte, err error) {
	if len(data) < 4 {
		return 0, nil, ErrShort
	}
	return int(int32Of(data)), data[4:], nil
}

// cut divides data after n bytes.
func cut(data []byte, n int) (v, rest []byte, err error) {
	switch {
	case n < 0:
		return nil, nil, fmt.Errorf("%w: length %d", ErrEncoding, n)
	case n > len(data):
		return nil, nil, ErrShort
	}
	return data[:n:n], data[n:], nil
}

func appendBool(dst []byte, v bool) ([]byte, error) {
	if v {
		return append(dst, 1), nil
	}
	return append(dst, 0), nil
}

func decodeBool(data []byte) (v bool, rest []byte, err error) {
	if len(data) == 0 {
		return false, nil, ErrShort
	}
	return data[0] != 0, data[1:], nil
}
