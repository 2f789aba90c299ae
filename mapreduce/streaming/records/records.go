// Package records reads and writes the binary forms of the records that a command of Hadoop Streaming reads and writes.
// Numbers are big-endian.
//
// In rawbytes a key or a value is a length in 4 bytes, and the bytes. The records end with the first length of a key that is
// torn or negative.
//
// In typedbytes a key or a value is an object: a byte with its code, and the content:
//
//	0 bytes, 50 to 200   a length in 4 bytes, and the bytes
//	1 byte               1 byte
//	2 boolean            1 byte; 0 is false
//	3 int, 5 float       4 bytes
//	4 long, 6 double     8 bytes
//	7 string             a length in 4 bytes, and UTF-8
//	8 vector             a count in 4 bytes, and objects
//	9 list               objects, and a byte of 255
//	10 map               a count in 4 bytes, and a key and a value each
//
// The records end with the data, or with 255 in the place of a key. A list may end with the data too. A count below 0 is
// 0. All this is Hadoop's.
//
// Memory: a [Reader] has one record in its buffer, which grows with the data that have arrived, never by a length alone.
// A record beyond the maximum and objects that are deeper than [maxDepth] are refused.
package records

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/quernmr/quern/internal/javatext"
)

// Codes of objects in typedbytes.
const (
	bytesCode byte = iota
	byteCode
	boolCode
	intCode
	longCode
	floatCode
	doubleCode
	stringCode
	vectorCode
	listCode
	mapCode

	firstOwnCode = 50
	lastOwnCode  = 200
	endCode      = 255
)

// maxDepth limits objects within each other.
const maxDepth = 1000

// errEnd is the end of the records, or of a list.
var errEnd = errors.New("end")

// Reader reads the records of a command. Keys and values are valid until the next record.
type Reader struct {
	from       io.Reader
	max        int    // bytes of a record
	alive      func() // called after each read
	buf        []byte
	start, end int // unread bytes in buf
	at         int // bytes after start that belong to the current record
}

const firstBuffer = 64 << 10

// NewReader returns a Reader of records of at most max bytes. It calls alive after each read.
func NewReader(from io.Reader, max int, alive func()) *Reader {
	return &Reader{from: from, max: max, alive: alive, buf: make([]byte, firstBuffer)}
}

// Raw returns the next record in rawbytes; io.EOF: there is none.
func (r *Reader) Raw() (key, value []byte, err error) {
	r.drop()
	n, err := r.length()
	if n < 0 || err == io.EOF || err == io.ErrUnexpectedEOF {
		return nil, nil, io.EOF
	}
	if err != nil {
		return nil, nil, err
	}
	keyAt, err := r.skip(n)
	if err != nil {
		return nil, nil, torn("rawbytes", "the key", err)
	}
	keyEnd := r.at
	if n, err = r.length(); err == nil && n < 0 {
		err = fmt.Errorf("its length is %d", n)
	}
	valueAt := 0
	if err == nil {
		valueAt, err = r.skip(n)
	}
	if err != nil {
		return nil, nil, torn("rawbytes", "the value", err)
	}
	record := r.buf[r.start:]
	return record[keyAt:keyEnd:keyEnd], record[valueAt:r.at:r.at], nil
}

// Typed returns the next record in typedbytes, as encoded objects; io.EOF: there is none.
func (r *Reader) Typed() (key, value []byte, err error) {
	r.drop()
	switch err := r.object(0); {
	case err == errEnd:
		return nil, nil, io.EOF
	case err != nil:
		return nil, nil, torn("typedbytes", "the key", err)
	}
	keyEnd := r.at
	if err := r.object(0); err != nil {
		if err == errEnd {
			err = io.ErrUnexpectedEOF
		}
		return nil, nil, torn("typedbytes", "the value", err)
	}
	record := r.buf[r.start:]
	return record[:keyEnd:keyEnd], record[keyEnd:r.at:r.at], nil
}

func torn(form, part string, err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		err = errors.New("the output ends within it, or before it")
	}
	return fmt.Errorf("%s of a record in %s: %w", part, form, err)
}

// drop forgets the last record.
func (r *Reader) drop() {
	r.start, r.at = r.start+r.at, 0
}

// need waits until n bytes follow what belongs to the record. At the end of the data it returns io.EOF if there are
// none, and else io.ErrUnexpectedEOF.
func (r *Reader) need(n int) error {
	if n > r.max-r.at {
		return fmt.Errorf("it needs at least %d bytes, but quern.record.max.bytes=%d", r.at+n, r.max)
	}
	for r.end-r.start-r.at < n {
		r.room()
		got, err := r.from.Read(r.buf[r.end:])
		if r.end += got; got > 0 {
			r.alive()
		}
		switch enough := r.end-r.start-r.at >= n; {
		case err == nil || enough && err == io.EOF:
		case err == io.EOF && r.end-r.start-r.at > 0:
			return io.ErrUnexpectedEOF
		default:
			return err
		}
	}
	return nil
}

