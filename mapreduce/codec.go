package mapreduce

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"unsafe"

	"github.com/quernmr/quern/internal/javatext"
)

// Codec encodes values of a type that this package does not know. Pass it to
// [Pairs.Codecs] or [Result.Codecs]. The types in the package comment need none.
type Codec[T any] struct {
	// Name identifies the codec in the job's description. Change it with the encoding.
	Name string
	// Append appends the encoding of v to dst. Keys are sorted by the bytes of their
	// encodings, and keys with equal encodings are one group.
	Append func(dst []byte, v T) []byte
	// Decode reads one whole encoding. It must not keep src.
	Decode func(src []byte) (T, error)
	// Hash picks the partition of a key; nil: the hash of the encoding as []byte.
	Hash func(v T) int32
	// Text appends v as Text prints it; nil: as fmt.Append does.
	Text func(dst []byte, v T) []byte

	parts partCodecs[T] // of PairCodec
}

// codec encodes values of one type. It has two forms of encoding, both with the order
// of the values: the terminal form is a whole key or value; the nested form marks its
// end, so that another encoding can follow.
//
// A codec may hold scratch memory, so each attempt derives its own.
type codec[T any] struct {
	name string // of the type, in the job's description
	form string // the encoding, for data that other programs read; the same for all types with it
	null bool   // encoded as no bytes and printed as nothing

	noOrder error // names a part that has no order, so that the type is no key; nil: bytes have the order of the values

	view   func(v T) []byte             // the terminal form without a copy; nil: use append
	append func(dst []byte, v T) []byte // terminal form
	decode func(d *decoder, src []byte) T

	appendNested func(dst []byte, v T) []byte
	decodeNested func(d *decoder, src []byte) (v T, rest []byte)

	hash func(v T) int32
	text func(dst []byte, v T) []byte
}

// encode returns the terminal form of v, as a view or in *buf.
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
	errInvalid   = errors.New("invalid byte")
)

// decoder is the state of decoding one stream of keys or values.
type decoder struct {
	keep    bool   // copy strings, because the decoded bytes may change
	own     bool   // copy []byte too, because values outlive the record
	arena   []byte // the free rest of a block for copied strings
	scratch []byte // bytes that decoding rewrites, valid until the next record
	flipped []flip // what inverted has rewritten
	err     error  // the first one
	path    string // of the part with the error, as in .Day or .Shops[2].Name; "": the whole value
	after   int    // fields of a method Fields after the one with the error
}

// begin prepares for another record.
func (d *decoder) begin() { d.scratch, d.flipped = d.scratch[:0], d.flipped[:0] }

func (d *decoder) fail(err error) {
	if d.err == nil {
		d.err = err
	}
}

// inside notes that the part with the error is inside another one.
func (d *decoder) inside(part string) { d.path = part + d.path }

// decodeError returns the error, which names the type and the part.
func (d *decoder) decodeError(name string, size int) error {
	if d.path == "" {
		return fmt.Errorf("decode %s from %d bytes: %w", name, size, d.err)
	}
	return fmt.Errorf("decode %s from %d bytes: at %s: %w", name, size, strings.TrimPrefix(d.path, "."), d.err)
}

// read decodes one terminal encoding. The error names the type.
func read[T any](c *codec[T], d *decoder, src []byte) (T, error) {
	d.begin()
	v := c.decode(d, src)
	if d.err != nil {
		return v, d.decodeError(c.name, len(src))
	}
	return v, nil
}

// readNested decodes the nested encoding at the start of src.
func readNested[T any](c *codec[T], d *decoder, src []byte) (v T, rest []byte, err error) {
	d.begin()
	v, rest = c.decodeNested(d, src)
	if d.err != nil {
		return v, nil, d.decodeError(c.name, len(src))
	}
	return v, rest, nil
}

const (
	arenaBlock = 64 << 10
	arenaLarge = 8 << 10 // strings of this size or more get memory of their own
)

// string returns b as a string: a copy if d.keep, else a view. Copies share blocks, so
// that most records cost no allocation.
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

