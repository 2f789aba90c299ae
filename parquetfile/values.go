package parquetfile

import (
	"encoding/binary"
	"math"

	"github.com/parquet-go/parquet-go/format"
)

// Value is the Go type of a column's physical type. A string has the bytes of BYTE_ARRAY, FIXED_LEN_BYTE_ARRAY
// and INT96.
type Value interface {
	bool | int32 | int64 | float32 | float64 | string
}

// decoder decodes the values of a page, in order. It fills dst.
type decoder[V Value] func(dst []V) error

var errFew = damaged("a page has fewer values than its header says")

// width returns the bytes of a plain value; 0: they differ, or values have a bit.
func width(t Type) int {
	switch t.Physical {
	case format.Int32, format.Float:
		return 4
	case format.Int64, format.Double:
		return 8
	case format.Int96:
		return 12
	case format.FixedLenByteArray:
		return int(t.Length)
	}
	return 0
}

// plain returns the decoder of the encoding PLAIN. The array of data has padding after it.
func plain[V Value](t Type, data []byte) decoder[V] {
	size := width(t)
	var text string
	if _, ok := any(*new(V)).(string); ok {
		text = string(data) // one copy for all values, which may be kept
	}
	bit := 0
	return func(dst []V) error {
		if len(dst)*size > max(len(data), len(text)) {
			return errFew
		}
		switch dst := any(dst).(type) {
		case []int32:
			for i := range dst {
				dst[i] = int32(binary.LittleEndian.Uint32(data[4*i:]))
			}
		case []int64:
			for i := range dst {
				dst[i] = int64(binary.LittleEndian.Uint64(data[8*i:]))
			}
		case []float32:
			for i := range dst {
				dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
			}
		case []float64:
			for i := range dst {
				dst[i] = math.Float64frombits(binary.LittleEndian.Uint64(data[8*i:]))
			}
		case []bool:
			if bit+len(dst) > 8*len(data) {
				return errFew
			}
			for i := range dst {
				dst[i] = data[(bit+i)>>3]>>((bit+i)&7)&1 != 0
			}
			bit += len(dst)
		case []string:
			var err error
			text, err = texts(dst, text, size)
			return err
		}
		data = data[len(dst)*size:]
		return nil
	}
}

// texts fills dst from values of a size, or with their lengths before them.
func texts(dst []string, text string, size int) (rest string, err error) {
	for i := range dst {
		n := uint64(size)
		if size == 0 {
			if len(text) < 4 {
				return "", errFew
			}
			n = uint64(text[0]) | uint64(text[1])<<8 | uint64(text[2])<<16 | uint64(text[3])<<24
			text = text[4:]
		}
		if n > uint64(len(text)) {
			return "", damaged("a value has %d bytes, its page only %d", n, len(text))
		}
		dst[i], text = text[:n], text[n:]
	}
	return text, nil
}

// lookup returns the decoder of values that are indices of a dictionary.
func lookup[V Value](dictionary []V, data []byte) (decoder[V], error) {
	if len(data) == 0 {
		return func(dst []V) error { return errFew }, nil
	}
	h, err := newHybrid(data[1:], uint(data[0]))
	if err != nil {
		return nil, err
	}
	var indices [512]uint32
	return func(dst []V) error {
		for len(dst) > 0 {
			some := indices[:min(len(dst), len(indices))]
			if err := h.read(some); err != nil {
				return err
			}
			for i, k := range some {
				if k >= uint32(len(dictionary)) {
					return damaged("a value is number %d of a dictionary of %d", k, len(dictionary))
				}
				dst[i] = dictionary[k]
			}
			dst = dst[len(some):]
		}
		return nil
	}, nil
}

// withLength returns the bytes that have their length, of 4 bytes, before them, and what comes after them.
func withLength(data []byte) (runs, rest []byte, ok bool) {
	if len(data) < 4 || uint64(binary.LittleEndian.Uint32(data)) > uint64(len(data)-4) {
		return nil, nil, false
	}
	end := 4 + int(binary.LittleEndian.Uint32(data))
	return data[4:end], data[end:], true
}

// runs returns the decoder of booleans in the encoding RLE: a length of 4 bytes, then runs.
func runs(data []byte) (decoder[bool], error) {
	data, _, ok := withLength(data)
	if !ok {
		return nil, damaged("runs of booleans end too early")
	}
	h, err := newHybrid(data, 1)
	one := make([]uint32, 1)
	return func(dst []bool) error {
		for i := range dst {
			if err := h.read(one); err != nil {
				return err
			}
			dst[i] = one[0] != 0
		}
		return nil
	}, err
}

