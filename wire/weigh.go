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

// A message of n bytes may decode to freeMemory + n·memoryPerByte. Quern's messages need at
// most 6 bytes per byte, because field names are sent too. One byte can encode an empty
// list element that decodes to a whole struct: without this bound, a 4 MiB frame takes over
// a gigabyte.
const (
	freeMemory    = 4 << 20
	memoryPerByte = 16
)

// heaviestByte exceeds the memory that one byte can decode to: the largest struct, as a
// list element. Messages up to 4 KiB, which nearly all are, thus stay below freeMemory and
// skip the weighing, which takes as long as decoding.
const heaviestByte = 1 << 10

// checkWeight returns an error if decoding a body into a t would take too much memory. The
// body's shape must have been checked.
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

// weigher adds up the memory that decoding a body into a type would take.
type weigher struct {
	data []byte
	left int // memory still allowed; the walk ends below 0
}

// value weighs the next value, to be decoded into a t; a nil t means that it is skipped.
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

// mapWeight estimates the memory of decoding a map with n entries of this size, garbage
// included: tables are half empty, and the smallest has room for 8.
func mapWeight(n, entry int) int { return 64 + max(n, 8)*entry*2 + n*entry }

// structFields has the types of a struct's encoded fields.
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
