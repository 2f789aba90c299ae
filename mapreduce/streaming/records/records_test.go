package records

import (
	"bytes"
	"encoding/binary"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"

	"github.com/quernmr/quern/internal/membound"
)

const maxRecord = 1 << 20

// drawn returns an object of typedbytes, of at most a depth.
func drawn(t *rapid.T, depth int) []byte {
	codes := []byte{bytesCode, byteCode, boolCode, intCode, longCode, floatCode, doubleCode, stringCode, firstOwnCode, lastOwnCode}
	if depth > 0 {
		codes = append(codes, vectorCode, listCode, mapCode)
	}
	code := rapid.SampledFrom(codes).Draw(t, "code")
	n := rapid.IntRange(0, 3).Draw(t, "size")
	object := []byte{code}
	switch code {
	case bytesCode, stringCode, firstOwnCode, lastOwnCode:
		return AppendRaw(object, rapid.SliceOfN(rapid.Byte(), n, n).Draw(t, "content"))
	case vectorCode, mapCode:
		object = binary.BigEndian.AppendUint32(object, uint32(n))
	case listCode:
	default:
		return append(object, rapid.SliceOfN(rapid.Byte(), size(code), size(code)).Draw(t, "content")...)
	}
	if code == mapCode {
		n *= 2
	}
	for range n {
		object = append(object, drawn(t, depth-1)...)
	}
	if code == listCode {
		object = append(object, endCode)
	}
	return object
}

// TestTyped: objects are read as they were written, whatever reads return.
func TestTyped(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all [][]byte
		for range 2 * rapid.IntRange(0, 5).Draw(t, "records") {
			all = append(all, drawn(t, 3))
		}
		r := newTestReader(t, bytes.Join(all, nil))
		for i := 0; i < len(all); i += 2 {
			key, value, err := r.Typed()
			if err != nil || !bytes.Equal(key, all[i]) || !bytes.Equal(value, all[i+1]) {
				t.Fatalf("record %d: %x %x %v, want %x %x", i/2, key, value, err, all[i], all[i+1])
			}
			_, _ = AppendText(nil, key)
		}
		if _, _, err := r.Typed(); err != io.EOF {
			t.Fatalf("at the end: %v", err)
		}
	})
}

func newTestReader(t *rapid.T, data []byte) *Reader {
	var from io.Reader = bytes.NewReader(data)
	if rapid.Bool().Draw(t, "bytewise") {
		from = iotest.OneByteReader(from)
	}
	r := NewReader(from, maxRecord, func() {})
	r.buf = make([]byte, rapid.IntRange(1, 16).Draw(t, "buffer"))
	return r
}

// simpleRaw returns the records of data in rawbytes up to the first that is torn, which is an error in the value.
func simpleRaw(data []byte) (all [][]byte, torn bool) {
	field := func() ([]byte, bool) {
		if len(data) < 4 {
			return nil, false
		}
		n := int(int32(binary.BigEndian.Uint32(data)))
		if n < 0 || n > len(data)-4 {
			return nil, false
		}
		field := data[4 : 4+n]
		data = data[4+n:]
		return field, true
	}
	for {
		if len(data) < 4 || int32(binary.BigEndian.Uint32(data)) < 0 {
			return all, false
		}
		key, ok := field()
		value, ok2 := field()
		if !ok || !ok2 {
			return all, true
		}
		all = append(all, key, value)
	}
}

// TestRaw compares with a second implementation.
func TestRaw(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var data []byte
		for range rapid.IntRange(0, 6).Draw(t, "fields") {
			data = AppendRaw(data, rapid.SliceOfN(rapid.Byte(), 0, 5).Draw(t, "field"))
		}
		data = append(data, rapid.SliceOfN(rapid.SampledFrom([]byte{0, 0, 1, 255}), 0, 5).Draw(t, "rest")...)
		r, want, torn := newTestReader(t, data), [][]byte(nil), false
		want, torn = simpleRaw(data)
		var got [][]byte
		for {
			key, value, err := r.Raw()
			if err != nil {
				if (err == io.EOF) == torn {
					t.Fatalf("%x ends with %v", data, err)
				}
				break
			}
			got = append(got, bytes.Clone(key), bytes.Clone(value))
		}
		if !slices.EqualFunc(got, want, bytes.Equal) {
			t.Fatalf("%x: %x, want %x", data, got, want)
		}
	})
}