// packedDeltas returns the decoder of integers in the encoding DELTA_BINARY_PACKED.
func packedDeltas[V int32 | int64](data []byte) (decoder[V], error) {
	d, err := newDeltas(data)
	return func(dst []V) error {
		for i := range dst {
			v, err := d.next()
			if err != nil {
				return err
			}
			dst[i] = V(v)
		}
		return nil
	}, err
}

// lengthsFirst returns the decoder of the encoding DELTA_LENGTH_BYTE_ARRAY.
func lengthsFirst(data []byte) (decoder[string], error) {
	lengths, err := newDeltas(data)
	if err != nil {
		return nil, err
	}
	rest, err := lengths.rest()
	text := string(rest)
	return func(dst []string) error {
		for i := range dst {
			n, err := lengths.next()
			if err != nil {
				return err
			}
			if n > uint64(len(text)) {
				return damaged("a value has %d bytes, its page only %d", n, len(text))
			}
			dst[i], text = text[:n], text[n:]
		}
		return nil
	}, err
}

// maxPrefixed limits the bytes that values take from the values before them, in proportion to the page.
const maxPrefixed = 64 << 20

// prefixed returns the decoder of the encoding DELTA_BYTE_ARRAY: the length of the part that a value shares with the
// one before it, then the rest as lengthsFirst. fixed is the length of each value, or 0.
func prefixed(data []byte, fixed int) (decoder[string], error) {
	prefixes, err := newDeltas(data)
	if err != nil {
		return nil, err
	}
	rest, err := prefixes.rest()
	if err != nil {
		return nil, err
	}
	suffixes, err := lengthsFirst(withPadding(rest))
	before, suffix, free := "", make([]string, 1), maxPrefixed+256*len(data)
	return func(dst []string) error {
		for i := range dst {
			n, err := prefixes.next()
			if err == nil {
				err = suffixes(suffix)
			}
			if err != nil {
				return err
			}
			if n > uint64(len(before)) || fixed > 0 && int(n)+len(suffix[0]) != fixed {
				return damaged("a value shares %d bytes with one of %d bytes", n, len(before))
			}
			before = before[:n] + suffix[0]
			if free -= len(before); free < 0 {
				return damaged("values of a page share too many bytes")
			}
			dst[i] = before
		}
		return nil
	}, err
}

// streams returns the decoder of the encoding BYTE_STREAM_SPLIT: the first bytes of all values, then the second, ...
func streams[V Value](t Type, data []byte) (decoder[V], error) {
	size := width(t)
	if size == 0 || len(data)%size != 0 {
		return nil, damaged("%d bytes in streams of values of %d bytes", len(data), size)
	}
	n := len(data) / size
	whole := make([]byte, len(data)+padding)
	for i, b := range data {
		whole[i%n*size+i/n] = b
	}
	return plain[V](t, whole[:len(data)]), nil
}

func withPadding(data []byte) []byte {
	if cap(data) >= len(data)+padding {
		return data
	}
	return append(data[:len(data):len(data)], make([]byte, padding)...)[:len(data)]
}

// decoderOf returns the decoder of a page's values.
func decoderOf[V Value](t Type, e format.Encoding, dictionary []V, data []byte) (decoder[V], error) {
	var zero V
	_, isText := any(zero).(string)
	var d any
	var err error
	switch {
	case e == format.Plain:
		return plain[V](t, data), nil
	//lint:ignore SA1019 older writers use it
	case e == format.RLEDictionary || e == format.PlainDictionary:
		if dictionary == nil {
			return nil, damaged("a page needs a dictionary, but there is none before it")
		}
		return lookup(dictionary, data)
	case e == format.ByteStreamSplit && t.Physical != format.ByteArray && t.Physical != format.Boolean:
		return streams[V](t, data)
	case e == format.RLE && t.Physical == format.Boolean:
		d, err = runs(data)
	case e == format.DeltaBinaryPacked && t.Physical == format.Int32:
		d, err = packedDeltas[int32](data)
	case e == format.DeltaBinaryPacked && t.Physical == format.Int64:
		d, err = packedDeltas[int64](data)
	case e == format.DeltaLengthByteArray && t.Physical == format.ByteArray:
		d, err = lengthsFirst(data)
	case e == format.DeltaByteArray && isText:
		d, err = prefixed(data, width(t))
	default:
		return nil, unsupported("encoding %s of %s values", e, t.Physical)
	}
	if err != nil {
		return nil, err
	}
	return d.(decoder[V]), nil
}
