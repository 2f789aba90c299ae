package mapreduce

import (
	"fmt"
	"reflect"
	"strings"
	"unsafe"
)

// Fields visits the fields of a type of yours, which thereby becomes a key or
// value. Its pointer has a method that lists pointers to its own fields in key
// order, and does nothing else:
//
//	func (v *visit) Fields(f *mapreduce.Fields) {
//		f.String(&v.User)
//		f.Desc().Int64(&v.Time)
//	}
//
// The same method serves encoding, decoding, text and hash.
type Fields struct {
	task fieldsTask
	desc bool // the next field is in descending order

	buf  []byte // encoding and text: what is made; decoding: what is left
	d    *decoder
	hash int32
	n    int // fields visited

	// While the method itself is examined:
	low, high uintptr // the value's memory
	names     []string
	err       error
}

type fielder interface{ Fields(f *Fields) }

type fieldsTask uint8

const (
	fieldsExamine fieldsTask = iota
	fieldsEncode
	fieldsDecode
	fieldsText
	fieldsHash
)

// Desc makes the next field sort from high to low.
func (f *Fields) Desc() *Fields {
	f.desc = true
	return f
}

func (f *Fields) String(p *string)   { field(f, p, &stringCodec) }
func (f *Fields) Bytes(p *[]byte)    { field(f, p, &bytesCodec) }
func (f *Fields) Bool(p *bool)       { field(f, p, &boolCodec) }
func (f *Fields) Int(p *int)         { field(f, p, &intCodec) }
func (f *Fields) Int8(p *int8)       { field(f, p, &int8Codec) }
func (f *Fields) Int16(p *int16)     { field(f, p, &int16Codec) }
func (f *Fields) Int32(p *int32)     { field(f, p, &int32Codec) }
func (f *Fields) Int64(p *int64)     { field(f, p, &int64Codec) }
func (f *Fields) Uint(p *uint)       { field(f, p, &uintCodec) }
func (f *Fields) Uint8(p *uint8)     { field(f, p, &uint8Codec) }
func (f *Fields) Uint16(p *uint16)   { field(f, p, &uint16Codec) }
func (f *Fields) Uint32(p *uint32)   { field(f, p, &uint32Codec) }
func (f *Fields) Uint64(p *uint64)   { field(f, p, &uint64Codec) }
func (f *Fields) Float32(p *float32) { field(f, p, &float32Codec) }
func (f *Fields) Float64(p *float64) { field(f, p, &float64Codec) }

func field[T any](f *Fields, p *T, c *codec[T]) {
	desc := f.desc
	f.desc = false
	f.n++
	switch f.task {
	case fieldsEncode:
		start := len(f.buf)
		f.buf = c.appendNested(f.buf, *p)
		if desc {
			invert(f.buf[start:])
		}
	case fieldsDecode:
		switch {
		case f.d.err != nil:
		case desc:
			var rest []byte
			*p, rest = c.decodeNested(f.d, f.d.inverted(f.buf))
			f.buf = f.buf[len(f.buf)-len(rest):]
		default:
			*p, f.buf = c.decodeNested(f.d, f.buf)
		}
	case fieldsText:
		if f.n > 1 {
			f.buf = append(f.buf, '\t')
		}
		f.buf = c.text(f.buf, *p)
	case fieldsHash:
		f.hash = 31*f.hash + c.hash(*p)
	case fieldsExamine:
		f.examine(uintptr(unsafe.Pointer(p)), reflect.TypeFor[T]().String(), desc)
	}
}

func (f *Fields) examine(at uintptr, kind string, desc bool) {
	if desc {
		kind = "desc " + kind
	}
	f.names = append(f.names, kind)
	if at < f.low || at >= f.high {
		f.err = fmt.Errorf("field %d (%s) lies outside the value: Fields must have a pointer receiver and list the receiver's own fields", f.n, kind)
	}
}

// fieldsCodec makes the codec of a type with a Fields method. Values are copied
// to one place whose method is bound once, so nothing is allocated for a record.
func fieldsCodec[T any]() (*codec[T], error) {
	at := new(T)
	visit := any(at).(fielder)
	name, err := examineFields(visit, unsafe.Pointer(at), reflect.TypeFor[T]())
	if err != nil {
		return nil, err
	}
	f := new(Fields)
	run := func(task fieldsTask, buf []byte) {
		f.task, f.buf, f.n, f.hash = task, buf, 0, 0
		visit.Fields(f)
	}
	put := func(dst []byte, v T) []byte {
		*at = v
		run(fieldsEncode, dst)
		return f.buf
	}
	get := func(d *decoder, src []byte) (T, []byte) {
		var zero T
		*at, f.d = zero, d
		run(fieldsDecode, src)
		return *at, f.buf
	}
	return &codec[T]{
		name:         name,
		append:       put,
		appendNested: put,
		decodeNested: get,
		decode: func(d *decoder, src []byte) T {
			v, rest := get(d, src)
			if len(rest) > 0 {
				d.fail(errTrailing)
			}
			return v
		},
		hash: func(v T) int32 {
			*at = v
			run(fieldsHash, nil)
			return f.hash
		},
		text: func(dst []byte, v T) []byte {
			*at = v
			run(fieldsText, dst)
			return f.buf
		},
	}, nil
}

func examineFields(visit fielder, at unsafe.Pointer, t reflect.Type) (name string, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("method Fields of %s panics on the zero value: %v", t, r)
		}
	}()
	f := &Fields{task: fieldsExamine, low: uintptr(at), high: uintptr(at) + t.Size()}
	visit.Fields(f)
	switch {
	case f.err != nil:
		return "", fmt.Errorf("method Fields of %s: %w", t, f.err)
	case f.n == 0:
		return "", fmt.Errorf("method Fields of %s lists no field", t)
	case f.desc:
		return "", fmt.Errorf("method Fields of %s calls Desc after the last field", t)
	}
	return t.String() + "{" + strings.Join(f.names, ",") + "}", nil
}
