package parquetfile

import (
	"encoding/binary"
	"fmt"

	"github.com/parquet-go/parquet-go/encoding/thrift"
)

// maxDepth limits structs in structs.
const maxDepth = 16

// errShort reports that the bytes end before the struct does.
var errShort = fmt.Errorf("%w in the middle of a structure", ErrTruncated)

// decodeThrift decodes the struct at the beginning of data, and returns its length. The library allocates memory for
// lists before it reads them, so the lengths of all lists are checked first.
func decodeThrift(data []byte, into any) (n int, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = damaged("%v", p)
		}
	}()
	w := walker{data: data}
	w.structure(0)
	if w.err != nil {
		return 0, w.err
	}
	var protocol thrift.CompactProtocol
	r := protocol.NewReaderFromBytes(data[:w.at:w.at])
	if err := thrift.NewDecoder(r).Decode(into); err != nil {
		return 0, damaged("%v", err)
	}
	return w.at, nil
}

// walker steps over a struct in Thrift's compact protocol.
type walker struct {
	data []byte
	at   int
	err  error
}

func (w *walker) fail(err error) {
	if w.err == nil {
		w.err = err
	}
}

func (w *walker) byte() byte {
	if w.err != nil || w.at >= len(w.data) {
		w.fail(errShort)
		return 0
	}
	w.at++
	return w.data[w.at-1]
}

func (w *walker) uvarint() uint64 {
	if w.err != nil {
		return 0
	}
	v, n := binary.Uvarint(w.data[w.at:])
	if n == 0 {
		w.fail(errShort)
	} else if n < 0 {
		w.fail(damaged("a number is too long"))
	}
	w.at += max(n, 0)
	return v
}

// skip steps over n bytes.
func (w *walker) skip(n uint64) {
	if w.err == nil && n > uint64(len(w.data)-w.at) {
		w.fail(errShort)
	}
	if w.err == nil {
		w.at += int(n)
	}
}

// structure steps over fields up to the stop byte.
func (w *walker) structure(depth int) {
	if depth > maxDepth {
		w.fail(damaged("structures are nested more than %d times", maxDepth))
	}
	for w.err == nil {
		head := w.byte()
		if head == 0 {
			return
		}
		if head>>4 == 0 { // the field's number follows
			w.uvarint()
		}
		w.value(head&0xf, depth, false)
	}
}

// value steps over a value. Booleans have a byte only in lists.
func (w *walker) value(kind byte, depth int, inList bool) {
	switch thrift.Type(kind) {
	case thrift.TRUE, thrift.FALSE:
		if inList {
			w.byte()
		}
	case thrift.I8:
		w.byte()
	case thrift.I16, thrift.I32, thrift.I64:
		w.uvarint()
	case thrift.DOUBLE:
		w.skip(8)
	case thrift.BINARY:
		w.skip(w.uvarint())
	case thrift.LIST, thrift.SET:
		w.list(depth + 1)
	case thrift.STRUCT:
		w.structure(depth + 1)
	default:
		w.fail(damaged("a field has type %d", kind))
	}
}

// list steps over elements. Each has a byte at least, so a list that passes is no longer than the data.
func (w *walker) list(depth int) {
	if depth > maxDepth {
		w.fail(damaged("lists are nested more than %d times", maxDepth))
	}
	head := w.byte()
	n := uint64(head >> 4)
	if n == 15 {
		n = w.uvarint()
	}
	for ; n > 0 && w.err == nil; n-- {
		w.value(head&0xf, depth, true)
	}
}
