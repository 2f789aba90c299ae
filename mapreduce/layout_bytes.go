package mapreduce

import (
	"bytes"
	"encoding/binary"
	"errors"
	"reflect"
	"slices"
	"strconv"
	"time"
	"unsafe"
)

const timeSize = 12

// put appends the encoding of the value at an address.
func (l *layout) put(dst []byte, at unsafe.Pointer) []byte {
	for i := range l.parts {
		p := &l.parts[i]
		at := unsafe.Add(at, p.offset)
		switch p.kind {
		case partString:
			dst = appendEscaped(dst, bytesOf(*(*string)(at)))
		case partBytes:
			dst = appendEscaped(dst, *(*[]byte)(at))
		case partInt64:
			dst = binary.BigEndian.AppendUint64(dst, *(*uint64)(at)^sign64)
		case partInt:
			dst = binary.BigEndian.AppendUint64(dst, uint64(*(*int)(at))^sign64)
		case partUint64:
			dst = binary.BigEndian.AppendUint64(dst, *(*uint64)(at))
		case partUint:
			dst = binary.BigEndian.AppendUint64(dst, uint64(*(*uint)(at)))
		case partFloat64:
			dst = binary.BigEndian.AppendUint64(dst, orderFloat64(float64bits(*(*float64)(at))))
		case partFloat32:
			dst = binary.BigEndian.AppendUint32(dst, orderFloat32(float32bits(*(*float32)(at))))
		case partInt32:
			dst = binary.BigEndian.AppendUint32(dst, *(*uint32)(at)^sign32)
		case partUint32:
			dst = binary.BigEndian.AppendUint32(dst, *(*uint32)(at))
		case partInt16:
			dst = binary.BigEndian.AppendUint16(dst, *(*uint16)(at)^sign16)
		case partUint16:
			dst = binary.BigEndian.AppendUint16(dst, *(*uint16)(at))
		case partInt8:
			dst = append(dst, *(*uint8)(at)^sign8)
		case partUint8:
			dst = append(dst, *(*uint8)(at))
		case partBool:
			dst = appendBool(dst, *(*bool)(at))
		default:
			dst = p.put(dst, at)
		}
	}
	return dst
}

// put appends a part that is not scalar.
func (p *part) put(dst []byte, at unsafe.Pointer) []byte {
	switch p.kind {
	case partRaw:
		return append(dst, unsafe.Slice((*byte)(at), p.n)...)
	case partTime:
		t := (*time.Time)(at)
		dst = binary.BigEndian.AppendUint64(dst, uint64(t.Unix())^sign64)
		return binary.BigEndian.AppendUint32(dst, uint32(t.Nanosecond()))
	case partDesc:
		start := len(dst)
		dst = p.elem.put(dst, at)
		invert(dst[start:])
		return dst
	case partPointer:
		to := *(*unsafe.Pointer)(at)
		if to == nil {
			return append(dst, 0)
		}
		return p.elem.put(append(dst, 1), to)
	case partArray:
		for i := range p.n {
			dst = p.elem.put(dst, unsafe.Add(at, uintptr(i)*p.stride))
		}
		return dst
	case partSlice:
		s := (*sliceHeader)(at)
		for i := range s.len {
			dst = p.elem.put(append(dst, 1), unsafe.Add(s.data, uintptr(i)*p.stride))
		}
		return append(dst, 0)
	case partMap:
		return append(p.putMap(dst, at), 0)
	}
	return p.visit(fieldsEncode, dst, at).buf
}

// sliceHeader is the memory of a slice of any type, for reading.
type sliceHeader struct {
	data     unsafe.Pointer
	len, cap int
}

// visit calls the method Fields of the value at an address.
func (p *part) visit(mode fieldsMode, buf []byte, at unsafe.Pointer) *Fields {
	f := p.fields
	f.mode, f.buf, f.n, f.hash = mode, buf, 0, 0
	reflect.NewAt(p.t, at).Interface().(fielder).Fields(f)
	return f
}

// mapScratch is memory for the entries of a map. A part is used for one map at a time,
// because no type contains itself.
type mapScratch struct {
	iter       reflect.MapIter
	key, value reflect.Value
	entries    []mapEntry
}

type mapEntry struct{ start, end int }

var errMapOrder = errors.New("a map has no order")

func newMapScratch(t reflect.Type) *mapScratch {
	return &mapScratch{key: reflect.New(t.Key()).Elem(), value: reflect.New(t.Elem()).Elem()}
}

// putMap appends the entries of a map in the order of their bytes.
func (p *part) putMap(dst []byte, at unsafe.Pointer) []byte {
	m := reflect.NewAt(p.t, at).Elem()
	if m.Len() == 0 {
		return dst
	}
	s := p.maps
	s.entries = s.entries[:0]
	first := len(dst)
	s.iter.Reset(m)
	for s.iter.Next() {
		start := len(dst)
		s.key.SetIterKey(&s.iter)
		s.value.SetIterValue(&s.iter)
		dst = p.elem.put(p.key.put(append(dst, 1), s.key.Addr().UnsafePointer()), s.value.Addr().UnsafePointer())
		s.entries = append(s.entries, mapEntry{start, len(dst)})
	}
	s.iter.Reset(reflect.Value{})
	order := func(a, b mapEntry) int { return bytes.Compare(dst[a.start:a.end], dst[b.start:b.end]) }
	if slices.IsSortedFunc(s.entries, order) {
		return dst
	}
	slices.SortFunc(s.entries, order)
	last := len(dst)
	for _, e := range s.entries {
		dst = append(dst, dst[e.start:e.end]...)
	}
	copy(dst[first:], dst[last:])
	return dst[:last]
}

// get decodes a value to an address, where the memory is zero.
func (l *layout) get(d *decoder, src []byte, at unsafe.Pointer) []byte {
	for i := range l.parts {
		p := &l.parts[i]
		at := unsafe.Add(at, p.offset)
		if len(src) < p.size {
			return l.failed(d, i, errTruncated)
		}
		switch p.kind {
		case partString:
			var content []byte
			if content, src = d.unescape(src); d.err != nil {
				return l.failed(d, i, d.err)
			}
			*(*string)(at) = d.string(content)
		case partInt64:
			*(*uint64)(at) = binary.BigEndian.Uint64(src) ^ sign64
		case partInt:
			*(*int)(at) = int(binary.BigEndian.Uint64(src) ^ sign64)
		case partUint64:
			*(*uint64)(at) = binary.BigEndian.Uint64(src)
		case partUint:
			*(*uint)(at) = uint(binary.BigEndian.Uint64(src))
		case partFloat64:
			n := unorderFloat64(binary.BigEndian.Uint64(src))
			if *(*uint64)(at) = n; float64bits(*(*float64)(at)) != n {
				return l.failed(d, i, errInvalid) // another NaN
			}
		case partFloat32:
			n := unorderFloat32(binary.BigEndian.Uint32(src))
			if *(*uint32)(at) = n; float32bits(*(*float32)(at)) != n {
				return l.failed(d, i, errInvalid) // another NaN
			}
		case partInt32:
			*(*uint32)(at) = binary.BigEndian.Uint32(src) ^ sign32
		case partUint32:
			*(*uint32)(at) = binary.BigEndian.Uint32(src)
		case partInt16:
			*(*uint16)(at) = binary.BigEndian.Uint16(src) ^ sign16
		case partUint16:
			*(*uint16)(at) = binary.BigEndian.Uint16(src)
		case partInt8:
			*(*uint8)(at) = src[0] ^ sign8
		case partUint8:
			*(*uint8)(at) = src[0]
		case partBool:
			if *(*bool)(at) = src[0] == 1; src[0] > 1 {
				return l.failed(d, i, errInvalid)
			}
		default:
			if src = p.get(d, src, at); d.err != nil {
				return l.failed(d, i, d.err)
			}
		}
		src = src[p.size:]
	}
	return src
}

// failed notes which part does not decode.
func (l *layout) failed(d *decoder, i int, err error) []byte {
	d.fail(err)
	if m := l.parts[i].member; m != nil {
		d.inside("." + m.name)
	}
	return nil
}

// failed notes which element does not decode.
func (p *part) failed(d *decoder, i int) {
	if d.err != nil {
		d.inside("[" + strconv.Itoa(i) + "]")
	}
}

