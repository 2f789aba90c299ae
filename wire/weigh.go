package wire

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
)

// ErrInflated reports a message that would take far more memory than its size.
var ErrInflated = errors.New("message decodes to too much memory")

// A message of n bytes may decode to freeMemory + n·memoryPerByte bytes. Quern's messages decode to
// at most 6 bytes per byte, because they have field names. In an attack, one byte can be an empty
// list element that decodes to a whole struct: without this limit, a 4 MiB frame would take over a
// gigabyte.
const (
	freeMemory    = 4 << 20
	memoryPerByte = 16

	// memoryPerStoredByte is the same for other data. It may have names of one letter: a job of a
	// snapshot takes up to 20.
	memoryPerStoredByte = 64
)

// maxMemoryOfByte is above the memory to which one byte can decode: the largest struct, as a list
// element. So messages up to 4 KiB stay below freeMemory. Nearly all messages do, and need no
// check, which takes as long as decoding.
const maxMemoryOfByte = 1 << 10

// checkWeight returns an error if decoding body into a value of type t would take too much
// memory for each byte. checkShape must have accepted the body.
func checkWeight(body []byte, t reflect.Type, perByte int) error {
	if len(body)*maxMemoryOfByte <= freeMemory {
		return nil
	}
	w := weigher{data: body, remaining: freeMemory + perByte*len(body)}
	w.value(t)
	if w.remaining < 0 {
		return fmt.Errorf("%w: %d bytes of a %v, at most %d of memory for each", ErrInflated, len(body), t, perByte)
	}
	return nil
}

// weigher adds up the memory that decoding a body into a type would take.
type weigher struct {
	data      []byte
	remaining int // memory that is still allowed; below 0 the weigher stops
}

// value subtracts the memory of the next value if it is decoded into a t. If t is nil, the decoder
// skips the value.
func (w *weigher) value(t reflect.Type) {
	c := w.data[0]
	head, payload, values, _ := measure(w.data)
	content := w.data[head : head+payload]
	w.data = w.data[head+payload:]
	if t != nil && t.Kind() == reflect.Pointer && c != 0xc0 {
		t = t.Elem()
		w.remaining -= int(t.Size())
	}
	isMap := c&0xf0 == 0x80 || c == 0xde || c == 0xdf
	switch {
	case t == nil:
		w.values(values, nil)
	case t.Kind() == reflect.String || t.Kind() == reflect.Slice && values == 0:
		w.remaining -= len(content)
	case t.Kind() == reflect.Slice:
		w.remaining -= 2 * values * int(t.Elem().Size()) // the decoder makes the list and then appends to it
		w.values(values, t.Elem())
	case t.Kind() == reflect.Map && isMap:
		w.remaining -= mapWeight(values/2, int(t.Key().Size()+t.Elem().Size()))
		for range values / 2 {
			w.values(1, t.Key())
			w.values(1, t.Elem())
		}
	case t.Kind() == reflect.Struct && isMap:
		fields := fieldsOf(t)
		for range values / 2 {
			if w.remaining < 0 {
				return
			}
			head, payload, _, _ := measure(w.data)
			field := fields.named[string(w.data[head:head+payload])]
			w.values(1, nil)
			w.values(1, field)
		}
	case t.Kind() == reflect.Struct: // the decoder also accepts a list of the fields
		fields := fieldsOf(t)
		for i := range values {
			if i < len(fields.all) {
				w.values(1, fields.all[i])
			} else {
				w.values(1, nil)
			}
		}
	default:
		w.values(values, nil)
	}
}

// values calls value for n values.
func (w *weigher) values(n int, t reflect.Type) {
	for range n {
		if w.remaining < 0 {
			return
		}
		w.value(t)
	}
}

// mapWeight estimates the memory, with garbage, of decoding a map with n entries of a size. Tables
// are half empty, and the smallest has room for 8 entries.
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
		switch name {
		case "-":
			continue
		case "":
			name = f.Name
		}
		fields.all = append(fields.all, f.Type)
		fields.named[name] = f.Type
	}
	knownFields.Store(t, fields)
	return fields
}
