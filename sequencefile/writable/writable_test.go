package writable

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/quernmr/quern/internal/membound"
)

// check encodes a value, compares the bytes and decodes them again. Each beginning of the bytes is too short.
func check[T any](t *testing.T, c Class[T], v T, want string) {
	t.Helper()
	got, err := c.Append([]byte("before "), v)
	if err != nil || fmt.Sprintf("%x", got[7:]) != strings.ReplaceAll(want, " ", "") {
		t.Errorf("%s: %v is %x, %v; want %s", c.Name, v, got[min(7, len(got)):], err, want)
		return
	}
	if back, err := c.Value(got[7:]); err != nil || !reflect.DeepEqual(back, v) {
		t.Errorf("%s: %x is %v, %v; want %v", c.Name, got[7:], back, err, v)
	}
	for n := range len(got) - 7 {
		if back, err := c.Value(got[7 : 7+n]); err == nil {
			t.Errorf("%s: %x is %v", c.Name, got[7:7+n], back)
		}
	}
	if _, err := c.Value(append(got[7:], 0)); err == nil {
		t.Errorf("%s: a byte after %v is accepted", c.Name, v)
	}
}

// TestBytes: the encodings of the classes. The files of Hadoop in sequencefile/testdata have all of them too.
func TestBytes(t *testing.T) {
	check(t, Text, "", "00")
	check(t, Text, "aé", "03 61c3a9")
	check(t, TextBytes, bytes.Repeat([]byte("x"), 128), "8f80"+strings.Repeat("78", 128))
	check(t, Bytes, []byte{1, 2}, "00000002 0102")
	check(t, Boolean, true, "01")
	check(t, Byte, -2, "fe")
	check(t, Short, -2, "fffe")
	check(t, Int, -2, "fffffffe")
	check(t, Long, 1<<40, "0000010000000000")
	check(t, VInt, -113, "87 70")
	check(t, VLong, math.MinInt64, "80 7fffffffffffffff")
	check(t, VLong, 256, "8e 0100")
	check(t, Float, 1.5, "3fc00000")
	check(t, Double, -0.0, "0000000000000000")
	check(t, Array("my.Ints", Int), []int32{1, -1}, "00000002 00000001 ffffffff")
	check(t, Map(Text, Long), map[string]int64{"b": 2, "a": 1}, "00 00000002 8c 0161 86 0000000000000001 8c 0162 86 0000000000000002")
}

// TestClassNames: a map names the classes that have no number, and a map of other classes is refused.
func TestClassNames(t *testing.T) {
	c := Map(Byte, Double)
	data, err := c.Append(nil, map[int8]float64{3: 0.5})
	const want = "\x02\x01\x00\x21org.apache.hadoop.io.ByteWritable\x02\x00\x23org.apache.hadoop.io.DoubleWritable\x00\x00\x00\x01\x01\x03\x02\x3f\xe0\x00\x00\x00\x00\x00\x00"
	if err != nil || string(data) != want {
		t.Errorf("%q, %v; want %q", data, err, want)
	}
	if m, err := c.Value(data); err != nil || m[3] != 0.5 {
		t.Errorf("%v, %v", m, err)
	}
	if _, err := Map(Byte, Float).Value(data); !errors.Is(err, ErrEncoding) || !strings.Contains(err.Error(), "DoubleWritable where a org.apache.hadoop.io.FloatWritable") {
		t.Errorf("another class: %v", err)
	}
	if _, err := Map(Any, Any).Value([]byte("\x00\x00\x00\x00\x01\x83\x00\x00\x00\x01x\x89")); err == nil || !strings.Contains(err.Error(), "Entries") {
		t.Errorf("a key that Go maps cannot have: %v", err)
	}
	if _, err := Map(Any, Any).Append(nil, map[any]any{1: "x"}); err == nil || !strings.Contains(err.Error(), "type int") {
		t.Errorf("a type without class: %v", err)
	}
	if _, err := Any.Value(nil); err == nil {
		t.Error("Any decodes a value without class")
	}
	deep := any("end")
	for range maxDepth + 2 {
		deep = []Entry[any, any]{{Varint(1), deep}}
	}
	if data, err = Entries(Any, Any).Append(nil, deep.([]Entry[any, any])); err != nil {
		t.Fatal(err)
	}
	if _, err := Entries(Any, Any).Value(data); err == nil || !strings.Contains(err.Error(), "64 maps") {
		t.Errorf("maps within maps: %v", err)
	}
}