// room makes room for a read.
func (r *Reader) room() {
	if r.start > 0 && (r.end == len(r.buf) || r.start == r.end) {
		r.end = copy(r.buf, r.buf[r.start:r.end])
		r.start = 0
	}
	if r.end == len(r.buf) {
		grown := make([]byte, 2*len(r.buf))
		copy(grown, r.buf[:r.end])
		r.buf = grown
	}
}

// skip adds n bytes to the record and returns where they begin.
func (r *Reader) skip(n int) (at int, err error) {
	at = r.at
	if err := r.need(n); err != nil {
		return 0, err
	}
	r.at += n
	return at, nil
}

// length adds a length to the record.
func (r *Reader) length() (int, error) {
	at, err := r.skip(4)
	if err != nil {
		return 0, err
	}
	return int(int32(binary.BigEndian.Uint32(r.buf[r.start+at:]))), nil
}

// object adds an object to the record. It returns errEnd at the end of the data, and at an end mark, which it adds.
func (r *Reader) object(depth int) error {
	at, err := r.skip(1)
	if err == io.EOF {
		return errEnd
	}
	if err != nil {
		return err
	}
	code := r.buf[r.start+at]
	n := size(code)
	switch {
	case code == endCode:
		return errEnd
	case n > 0:
	case code == vectorCode || code == mapCode || code == listCode:
		return r.nested(code, depth+1)
	case code == bytesCode || code == stringCode || code >= firstOwnCode && code <= lastOwnCode:
		if n, err = r.length(); err == nil && n < 0 {
			return fmt.Errorf("its length is %d", n)
		}
	default:
		return fmt.Errorf("no type has the code %d", code)
	}
	if err == nil {
		_, err = r.skip(n)
	}
	return within(err)
}

// within tells the end of the data within an object from one before it.
func within(err error) error {
	if err == io.EOF || err == errEnd {
		return io.ErrUnexpectedEOF
	}
	return err
}

// size returns the bytes of the content of a type with a fixed size; 0: other types.
func size(code byte) int {
	switch code {
	case byteCode, boolCode:
		return 1
	case intCode, floatCode:
		return 4
	case longCode, doubleCode:
		return 8
	}
	return 0
}

func (r *Reader) nested(code byte, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("more than %d objects within each other", maxDepth)
	}
	if code == listCode {
		return r.list(depth)
	}
	n, err := r.length()
	if code == mapCode {
		n *= 2
	}
	for ; n > 0 && err == nil; n-- {
		err = r.object(depth)
	}
	return within(err)
}

func (r *Reader) list(depth int) error {
	for {
		before := r.at
		switch err := r.object(depth); {
		case err == errEnd && r.at == before: // the data end: Hadoop ends the list
			r.room()
			r.buf[r.end] = endCode
			r.end++
			r.at++
			return nil
		case err == errEnd:
			return nil
		case err != nil:
			return err
		}
	}
}

// AppendRaw appends bytes in rawbytes.
func AppendRaw(dst, b []byte) []byte {
	return append(binary.BigEndian.AppendUint32(dst, uint32(len(b))), b...)
}

// AppendBytes appends an object of bytes.
func AppendBytes(dst, b []byte) []byte { return AppendRaw(append(dst, bytesCode), b) }

// AppendString appends a string. Malformed UTF-8 is replaced, as Java does.
func AppendString(dst, b []byte) []byte {
	at := len(dst) + 1
	dst = javatext.AppendUTF8(append(dst, stringCode, 0, 0, 0, 0), string(b))
	binary.BigEndian.PutUint32(dst[at:], uint32(len(dst)-at-4))
	return dst
}

// AppendLong appends a long.
func AppendLong(dst []byte, n int64) []byte {
	return binary.BigEndian.AppendUint64(append(dst, longCode), uint64(n))
}

// AppendValue appends a decoded Writable of a class. Values without a type of their own become an object of the code 50:
// the name of the class and the encoded value.
func AppendValue(dst []byte, v any, class string, encoded []byte) []byte {
	switch v := v.(type) {
	case []byte:
		return AppendBytes(dst, v)
	case string:
		return AppendString(dst, []byte(v))
	case int8:
		return append(dst, byteCode, byte(v))
	case bool:
		return append(dst, boolCode, byte(truth(v)))
	case int32:
		return binary.BigEndian.AppendUint32(append(dst, intCode), uint32(v))
	case int64:
		return AppendLong(dst, v)
	case float32:
		return binary.BigEndian.AppendUint32(append(dst, floatCode), math.Float32bits(v))
	case float64:
		return binary.BigEndian.AppendUint64(append(dst, doubleCode), math.Float64bits(v))
	}
	content := append(AppendRaw(nil, []byte(class)), encoded...)
	return AppendRaw(append(dst, firstOwnCode), content)
}
