package writable

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Varint and Varlong are values of the classes VIntWritable and VLongWritable in [Any], where int32 and int64
// mean IntWritable and LongWritable.
type (
	Varint  int32
	Varlong int64
)

// Any is for keys and values of maps that have several classes. Values are those of the other classes, except
// Varint, Varlong, and []Entry[any, any] for maps. Arrays are not possible, because the class of their elements
// is not in the data.
var Any = Class[any]{"", appendAny, func([]byte) (any, []byte, error) {
	return nil, nil, errors.New("Any decodes only keys and values of maps, which have their class beside them")
}}

// known is a class with its values as any.
type known struct {
	name   string
	has    func(v any) bool // v has the class's type
	append func(dst []byte, v any) ([]byte, error)
	decode func(data []byte) (any, []byte, error)
}

func knownClass[T any](c Class[T]) known {
	return known{c.Name,
		func(v any) bool { _, ok := v.(T); return ok },
		func(dst []byte, v any) ([]byte, error) { return c.Append(dst, v.(T)) },
		func(data []byte) (any, []byte, error) {
			v, rest, err := c.Decode(data)
			return v, rest, err
		}}
}

// converted returns a class with another type of its values.
func converted[T, U ~int32 | ~int64](c Class[T]) Class[U] {
	return Class[U]{c.Name,
		func(dst []byte, v U) ([]byte, error) { return c.Append(dst, T(v)) },
		func(data []byte) (U, []byte, error) {
			v, rest, err := c.Decode(data)
			return U(v), rest, err
		}}
}

var knownClasses = []known{
	knownClass(Text), knownClass(Bytes), knownClass(Boolean), knownClass(Byte), knownClass(Short), knownClass(Int), knownClass(Long),
	knownClass(Float), knownClass(Double), knownClass(Null), knownClass(converted[int32, Varint](VInt)), knownClass(converted[int64, Varlong](VLong)),
}

const mapName = packageIO + "MapWritable"

// ofType returns the class for a value's type.
func ofType(v any) (known, error) {
	if _, ok := v.([]Entry[any, any]); ok {
		return known{name: mapName, append: func(dst []byte, v any) ([]byte, error) {
			elem := Class[any]{Append: appendAny}
			return appendEntries(dst, v.([]Entry[any, any]), elem, elem, false)
		}}, nil
	}
	for _, k := range knownClasses {
		if k.has(v) {
			return k, nil
		}
	}
	return known{}, fmt.Errorf("no Writable class has values of type %T", v)
}

func appendAny(dst []byte, v any) ([]byte, error) {
	k, err := ofType(v)
	if err != nil {
		return dst, err
	}
	return k.append(dst, v)
}

// Decode decodes a value of any class of this package, by the class's name. ok is false for other classes.
func Decode(name string, data []byte) (v any, ok bool, err error) {
	if name != mapName && name != packageIO+"SortedMapWritable" && !slices.ContainsFunc(knownClasses, func(k known) bool { return k.name == name }) {
		return nil, false, nil
	}
	c := Class[any]{name, nil, func(data []byte) (any, []byte, error) { return decodeAny(name, data, 0) }}
	v, err = c.Value(data)
	return v, true, err
}

func decodeAny(name string, data []byte, depth int) (any, []byte, error) {
	if name == mapName || name == packageIO+"SortedMapWritable" {
		return decodeMap(data, depth)
	}
	for _, k := range knownClasses {
		if k.name == name {
			return k.decode(data)
		}
	}
	return nil, nil, fmt.Errorf("%w: a map has a %s, and the length of its values is not known", ErrEncoding, name)
}

func decodeMap(data []byte, depth int) (any, []byte, error) {
	if depth == maxDepth {
		return nil, nil, fmt.Errorf("%w: more than %d maps within each other", ErrEncoding, maxDepth)
	}
	classes, n, rest, err := mapHead(data)
	one := func() (v any) {
		var name string
		switch {
		case err != nil:
		case len(rest) == 0:
			err = ErrShort
		default:
			if name, err = classes.name(rest[0]); err == nil {
				v, rest, err = decodeAny(name, rest[1:], depth+1)
			}
		}
		return v
	}
	var all []Entry[any, any]
	for i := 0; i < n && err == nil; i++ {
		key := one()
		all = append(all, Entry[any, any]{key, one()})
	}
	return all, rest, err
}

// simple returns the name of a class without its package.
func simple(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }
