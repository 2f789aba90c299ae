package mapreduce

import (
	"encoding/base64"
	"encoding/hex"
	"math"
	"reflect"
	"strconv"
	"time"
	"unicode/utf8"
	"unsafe"

	"github.com/quernmr/quern/internal/javatext"
)

// hash combines the hashes of the parts. Parts that Hadoop does not have are hashed as
// their encodings.
func (l *layout) hash(buf *[]byte, at unsafe.Pointer) int32 {
	h := int32(0)
	for i := range l.parts {
		p := &l.parts[i]
		h = 31*h + p.hash(buf, unsafe.Add(at, p.offset))
	}
	return h
}

func (p *part) hash(buf *[]byte, at unsafe.Pointer) int32 {
	switch p.kind {
	case partString:
		return javatext.Hash(1, bytesOf(*(*string)(at)))
	case partBytes:
		return javatext.Hash(1, *(*[]byte)(at))
	case partBool:
		return boolCodec.hash(*(*bool)(at))
	case partFloat32:
		return float32Codec.hash(*(*float32)(at))
	case partFloat64:
		return float64Codec.hash(*(*float64)(at))
	case partDesc:
		return p.elem.hash(buf, at)
	case partFields:
		return p.visit(fieldsHash, nil, at).hash
	}
	if n, _, ok := p.integer(at); ok {
		return int32(n)
	}
	*buf = p.put((*buf)[:0], at)
	return javatext.Hash(1, *buf)
}

// integer returns the value of an integer.
func (p *part) integer(at unsafe.Pointer) (v int64, signed, ok bool) {
	switch p.kind {
	case partInt:
		return int64(*(*int)(at)), true, true
	case partInt8:
		return int64(*(*int8)(at)), true, true
	case partInt16:
		return int64(*(*int16)(at)), true, true
	case partInt32:
		return int64(*(*int32)(at)), true, true
	case partInt64:
		return *(*int64)(at), true, true
	case partUint:
		return int64(*(*uint)(at)), false, true
	case partUint8:
		return int64(*(*uint8)(at)), false, true
	case partUint16:
		return int64(*(*uint16)(at)), false, true
	case partUint32:
		return int64(*(*uint32)(at)), false, true
	case partUint64:
		return *(*int64)(at), false, true
	}
	return 0, false, false
}

// text appends the parts with tabs between them. Numbers and strings are printed as Text
// prints them, what contains other values as JSON.
func (l *layout) text(dst []byte, at unsafe.Pointer) []byte {
	for i := range l.parts {
		if i > 0 {
			dst = append(dst, '\t')
		}
		p := &l.parts[i]
		dst = p.text(dst, unsafe.Add(at, p.offset))
	}
	return dst
}

func (p *part) text(dst []byte, at unsafe.Pointer) []byte {
	switch p.kind {
	case partString:
		return append(dst, *(*string)(at)...)
	case partBytes:
		return append(dst, *(*[]byte)(at)...)
	case partRaw:
		return hex.AppendEncode(dst, unsafe.Slice((*byte)(at), p.n))
	case partTime:
		return (*time.Time)(at).UTC().AppendFormat(dst, time.RFC3339Nano)
	case partFloat32:
		return javatext.AppendFloat(dst, float64(*(*float32)(at)), 32)
	case partFloat64:
		return javatext.AppendFloat(dst, *(*float64)(at), 64)
	case partDesc:
		return p.elem.text(dst, at)
	case partFields:
		return p.visit(fieldsText, dst, at).buf
	case partPointer:
		if to := *(*unsafe.Pointer)(at); to != nil && !p.elem.object {
			return p.elem.text(dst, to)
		}
	}
	return p.json(dst, at)
}

// json appends the values as JSON: an object if the type is a struct without a text of its own.
func (l *layout) json(dst []byte, at unsafe.Pointer) []byte {
	if !l.object {
		for i := range l.parts {
			dst = l.parts[i].json(dst, unsafe.Add(at, l.parts[i].offset))
		}
		return dst
	}
	dst = append(dst, '{')
	for i := range l.parts {
		p := &l.parts[i]
		dst = p.json(append(dst, p.member.before...), unsafe.Add(at, p.offset))
		dst = append(dst, p.member.after...)
	}
	return append(dst, '}')
}

func (p *part) json(dst []byte, at unsafe.Pointer) []byte {
	switch p.kind {
	case partString:
		return appendQuoted(dst, *(*string)(at))
	case partBytes:
		return append(base64.StdEncoding.AppendEncode(append(dst, '"'), *(*[]byte)(at)), '"')
	case partRaw, partTime, partFields:
		return appendQuoted(dst, string(p.text(nil, at)))
	case partBool:
		return strconv.AppendBool(dst, *(*bool)(at))
	case partFloat32, partFloat64:
		if f := reflect.NewAt(p.t, at).Elem().Float(); math.IsNaN(f) || math.IsInf(f, 0) {
			return appendQuoted(dst, string(p.text(nil, at)))
		}
		return p.text(dst, at)
	case partDesc:
		return p.elem.json(dst, at)
	case partPointer:
		if to := *(*unsafe.Pointer)(at); to != nil {
			return p.elem.json(dst, to)
		}
		return append(dst, "null"...)
	case partSlice:
		s := (*sliceHeader)(at)
		return p.jsonList(dst, s.data, s.len)
	case partArray:
		return p.jsonList(dst, at, p.n)
	case partMap:
		return p.jsonMap(dst, at)
	}
	n, signed, _ := p.integer(at)
	if signed {
		return strconv.AppendInt(dst, n, 10)
	}
	return strconv.AppendUint(dst, uint64(n), 10)
}

func (p *part) jsonList(dst []byte, data unsafe.Pointer, n int) []byte {
	dst = append(dst, '[')
	for i := range n {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = p.elem.json(dst, unsafe.Add(data, uintptr(i)*p.stride))
	}
	return append(dst, ']')
}

// jsonMap appends a map in the order of its encoding. Keys are strings in JSON.
func (p *part) jsonMap(dst []byte, at unsafe.Pointer) []byte {
	src, d, s := p.putMap(nil, at), &decoder{}, p.maps
	dst = append(dst, '{')
	for first := true; len(src) > 0; first = false {
		if !first {
			dst = append(dst, ',')
		}
		s.key.SetZero()
		s.value.SetZero()
		src = p.key.get(d, src[1:], s.key.Addr().UnsafePointer())
		src = p.elem.get(d, src, s.value.Addr().UnsafePointer())
		dst = append(appendQuoted(dst, string(p.key.text(nil, s.key.Addr().UnsafePointer()))), ':')
		dst = p.elem.json(dst, s.value.Addr().UnsafePointer())
	}
	return append(dst, '}')
}

// appendQuoted appends a string of JSON.
func appendQuoted(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			dst = append(dst, '\\', byte(r))
		case r < ' ':
			dst = append(dst, `\u00`...)
			dst = append(dst, "0123456789abcdef"[r>>4], "0123456789abcdef"[r&15])
		default:
			dst = utf8.AppendRune(dst, r)
		}
	}
	return append(dst, '"')
}
