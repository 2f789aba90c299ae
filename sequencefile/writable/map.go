package writable

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
)

// A MapWritable: classes that have no number of their own, then the entries.
//
//	+-------------+------------------------+----------------+-----------------------------------+
//	| n, 1 byte   | n times: number, name  | count, 4 bytes | number, key, number, value ...    |
//	+-------------+------------------------+----------------+-----------------------------------+
//
// The number of a class is one byte; a name is its length in 2 bytes and its bytes.

// numbered has the classes with a number of their own, from -127 on.
var numbered = []string{"ArrayWritable", "BooleanWritable", "BytesWritable", "FloatWritable", "IntWritable", "LongWritable", "MapWritable", "MD5Hash",
	"NullWritable", "ObjectWritable", "SortedMapWritable", "Text", "TwoDArrayWritable", "VIntWritable", "VLongWritable"}

// Limits of decoded values.
const (
	maxDepth      = 64      // of maps in maps
	maxEmpty      = 1 << 20 // elements that have no bytes
	maxMapClasses = 127
)

// Array returns a subclass of ArrayWritable with elements of one class. Hadoop needs a subclass to know the
// class of the elements, so there is no default name.
func Array[T any](name string, elem Class[T]) Class[[]T] {
	return Class[[]T]{name,
		func(dst []byte, v []T) (_ []byte, err error) {
			if len(v) > math.MaxInt32 {
				return dst, fmt.Errorf("%d elements: at most %d", len(v), math.MaxInt32)
			}
			dst = binary.BigEndian.AppendUint32(dst, uint32(len(v)))
			for _, e := range v {
				if dst, err = elem.Append(dst, e); err != nil {
					return dst, err
				}
			}
			return dst, nil
		},
		func(data []byte) (v []T, rest []byte, err error) {
			n, rest, err := count(data)
			if err == nil && (n < 0 || n > len(rest)+maxEmpty) {
				err = fmt.Errorf("%w: %d elements in %d bytes", ErrEncoding, n, len(rest))
			}
			for i := 0; i < n && err == nil; i++ {
				var e T
				if e, rest, err = elem.Decode(rest); err == nil {
					v = append(v, e)
				}
			}
			return v, rest, err
		}}
}

// Entry is a key of a map, with its value.
type Entry[K, V any] struct {
	Key   K
	Value V
}

// Map returns the class MapWritable for maps with keys of one class and values of one class. Encoded entries are
// sorted by their bytes. For a subclass, or SortedMapWritable, set the Name of the result.
func Map[K comparable, V any](key Class[K], value Class[V]) Class[map[K]V] {
	entries := Entries(key, value)
	return Class[map[K]V]{entries.Name,
		func(dst []byte, m map[K]V) ([]byte, error) {
			all := make([]Entry[K, V], 0, len(m))
			for k, v := range m {
				all = append(all, Entry[K, V]{k, v})
			}
			return appendEntries(dst, all, key, value, true)
		},
		func(data []byte) (map[K]V, []byte, error) {
			all, rest, err := entries.Decode(data)
			m := make(map[K]V, len(all))
			for _, e := range all {
				switch any(e.Key).(type) {
				case []byte, []Entry[any, any]:
					return nil, nil, fmt.Errorf("a key of type %T cannot be in a Go map: use Entries", e.Key)
				}
				m[e.Key] = e.Value
			}
			return m, rest, err
		}}
}

// Entries returns the class MapWritable for the entries of maps in their order.
func Entries[K, V any](key Class[K], value Class[V]) Class[[]Entry[K, V]] {
	return Class[[]Entry[K, V]]{packageIO + "MapWritable",
		func(dst []byte, all []Entry[K, V]) ([]byte, error) { return appendEntries(dst, all, key, value, false) },
		func(data []byte) ([]Entry[K, V], []byte, error) { return decodeEntries(data, key, value) }}
}

// classNumbers are the numbers of a map's classes.
type classNumbers struct {
	names []string // without a number of their own; the first one has the number 1
}

