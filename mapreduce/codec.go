package mapreduce

import (
	"errors"
	"fmt"
	"reflect"
	"unsafe"
)

// Codec tells how values of a type that is not ours travel. Give it to
// [Pairs.Codecs] or [Result.Codecs]; the types listed in the package comment need none.
type Codec[T any] struct {
	// Name stands in the job's description. Change it when the encoding changes.
	Name string
	// Append appends v's encoding to dst. For keys, the byte order of encodings is
	// the order in which a reduce sees them, and equal encodings are one group.
	Append func(dst []byte, v T) []byte
	// Decode reads one whole encoding. It must not keep src.
	Decode func(src []byte) (T, error)
	// Hash picks the partition of a key; nil: the hash of the encoding as []byte.
	Hash func(v T) int32
	// Text appends what a text output shows of v; nil: as fmt.Append prints it.
	Text func(dst []byte, v T) []byte
}

// codec is how values of one type travel. It has two forms of encoding, both
// ordered as the values are: the terminal one, which is a whole key or value, and
// the nested one, which tells its own end, so that another may follow it.
//
// A codec may hold scratch space: each attempt derives its own.
type codec[T any] struct {
	name string // of the type, in the job's description
	null bool   // takes no bytes, and no place in a text line

	view   func(v T) []byte             // the terminal form where it lies ready in v; nil: none does
	append func(dst []byte, v T) []byte // terminal form
	decode func(d *decoder, src []byte) T

	appendNested func(dst []byte, v T) []byte
	decodeNested func(d *decoder, src []byte) (v T, rest []byte)

	hash func(v T) int32
	text func(dst []byte, v T) []byte
}

// encode gives the terminal form of v, in place or in *buf.
func (c *codec[T]) encode(buf *[]byte, v T) []byte {
	if c.view != nil {
		return c.view(v)
	}
	*buf = c.append((*buf)[:0], v)
	return *buf
}

var (
	errTruncated = errors.New("encoding ends too early")
	errTrailing  = errors.New("bytes after the end of the encoding")
	errInvalid   = errors.New("byte that no encoding has")
)

// decoder is the state of decoding one stream of keys or values.
type decoder struct {
	keep    bool   // strings outlive the bytes they were decoded from
	arena   []byte // where kept strings go; the slice is what is left of a block
	scratch []byte // what a record's decoding had to rewrite, valid until the next
	err     error  // the first
}

func (d *decoder) fail(err error) {
	if d.err == nil {
		d.err = err
	}
}

// read decodes one terminal encoding. The error names the type.
func read[T any](c *codec[T], d *decoder, src []byte) (T, error) {
	d.scratch = d.scratch[:0]
	v := c.decode(d, src)
	if d.err != nil {
		return v, fmt.Errorf("decode %s from %d bytes: %w", c.name, len(src), d.err)
	}
	return v, nil
}

// readNested decodes the nested encoding at the start of src.
func readNested[T any](c *codec[T], d *decoder, src []byte) (v T, rest []byte, err error) {
	d.scratch = d.scratch[:0]
	v, rest = c.decodeNested(d, src)
	if d.err != nil {
		return v, nil, fmt.Errorf("decode %s from %d bytes: %w", c.name, len(src), d.err)
	}
	return v, rest, nil
}

const (
	arenaBlock = 64 << 10
	arenaLarge = 8 << 10 // strings from this size on get memory of their own
)

// string makes a string of b: a copy if strings are to be kept, else a view.
// Copies share blocks, so that a record costs no allocation of its own.
func (d *decoder) string(b []byte) string {
	if len(b) == 0 {
		return ""
	}
	if !d.keep {
		return unsafe.String(&b[0], len(b))
	}
	if len(b) >= arenaLarge {
		return string(b)
	}
	if len(b) > len(d.arena) {
		d.arena = make([]byte, arenaBlock)
	}
	n := copy(d.arena, b)
	s := unsafe.String(&d.arena[0], n)
	d.arena = d.arena[n:]
	return s
}

// derivable is implemented by generic types of this package, which know their parts.
type derivable interface{ deriveCodec() (any, error) }

