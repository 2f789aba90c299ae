package wire

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
)

// ErrInflated reports a message that would take far more memory than it has bytes.
var ErrInflated = errors.New("message decodes to too much memory")

// What a message of n bytes may decode to is freeMemory + n·memoryPerByte. Ours reach 6
// bytes for one: a struct's field names are sent with it. An empty or absent element of a
// list is a byte that decodes to a whole struct, so that without this bound a frame of
// 4 MiB takes more than a gigabyte.
const (
	freeMemory    = 4 << 20
	memoryPerByte = 16
)

// heaviestByte is more than the memory that one byte can decode to: the largest struct as
// an element of a list. Messages of up to 4 KiB, which nearly all are, stay below freeMemory
// all the same and are not weighed: that takes as long as to decode them.
const heaviestByte = 1 << 10

// checkWeight says whether a body, whose shape has been checked, may be decoded into a
// value of this type.
func checkWeight(body []byte, t reflect.Type) error {
	if len(body)*heaviestByte <= freeMemory {
		return nil
	}
	w := weigher{data: body, left: freeMemory + memoryPerByte*len(body)}
	w.value(t)
	if w.left < 0 {
		return fmt.Errorf("%w: %d bytes of a %v, at most %d of memory for each", ErrInflated, len(body), t, memoryPerByte)
	}
	return nil
}

// weigher walks a body along the type that it is decoded into.
type weigher struct {
	data []byte
	left int // memory that may still be taken; below 0 the walk ends
}

// value weighs the next value, which is decoded into a t; nil: it is skipped.
func (w *weigher) value(t reflect.Type) {
	c := w.data[0]
	head, payload, values, _ := measure(w.data)
	content := w.data[head : head+payload]
	w.data = w.data[head+payload:]
	if t != nil && t.Kind() == reflect.Pointer && c != 0xc0 {
		t = t.Elem()
		w.left -= int(t.Size())
	}
	isMap := c&0xf0 == 0x80 || c == 0xde || c == 0xdf
	switch {
	case t == nil:
		w.each(values, nil)
	case t.Kind() == reflect.String || t.Kind() == reflect.Slice && values == 0:
		w.left -= len(content)
	case t.Kind() == reflect.Slice:
		w.left -= 2 * values * int(t.Elem().Size()) // it is made, then appended
		w.each(values, t.Elem())
	case t.Kind() == reflect.Map && isMap:
		w.left -= mapWeight(values/2, int(t.Key().Size()+t.Elem().Size()))
		for range values / 2 {
			w.each(1, t.Key())
			w.each(1, t.Elem())
		}
	case t.Kind() == reflect.Struct && isMap:
		fields := fieldsOf(t)
		for range values / 2 {
			if w.left < 0 {
				return
			}
			head, payload, _, _ := measure(w.data)
			field := fields.named[string(w.data[head:head+payload])]
			w.each(1, nil)
			w.each(1, field)
		}
	case t.Kind() == reflect.Struct: // the decoder also takes a list of the fields
		fields := fieldsOf(t)
		for i := range values {
			if i < len(fields.all) {
				w.each(1, fields.all[i])
			} else {
				w.each(1, nil)
			}
		}
	default:
		w.each(values, nil)
	}
}

// each weighs n values.
func (w *weigher) each(n int, t reflect.Type) {
	for range n {
		if w.left < 0 {
			return
		}
		w.value(t)
	}
}

// mapWeight is about what a map of n entries of such a size takes, with what its decoding
// leaves behind: tables are half empty, and the smallest has room for 8.
func mapWeight(n, entry int) int { return 64 + max(n, 8)*entry*2 + n*entry }

// structFields is the fields of a struct as they are encoded.
type structFields struct {
	all   []reflect.Type
	named map[string]reflect.Type
}

var knownFields sync.Map // reflect.Type to *structFields

func fieldsOf(t reflect.Type) *structFields {
	if known, ok := knownFields.Load(t); ok {
		return known.(*structFields)
	}
	fields := &structFields{named: make(map[string]reflect.Type)}
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("msgpack"), ",")
		if name == "" {
			name = f.Name
		}
		fields.all = append(fields.all, f.Type)
		fields.named[name] = f.Type
	}
	knownFields.Store(t, fields)
	return fields
}