// TestBad: damaged records are refused by what is wrong.
func TestBad(t *testing.T) {
	deep := strings.Repeat("\x08\x00\x00\x00\x01", maxDepth+1) + "\x01\x00"
	for _, c := range []struct {
		data, want string
		raw        bool
	}{
		{data: "\x0b", want: "no type has the code 11"},
		{data: "\x07\xff\xff\xff\xff", want: "its length is -1"},
		{data: "\x07\x7f\xff\xff\xff", want: "quern.record.max.bytes=1048576"},
		{data: "\x01\x00", want: "the value of a record in typedbytes: the output ends"},
		{data: "\x01\x00\xff", want: "the value"},
		{data: "\x03\x00", want: "the key of a record in typedbytes: the output ends"},
		{data: "\x08\x00\x00\x00\x01\xff", want: "the key"},
		{data: deep, want: "more than 1000 objects"},
		{data: "\x7f\xff\xff\xff", want: "quern.record.max.bytes", raw: true},
		{data: "\x00\x00\x00\x01", want: "the key", raw: true},
		{data: "\x00\x00\x00\x01a\xff\xff\xff\xff", want: "the value of a record in rawbytes: its length is -1", raw: true},
		{data: "\x00\x00\x00\x01a", want: "the value", raw: true},
	} {
		r := NewReader(strings.NewReader(c.data), maxRecord, func() {})
		read := r.Typed
		if c.raw {
			read = r.Raw
		}
		if _, _, err := read(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.20q: %v, want %q", c.data, err, c.want)
		}
	}
}

// TestOrderOfKeys: keys of maps are in Java's order.
func TestOrderOfKeys(t *testing.T) {
	long := func(n int64) []byte { return AppendLong(nil, n) }
	double := func(f float64) []byte { return AppendValue(nil, f, "", nil) }
	text := func(s string) []byte { return AppendString(nil, []byte(s)) }
	for _, keys := range [][][]byte{
		{long(math.MinInt64), long(-2), long(-1), long(0), long(256)},
		{double(math.Inf(-1)), double(-1), double(math.Copysign(0, -1)), double(0), double(1), double(math.NaN())},
		{text(""), text("a"), text("\U0001F600"), text("\uffee")}, // by UTF-16
		{AppendBytes(nil, nil), AppendBytes(nil, []byte{1}), AppendRaw([]byte{100}, []byte{200})},
		{AppendValue(nil, false, "", nil), AppendValue(nil, true, "", nil)},
	} {
		for i := range keys {
			for j := range keys {
				if got := compare(keys[i], keys[j]); (got < 0) != (i < j) || (got > 0) != (i > j) {
					t.Errorf("%x and %x: %d", keys[i], keys[j], got)
				}
			}
		}
	}
}

// FuzzTyped: no data make reading panic, or take memory out of proportion. Objects are shown or refused.
func FuzzTyped(f *testing.F) {
	f.Add([]byte("\x07\x00\x00\x00\x01a\x0a\x00\x00\x00\x01\x07\x00\x00\x00\x01b\x09\x02\x01\xff"))
	f.Add([]byte("\x08\x7f\xff\xff\xff\x01\x01"))
	f.Add([]byte("\x0a\x00\x00\x00\x02\x0a\x00\x00\x00\x00\x01\x01\x01\x01\x01\x01"))
	f.Fuzz(func(t *testing.T, data []byte) {
		membound.Bound{Free: 512 << 10, PerByte: 4096}.Check(t, len(data), func() {
			r := NewReader(bytes.NewReader(data), maxRecord, func() {})
			for {
				key, value, err := r.Typed()
				if err != nil {
					break
				}
				_, _ = AppendText(nil, key)
				_, _ = AppendText(nil, value)
			}
		})
	})
}

// FuzzRaw: no data make reading panic, or take memory out of proportion.
func FuzzRaw(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x01a\x00\x00\x00\x00"))
	f.Add([]byte("\x7f\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, data []byte) {
		membound.Bound{Free: 512 << 10, PerByte: 64}.Check(t, len(data), func() {
			r := NewReader(bytes.NewReader(data), maxRecord, func() {})
			for {
				if _, _, err := r.Raw(); err != nil {
					break
				}
			}
		})
	})
}

// FuzzText: no object makes its text form panic.
func FuzzText(f *testing.F) {
	f.Add([]byte("\x0a\x00\x00\x00\x01\x07\x00\x00\x00\x01b\x09\x02\x01\xff"))
	f.Add([]byte("\x08\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, data []byte) {
		membound.Bound{Free: 512 << 10, PerByte: 4096}.Check(t, len(data), func() { _, _ = AppendText(nil, data) })
	})
}