// derive makes the codec of T from its kind.
func derive[T any]() (*codec[T], error) {
	var zero T
	if d, ok := any(zero).(derivable); ok {
		made, err := d.deriveCodec()
		if err != nil {
			return nil, err
		}
		if c, ok := made.(*codec[T]); ok {
			return c, nil
		}
	}
	if _, ok := any(&zero).(fielder); ok {
		return fieldsCodec[T]()
	}
	t := reflect.TypeFor[T]()
	switch t.Kind() {
	case reflect.String:
		return cast[T](stringCodec), nil
	case reflect.Bool:
		return cast[T](boolCodec), nil
	case reflect.Int:
		return cast[T](intCodec), nil
	case reflect.Int8:
		return cast[T](int8Codec), nil
	case reflect.Int16:
		return cast[T](int16Codec), nil
	case reflect.Int32:
		return cast[T](int32Codec), nil
	case reflect.Int64:
		return cast[T](int64Codec), nil
	case reflect.Uint:
		return cast[T](uintCodec), nil
	case reflect.Uint8:
		return cast[T](uint8Codec), nil
	case reflect.Uint16:
		return cast[T](uint16Codec), nil
	case reflect.Uint32:
		return cast[T](uint32Codec), nil
	case reflect.Uint64:
		return cast[T](uint64Codec), nil
	case reflect.Float32:
		return cast[T](float32Codec), nil
	case reflect.Float64:
		return cast[T](float64Codec), nil
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return cast[T](bytesCodec), nil
		}
	case reflect.Struct:
		if t.NumField() == 0 {
			return cast[T](nullCodec), nil
		}
	}
	return nil, fmt.Errorf("type %s has no encoding: give *%s a method Fields(*mapreduce.Fields), or the pairs a Codec", t, t)
}

// cast makes the codec of a type from that of its underlying type. The two
// differ in the static types of their functions only, and values of both types
// have one memory layout, which is why the functions can be shared.
func cast[T, U any](c codec[U]) *codec[T] {
	c.name = reflect.TypeFor[T]().String()
	return (*codec[T])(unsafe.Pointer(&c))
}

// resolve is the codec of T: the author's own, if given, else the derived one.
func resolve[T any](own *Codec[T]) (*codec[T], error) {
	if own == nil {
		return derive[T]()
	}
	t := reflect.TypeFor[T]().String()
	if own.Name == "" || own.Append == nil || own.Decode == nil {
		return nil, fmt.Errorf("codec for %s: Name, Append and Decode must be set", t)
	}
	c := &codec[T]{name: t + " as " + own.Name, append: own.Append, hash: own.Hash, text: own.Text}
	c.decode = func(d *decoder, src []byte) T {
		v, err := own.Decode(src)
		if err != nil {
			d.fail(err)
		}
		return v
	}
	var buf []byte
	c.appendNested = func(dst []byte, v T) []byte {
		buf = own.Append(buf[:0], v)
		return appendEscaped(dst, buf)
	}
	c.decodeNested = func(d *decoder, src []byte) (T, []byte) {
		content, rest := d.unescape(src)
		return c.decode(d, content), rest
	}
	if c.hash == nil {
		c.hash = func(v T) int32 {
			buf = own.Append(buf[:0], v)
			return hashBytes(buf)
		}
	}
	if c.text == nil {
		c.text = func(dst []byte, v T) []byte { return fmt.Append(dst, v) }
	}
	return c, nil
}

// must is resolve where check has already succeeded.
func must[T any](own *Codec[T]) *codec[T] {
	c, err := resolve(own)
	if err != nil {
		panic(err) // the plan was refused before any attempt could come here
	}
	return c
}

// typeName is T's name in a description, also when it has no codec.
func typeName[T any](own *Codec[T]) string {
	c, err := resolve(own)
	if err != nil {
		return reflect.TypeFor[T]().String()
	}
	return c.name
}

// plain says whether values of T hold no pointer, so that a slice of them is one
// block of memory to the garbage collector.
func plain(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Struct:
		for i := range t.NumField() {
			if !plain(t.Field(i).Type) {
				return false
			}
		}
		return true
	case reflect.Array:
		return t.Len() == 0 || plain(t.Elem())
	}
	return t.Kind() >= reflect.Bool && t.Kind() <= reflect.Complex128
}