func (c *classNumbers) of(name string) (byte, error) {
	if i := slices.Index(numbered, strings.TrimPrefix(name, packageIO)); i >= 0 && strings.HasPrefix(name, packageIO) {
		return byte(i - 127), nil
	}
	i := slices.Index(c.names, name)
	if i < 0 {
		if len(c.names) == maxMapClasses || len(name) > math.MaxUint16 {
			return 0, fmt.Errorf("class %.100s in a MapWritable: it can have at most %d classes, with names of at most %d bytes", name, maxMapClasses, math.MaxUint16)
		}
		i = len(c.names)
		c.names = append(c.names, name)
	}
	return byte(i + 1), nil
}

func (c *classNumbers) name(number byte) (string, error) {
	if i := int(int8(number)); i < 0 && i+127 < len(numbered) && i+127 >= 0 {
		return packageIO + numbered[i+127], nil
	} else if i > 0 && i <= len(c.names) && c.names[i-1] != "" {
		return c.names[i-1], nil
	}
	return "", fmt.Errorf("%w: class number %d is not in the map", ErrEncoding, int8(number))
}

func appendEntries[K, V any](dst []byte, all []Entry[K, V], key Class[K], value Class[V], sorted bool) ([]byte, error) {
	var classes classNumbers
	encoded := make([][]byte, len(all))
	for i, e := range all {
		b, err := appendNumbered(nil, &classes, key, e.Key)
		if err == nil {
			b, err = appendNumbered(b, &classes, value, e.Value)
		}
		if err != nil {
			return dst, err
		}
		encoded[i] = b
	}
	if sorted {
		slices.SortFunc(encoded, bytes.Compare)
	}
	dst = append(dst, byte(len(classes.names)))
	for i, name := range classes.names {
		dst = binary.BigEndian.AppendUint16(append(dst, byte(i+1)), uint16(len(name)))
		dst = append(dst, name...)
	}
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(all)))
	return append(dst, bytes.Join(encoded, nil)...), nil
}

func appendNumbered[T any](dst []byte, classes *classNumbers, c Class[T], v T) ([]byte, error) {
	name := c.Name
	if name == "" {
		of, err := ofType(v)
		if err != nil {
			return dst, err
		}
		name = of.name
	}
	n, err := classes.of(name)
	if err != nil {
		return dst, err
	}
	return c.Append(append(dst, n), v)
}

// mapHead reads a map up to its entries.
func mapHead(data []byte) (classes classNumbers, n int, rest []byte, err error) {
	if len(data) == 0 {
		return classes, 0, nil, ErrShort
	}
	more, rest := int(int8(data[0])), data[1:]
	for range more {
		if len(rest) < 3 {
			return classes, 0, nil, ErrShort
		}
		number := int(int8(rest[0]))
		name, after, err := cut(rest[3:], int(binary.BigEndian.Uint16(rest[1:])))
		if err == nil && number < 1 {
			err = fmt.Errorf("%w: class %.100s has the number %d", ErrEncoding, name, number)
		}
		if err != nil {
			return classes, 0, nil, err
		}
		for len(classes.names) < number {
			classes.names = append(classes.names, "")
		}
		classes.names[number-1], rest = string(name), after
	}
	n, rest, err = count(rest)
	if err == nil && (n < 0 || n > len(rest)/2) {
		err = fmt.Errorf("%w: %d entries in %d bytes", ErrEncoding, n, len(rest))
	}
	return classes, n, rest, err
}

func decodeEntries[K, V any](data []byte, key Class[K], value Class[V]) (all []Entry[K, V], rest []byte, err error) {
	classes, n, rest, err := mapHead(data)
	for i := 0; i < n && err == nil; i++ {
		var e Entry[K, V]
		if e.Key, rest, err = decodeNumbered(rest, &classes, key); err == nil {
			e.Value, rest, err = decodeNumbered(rest, &classes, value)
		}
		all = append(all, e)
	}
	return all, rest, err
}

func decodeNumbered[T any](data []byte, classes *classNumbers, c Class[T]) (v T, rest []byte, err error) {
	if len(data) == 0 {
		return v, nil, ErrShort
	}
	name, err := classes.name(data[0])
	switch {
	case err != nil:
		return v, nil, err
	case c.Name == "":
		of, rest, err := decodeAny(name, data[1:], 0)
		v, _ = of.(T)
		return v, rest, err
	case c.Name != name:
		return v, nil, fmt.Errorf("%w: a map has a %s where a %s is wanted", ErrEncoding, name, c.Name)
	}
	return c.Decode(data[1:])
}