// bytes returns b, or a copy if values outlive the record.
func (d *decoder) bytes(b []byte) []byte {
	if !d.own || len(b) == 0 {
		return b[:len(b):len(b)]
	}
	return bytesOf(d.string(b))
}

// derivable is implemented by this package's generic types, which build their codecs.
type derivable interface{ deriveCodec() (any, error) }

// derive returns the codec of T according to its kind.
func derive[T any]() (*codec[T], error) {
	var zero T
	if d, ok := any(zero).(derivable); ok {
		derived, err := d.deriveCodec()
		if err != nil {
			return nil, err
		}
		if c, ok := derived.(*codec[T]); ok {
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
	c, err := layoutCodec[T]()
	if err != nil {
		return nil, fmt.Errorf("%w; a Codec of the pairs can encode such values", err)
	}
	return c, nil
}

// cast converts the codec of an underlying type U to one for T. They differ only in the
// static types of their functions. Sharing the functions is safe because values of both
// types have the same memory layout.
func cast[T, U any](c codec[U]) *codec[T] {
	c.name, c.form = reflect.TypeFor[T]().String(), reflect.TypeFor[U]().String()
	return (*codec[T])(unsafe.Pointer(&c))
}

// resolve returns the codec of T: the author's if there is one, else the derived one.
func resolve[T any](custom *Codec[T]) (*codec[T], error) {
	if custom == nil {
		return derive[T]()
	}
	if custom.parts != nil {
		return custom.parts.resolve()
	}
	t := reflect.TypeFor[T]().String()
	if custom.Name == "" || custom.Append == nil || custom.Decode == nil {
		return nil, fmt.Errorf("codec for %s: Name, Append and Decode must be set", t)
	}
	c := &codec[T]{name: t + " as " + custom.Name, form: "codec " + custom.Name, append: custom.Append, hash: custom.Hash, text: custom.Text}
	c.decode = func(d *decoder, src []byte) T {
		v, err := custom.Decode(src)
		if err != nil {
			d.fail(err)
		}
		return v
	}
	var buf []byte
	c.appendNested = func(dst []byte, v T) []byte {
		buf = custom.Append(buf[:0], v)
		return appendEscaped(dst, buf)
	}
	c.decodeNested = func(d *decoder, src []byte) (T, []byte) {
		content, rest := d.unescape(src)
		return c.decode(d, content), rest
	}
	if c.hash == nil {
		c.hash = func(v T) int32 {
			buf = custom.Append(buf[:0], v)
			return javatext.Hash(1, buf)
		}
	}
	if c.text == nil {
		c.text = func(dst []byte, v T) []byte { return fmt.Append(dst, v) }
	}
	return c, nil
}

// must is resolve for codecs that check has accepted.
func must[T any](custom *Codec[T]) *codec[T] {
	c, err := resolve(custom)
	if err != nil {
		panic(err) // cannot happen: such a plan is refused before any attempt
	}
	return c
}

// typeName returns the name of T for descriptions, even if T has no codec.
func typeName[T any](custom *Codec[T]) string {
	c, err := resolve(custom)
	if err != nil {
		return reflect.TypeFor[T]().String()
	}
	return c.name
}

// formOf returns the types of records, for [wire.JobPlan.Types].
func formOf[K, V any](key *Codec[K], value *Codec[V]) (string, error) {
	k, err := resolve(key)
	if err != nil {
		return "", err
	}
	v, err := resolve(value)
	if err != nil {
		return "", err
	}
	return k.form + "\t" + v.form, nil
}

// pointerFree reports whether values of t hold no pointers. The garbage collector does
// not scan a slice of such values.
func pointerFree(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Struct:
		for i := range t.NumField() {
			if !pointerFree(t.Field(i).Type) {
				return false
			}
		}
		return true
	case reflect.Array:
		return t.Len() == 0 || pointerFree(t.Elem())
	}
	return t.Kind() >= reflect.Bool && t.Kind() <= reflect.Complex128
}