// anyValue draws a value that Any takes.
func anyValue(t *rapid.T, depth int) any {
	switch n := rapid.IntRange(0, 12).Draw(t, "class"); {
	case n == 0:
		return rapid.String().Draw(t, "text")
	case n == 1:
		return rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "bytes")
	case n == 2:
		return rapid.Bool().Draw(t, "bool")
	case n == 3:
		return rapid.Int8().Draw(t, "byte")
	case n == 4:
		return rapid.Int16().Draw(t, "short")
	case n == 5:
		return rapid.Int32().Draw(t, "int")
	case n == 6:
		return rapid.Int64().Draw(t, "long")
	case n == 7:
		return rapid.Float32().Draw(t, "float")
	case n == 8:
		return rapid.Float64().Draw(t, "double")
	case n == 9:
		return Varint(rapid.Int32().Draw(t, "vint"))
	case n == 10:
		return Varlong(rapid.Int64().Draw(t, "vlong"))
	case n == 11 || depth == 3:
		return struct{}{}
	}
	m := make([]Entry[any, any], rapid.IntRange(1, 3).Draw(t, "entries"))
	for i := range m {
		m[i] = Entry[any, any]{anyValue(t, depth+1), anyValue(t, depth+1)}
	}
	return m
}

// TestAnyValues: every value survives, also within maps.
func TestAnyValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := []Entry[any, any]{{anyValue(t, 0), anyValue(t, 0)}, {anyValue(t, 0), anyValue(t, 0)}}
		data, err := Entries(Any, Any).Append(nil, all)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Entries(Any, Any).Value(data)
		if err != nil || !reflect.DeepEqual(got, all) {
			t.Fatalf("%x is %v, %v; want %v", data, got, err, all)
		}
		byName, ok, err := Decode(mapName, data)
		if !ok || err != nil || !reflect.DeepEqual(byName, any(all)) {
			t.Fatalf("by name: %v, %v, %v", byName, ok, err)
		}
	})
	if _, ok, _ := Decode("my.Class", nil); ok {
		t.Error("an unknown class is decoded")
	}
}

// TestVints: all sizes of vints, and vints in more bytes than they need.
func TestVints(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.Int64().Draw(t, "v") >> rapid.IntRange(0, 63).Draw(t, "shift")
		data := AppendVLong(nil, v)
		got, rest, err := decodeVLong(append(data, 7))
		if err != nil || got != v || len(rest) != 1 || VLongSize(data[0]) != len(data) {
			t.Fatalf("%d is %x, and that is %d, %v", v, data, got, err)
		}
	})
	for data, want := range map[string]int64{"\x8e\x00\x05": 5, "\x87\x00": -1, "\x8f\xff": 255, "\x90": -112} {
		if got, err := VLong.Value([]byte(data)); err != nil || got != want {
			t.Errorf("%x: %d, %v", data, got, err)
		}
	}
	if _, err := VInt.Value(AppendVLong(nil, 1<<31)); !errors.Is(err, ErrEncoding) {
		t.Errorf("a vint of more than 32 bits: %v", err)
	}
}

// FuzzDecode: no data makes decoding panic or take memory out of proportion. Decoded values can be encoded again.
func FuzzDecode(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x00\x01\x8c\x01a\x86\x00\x00\x00\x00\x00\x00\x00\x01"))
	f.Add([]byte("\x7f\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, data []byte) {
		membound.Bound{Free: 64 << 10, PerByte: 512}.Check(t, len(data), func() {
			for _, name := range []string{mapName, Text.Name, Bytes.Name, VLong.Name, Double.Name} {
				if v, _, err := Decode(name, data); err == nil {
					if _, err := appendAny(nil, v); err != nil {
						t.Errorf("%s: %v cannot be encoded: %v", name, v, err)
					}
				}
			}
			if v, err := Array("x", Null).Value(data); err == nil && len(v) > len(data)+maxEmpty {
				t.Errorf("%d elements", len(v))
			}
			_, _ = Array("x", Array("y", Text)).Value(data)
			_, _ = Map(Text, Array("y", Int)).Value(data)
		})
	})
}
