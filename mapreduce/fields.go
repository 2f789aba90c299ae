package mapreduce

import (
	"fmt"
	"reflect"
	"unsafe"
)

// Fields visits the fields of your own type, if it is not encoded as the struct that it is:
// in another order, without a field in some values, or with fields that are not exported.
// Give the type a method with a pointer receiver that lists pointers to the
// receiver's fields in key order, and does nothing else:
//
//	func (v *visit) Fields(f *mapreduce.Fields) {
//		f.String(&v.User)
//		f.Desc().Int64(&v.Time)
//	}
//
// Encoding, decoding, text and hash all call this method. It must list every field in
// every call; name a field that is not encoded with [Fields.Skip]. A job with a type
// that leaves a field out is refused.
type Fields struct {
	mode fieldsMode
	desc bool // the next field is in descending order

	buf  []byte // encoding and text: the result; decoding: the remaining bytes
	d    *decoder
	hash int32
	n    int // fields visited
	vals []fieldLayout

	// For fieldsExamine:
	value   span
	inside  []reflect.Type // the type with the method, and those around it
	listed  []listedField
	skipped []span
	names   []string
	noOrder error
	err     error
}

// fieldLayout is the layout of a field that [Fields.Value] lists.
type fieldLayout struct {
	t      reflect.Type // a pointer to the field's type
	layout *layout
	buf    []byte
}

type fielder interface{ Fields(f *Fields) }

type fieldsMode uint8

const (
	fieldsExamine fieldsMode = iota
	fieldsEncode
	fieldsDecode
	fieldsText
	fieldsHash
)

// Desc sorts the next field from high to low.
func (f *Fields) Desc() *Fields {
	f.desc = true
	return f
}

// Skip excludes a field, given by a pointer, from the encoding: it is zero after
// decoding, and no part of a key.
//
// A field that is listed only under a condition needs Skip too, because the check of
// the type calls Fields with the zero value. Such a field is encoded in the values that
// list it, and is zero in the others. The condition may depend only on fields that are
// listed before it: during decoding, the later ones are not known.
func (f *Fields) Skip(p any) {
	if f.mode == fieldsExamine {
		f.skip(p)
	}
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

// Value lists a field of any type that needs no method, such as a slice or a struct. p is a
// pointer to it.
func (f *Fields) Value(p any) {
	desc := f.desc
	f.desc = false
	f.n++
	if f.mode == fieldsExamine {
		f.listValue(p, desc)
		return
	}
	v, at := f.layoutOf(p), reflect.ValueOf(p).UnsafePointer()
	switch f.mode {
	case fieldsEncode:
		start := len(f.buf)
		f.buf = v.layout.put(f.buf, at)
		if desc {
			invert(f.buf[start:])
		}
	case fieldsDecode:
		switch {
		case f.d.err != nil:
			f.d.after++
		case desc:
			rest := v.layout.get(f.d, f.d.inverted(f.buf), at)
			f.buf = f.buf[len(f.buf)-len(rest):]
		default:
			f.buf = v.layout.get(f.d, f.buf, at)
		}
	case fieldsText:
		if f.n > 1 {
			f.buf = append(f.buf, '\t')
		}
		f.buf = v.layout.text(f.buf, at)
	case fieldsHash:
		f.hash = 31*f.hash + v.layout.hash(&v.buf, at)
	}
}

// layoutOf returns the layout of the field that is visited, and makes it at first use.
func (f *Fields) layoutOf(p any) *fieldLayout {
	for len(f.vals) < f.n {
		f.vals = append(f.vals, fieldLayout{})
	}
	v := &f.vals[f.n-1]
	if t := reflect.TypeOf(p); v.t != t {
		l, _, err := layoutOf(t.Elem())
		if err != nil {
			panic(fmt.Sprintf("Fields lists another field than for the zero value: %v", err))
		}
		*v = fieldLayout{t: t, layout: l}
	}
	return v
}

func field[T any](f *Fields, p *T, c *codec[T]) {
	desc := f.desc
	f.desc = false
	f.n++
	switch f.mode {
	case fieldsEncode:
		start := len(f.buf)
		f.buf = c.appendNested(f.buf, *p)
		if desc {
			invert(f.buf[start:])
		}
	case fieldsDecode:
		switch {
		case f.d.err != nil:
			f.d.after++
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
		f.list(span{uintptr(unsafe.Pointer(p)), unsafe.Sizeof(*p)}, reflect.TypeFor[T](), reflect.TypeFor[T]().String(), desc)
	}
}

// fieldsCodec returns the codec of a type with a Fields method. It copies every value
// to one variable and calls the method there, so that records cost no allocation.
func fieldsCodec[T any]() (*codec[T], error) {
	at := new(T)
	visit := any(at).(fielder)
	examined, name, err := examineFields(visit, unsafe.Pointer(at), reflect.TypeFor[T](), nil)
	if err != nil {
		return nil, err
	}
	f := new(Fields)
	run := func(task fieldsMode, buf []byte) {
		f.mode, f.buf, f.n, f.hash = task, buf, 0, 0
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
		if d.err != nil {
			f.failed(visit, unsafe.Pointer(at), reflect.TypeFor[T]())
		}
		return *at, f.buf
	}
	return &codec[T]{
		name:         name,
		form:         examined.form(),
		noOrder:      examined.noOrder,
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