// get decodes a part that is not scalar.
func (p *part) get(d *decoder, src []byte, at unsafe.Pointer) []byte {
	switch p.kind {
	case partBytes:
		var b []byte
		if b, src = bytesCodec.decodeNested(d, src); len(b) > 0 {
			*(*[]byte)(at) = b
		}
	case partRaw:
		if len(src) < p.n {
			d.fail(errTruncated)
			return nil
		}
		copy(unsafe.Slice((*byte)(at), p.n), src)
		return src[p.n:]
	case partTime:
		return getTime(d, src, (*time.Time)(at))
	case partDesc:
		rest := p.elem.get(d, d.inverted(src), at)
		return src[len(src)-len(rest):]
	case partPointer:
		var some bool
		if some, src = decodeBool(d, src); !some {
			return src
		}
		to := reflect.New(p.t.Elem()).UnsafePointer()
		*(*unsafe.Pointer)(at) = to
		return p.elem.get(d, src, to)
	case partArray:
		for i := 0; i < p.n && d.err == nil; i++ {
			src = p.elem.get(d, src, unsafe.Add(at, uintptr(i)*p.stride))
			p.failed(d, i)
		}
	case partSlice:
		return p.getSlice(d, src, at)
	case partMap:
		return p.getMap(d, src, at)
	case partFields:
		p.fields.d = d
		rest := p.visit(fieldsDecode, src, at).buf
		if d.err != nil {
			p.fields.failed(reflect.NewAt(p.t, at).Interface().(fielder), at, p.t)
		}
		return rest
	}
	return src
}

func getTime(d *decoder, src []byte, t *time.Time) []byte {
	if len(src) < timeSize {
		d.fail(errTruncated)
		return nil
	}
	nanos := binary.BigEndian.Uint32(src[8:])
	if nanos >= 1e9 {
		d.fail(errInvalid)
		return nil
	}
	*t = time.Unix(int64(binary.BigEndian.Uint64(src)^sign64), int64(nanos)).UTC()
	return src[timeSize:]
}

// getSlice decodes elements until their end. It makes room for as many elements as src
// can have.
func (p *part) getSlice(d *decoder, src []byte, at unsafe.Pointer) []byte {
	more, src := decodeBool(d, src)
	if !more {
		return src
	}
	s := reflect.NewAt(p.t, at).Elem()
	s.Grow(p.elem.count(src))
	data, room := s.UnsafePointer(), s.Cap()
	n := 0
	for more && d.err == nil {
		if n == room {
			s.SetLen(n)
			s.Grow(1)
			data, room = s.UnsafePointer(), s.Cap()
		}
		if src = p.elem.get(d, src, unsafe.Add(data, uintptr(n)*p.stride)); d.err == nil {
			more, src = decodeBool(d, src)
		}
		p.failed(d, n)
		n++
	}
	s.SetLen(n)
	return src
}

// count returns how many elements a slice has if all have encodings of one size, else 1.
// src begins with the first element.
func (l *layout) count(src []byte) int {
	if l.size < 0 {
		return 1
	}
	n := 1
	for at := l.size; at < len(src) && src[at] == 1; at += l.size + 1 {
		n++
	}
	return n
}

// getMap decodes entries. It refuses entries that putMap would write in another order, so
// that a map has one encoding. A map is never nil, so that code can assign to it.
func (p *part) getMap(d *decoder, src []byte, at unsafe.Pointer) []byte {
	more, src := decodeBool(d, src)
	if d.err != nil {
		return nil
	}
	s, m := p.maps, reflect.MakeMap(p.t)
	n := 0
	for last := []byte(nil); more; n++ {
		s.key.SetZero()
		s.value.SetZero()
		rest := p.key.get(d, src, s.key.Addr().UnsafePointer())
		if d.err != nil {
			d.inside("[key]")
			return nil
		}
		if rest = p.elem.get(d, rest, s.value.Addr().UnsafePointer()); d.err != nil {
			d.inside("[]")
			return nil
		}
		entry := src[:len(src)-len(rest)]
		if bytes.Compare(entry, last) < 0 {
			d.fail(errInvalid)
			return nil
		}
		m.SetMapIndex(s.key, s.value)
		last = entry
		if more, src = decodeBool(d, rest); d.err != nil {
			return nil
		}
	}
	if m.Len() != n {
		d.fail(errInvalid) // a key twice
		return nil
	}
	reflect.NewAt(p.t, at).Elem().Set(m)
	return src
}
