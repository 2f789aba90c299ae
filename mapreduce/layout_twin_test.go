package mapreduce

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"runtime/debug"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// plainPut encodes a value as layout.put does, by package reflect.
func plainPut(v reflect.Value) []byte {
	var out []byte
	switch t := v.Type(); {
	case t == timeType:
		at := v.Interface().(time.Time)
		out = binary.BigEndian.AppendUint64(nil, uint64(at.Unix())^sign64)
		return binary.BigEndian.AppendUint32(out, uint32(at.Nanosecond()))
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		return bytesCodec.appendNested(nil, v.Bytes())
	case t.Kind() == reflect.Array && t.Elem().Kind() == reflect.Uint8:
		for i := range v.Len() {
			out = append(out, byte(v.Index(i).Uint()))
		}
		return out
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			field := plainPut(v.Field(i))
			switch tag := v.Type().Field(i).Tag.Get("mapreduce"); {
			case tag == "-":
				continue
			case tag == "desc" || isDesc(v.Type()):
				invert(field)
			}
			out = append(out, field...)
		}
	case reflect.Array:
		for i := range v.Len() {
			out = append(out, plainPut(v.Index(i))...)
		}
	case reflect.Slice:
		for i := range v.Len() {
			out = append(append(out, 1), plainPut(v.Index(i))...)
		}
		out = append(out, 0)
	case reflect.Map:
		var entries [][]byte
		for k, e := range v.Seq2() {
			entries = append(entries, slices.Concat([]byte{1}, plainPut(k), plainPut(e)))
		}
		slices.SortFunc(entries, bytes.Compare)
		out = append(bytes.Join(entries, nil), 0)
	case reflect.Pointer:
		if v.IsNil() {
			return []byte{0}
		}
		out = append([]byte{1}, plainPut(v.Elem())...)
	case reflect.String:
		out = stringCodec.appendNested(nil, v.String())
	case reflect.Bool:
		out = boolCodec.append(nil, v.Bool())
	case reflect.Float32:
		out = float32Codec.append(nil, float32(v.Float()))
	case reflect.Float64:
		out = float64Codec.append(nil, v.Float())
	default:
		return plainInteger(v)
	}
	return out
}

func plainInteger(v reflect.Value) []byte {
	all := make([]byte, 8)
	if v.CanInt() {
		binary.BigEndian.PutUint64(all, uint64(v.Int()))
	} else {
		binary.BigEndian.PutUint64(all, v.Uint())
	}
	all = all[8-scalarSizes[v.Kind()]:]
	if v.CanInt() {
		all[0] ^= sign8
	}
	return all
}

var scalarTypes = []reflect.Type{
	reflect.TypeFor[bool](), reflect.TypeFor[int](), reflect.TypeFor[int8](), reflect.TypeFor[int16](), reflect.TypeFor[int32](),
	reflect.TypeFor[int64](), reflect.TypeFor[uint](), reflect.TypeFor[uint8](), reflect.TypeFor[uint16](), reflect.TypeFor[uint32](),
	reflect.TypeFor[uint64](), reflect.TypeFor[float32](), reflect.TypeFor[float64](), reflect.TypeFor[string](), reflect.TypeFor[word](),
}

// drawType draws a type that has an encoding.
func drawType(t *rapid.T, depth int) reflect.Type {
	scalar := rapid.SampledFrom(scalarTypes).Draw(t, "scalar")
	if depth == 0 {
		return scalar
	}
	switch rapid.IntRange(0, 9).Draw(t, "kind") {
	case 0, 1:
		return reflect.SliceOf(drawType(t, depth-1))
	case 2:
		return reflect.ArrayOf(rapid.IntRange(0, 3).Draw(t, "length"), drawType(t, depth-1))
	case 3:
		return reflect.PointerTo(drawType(t, depth-1))
	case 4:
		return reflect.MapOf(scalar, drawType(t, depth-1))
	case 5, 6, 7:
		fields := []reflect.StructField{{Name: "Skipped", Type: scalar, Tag: `mapreduce:"-"`}}
		for i := range rapid.IntRange(1, 4).Draw(t, "fields") {
			tag := rapid.SampledFrom([]reflect.StructTag{"", "", `mapreduce:"desc"`}).Draw(t, "tag")
			fields = append(fields, reflect.StructField{Name: fmt.Sprint("F", i), Type: drawType(t, depth-1), Tag: tag})
		}
		return reflect.StructOf(fields)
	case 8:
		return rapid.SampledFrom([]reflect.Type{timeType, reflect.TypeFor[Desc[string]](), reflect.TypeFor[Pair[int16, string]](), reflect.TypeFor[[3]byte]()}).Draw(t, "own")
	}
	return scalar
}

// drawInto draws a value. Skipped fields stay zero.
func drawInto(t *rapid.T, v reflect.Value) {
	if v.Type() == timeType {
		v.Set(reflect.ValueOf(time.Unix(rapid.Int64Range(-1<<40, 1<<40).Draw(t, "seconds"), rapid.Int64Range(0, 999_999_999).Draw(t, "nanos")).UTC()))
		return
	}
	few := rapid.IntRange(0, 3)
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).Tag.Get("mapreduce") != "-" {
				drawInto(t, v.Field(i))
			}
		}
	case reflect.Array:
		for i := range v.Len() {
			drawInto(t, v.Index(i))
		}
	case reflect.Slice:
		for range few.Draw(t, "elements") {
			e := reflect.New(v.Type().Elem()).Elem()
			drawInto(t, e)
			v.Set(reflect.Append(v, e))
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range few.Draw(t, "entries") {
			k, e := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			drawInto(t, k)
			drawInto(t, e)
			v.SetMapIndex(k, e)
		}
	case reflect.Pointer:
		if rapid.Bool().Draw(t, "some") {
			v.Set(reflect.New(v.Type().Elem()))
			drawInto(t, v.Elem())
		}
	default:
		drawScalar(t, v)
	}
}

func drawScalar(t *rapid.T, v reflect.Value) {
	switch {
	case v.Kind() == reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, "bool"))
	case v.Kind() == reflect.String:
		v.SetString(oddString().Draw(t, "string"))
	case v.CanFloat():
		v.SetFloat(rapid.OneOf(rapid.SampledFrom([]float64{math.Inf(1), math.Inf(-1), -1}), rapid.Float64Range(-9, 9)).Draw(t, "float"))
	case v.CanInt():
		v.SetInt(int64(int8(rapid.Int64().Draw(t, "int"))))
	default:
		v.SetUint(uint64(uint8(rapid.Uint64().Draw(t, "uint"))))
	}
}

// plainCompare compares as the bytes of layout.put do, by package reflect.
func plainCompare(a, b reflect.Value) int {
	if a.Type() == timeType {
		return a.Interface().(time.Time).Compare(b.Interface().(time.Time))
	}
	switch a.Kind() {
	case reflect.Struct:
		for i := range a.NumField() {
			tag := a.Type().Field(i).Tag.Get("mapreduce")
			order := plainCompare(a.Field(i), b.Field(i))
			switch {
			case tag == "-" || order == 0:
				continue
			case tag == "desc" || isDesc(a.Type()):
				return -order
			}
			return order
		}
		return 0
	case reflect.Array, reflect.Slice:
		for i := range min(a.Len(), b.Len()) {
			if order := plainCompare(a.Index(i), b.Index(i)); order != 0 {
				return order
			}
		}
		return cmp.Compare(a.Len(), b.Len())
	case reflect.Pointer:
		if a.IsNil() || b.IsNil() {
			return compareBools(!a.IsNil(), !b.IsNil())
		}
		return plainCompare(a.Elem(), b.Elem())
	case reflect.String:
		return cmp.Compare(a.String(), b.String())
	case reflect.Bool:
		return compareBools(a.Bool(), b.Bool())
	}
	switch {
	case a.CanFloat():
		return compareFloats(a.Float(), b.Float())
	case a.CanInt():
		return cmp.Compare(a.Int(), b.Int())
	}
	return cmp.Compare(a.Uint(), b.Uint())
}

// TestLayouts: layouts of random types encode as package reflect does, decoding returns the
// value, no encoding is a prefix of another, and bytes have the order of the values.
func TestLayouts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		typ := drawType(t, 3)
		l, noOrder, err := layoutOf(typ)
		if err != nil {
			t.Fatalf("%s: %v", typ, err)
		}
		var encoded [2][]byte
		var values [2]reflect.Value
		for i := range encoded {
			v := reflect.New(typ)
			drawInto(t, v.Elem())
			values[i] = v.Elem()
			encoded[i] = l.put([]byte("x"), v.UnsafePointer())[1:]
			if want := plainPut(v.Elem()); !bytes.Equal(encoded[i], want) {
				t.Fatalf("%s: %+v is encoded as %x, want %x", typ, v.Elem(), encoded[i], want)
			}
			if l.size >= 0 && l.size != len(encoded[i]) {
				t.Fatalf("%s: encoding of %d bytes, want %d", typ, len(encoded[i]), l.size)
			}
			for _, d := range []*decoder{{}, {keep: true}, {keep: true, own: true}} {
				back := reflect.New(typ)
				rest := l.get(d, slices.Concat(encoded[i], []byte("rest")), back.UnsafePointer())
				if d.err != nil || string(rest) != "rest" || !reflect.DeepEqual(back.Interface(), v.Interface()) {
					t.Fatalf("%s: %+v came back as %+v, rest %q: %v", typ, v.Elem(), back.Elem(), rest, d.err)
				}
			}
			l.text(nil, v.UnsafePointer())
		}
		if a, b := encoded[0], encoded[1]; !bytes.Equal(a, b) && (bytes.HasPrefix(a, b) || bytes.HasPrefix(b, a)) {
			t.Fatalf("%s: of %x and %x one is a prefix of the other", typ, a, b)
		}
		if noOrder != nil {
			return
		}
		if got, want := bytes.Compare(encoded[0], encoded[1]), plainCompare(values[0], values[1]); got != want {
			t.Fatalf("%s: %+v and %+v compare %d, want %d", typ, values[0], values[1], got, want)
		}
	})
}

// TestEncodeOnStack: values are encoded where they are, on a stack that grows meanwhile, and
// what they refer to stays until then.
func TestEncodeOnStack(t *testing.T) {
	type inner = *[1]*[1]*[1]*[1]*[1]*[1]*[1]*[1]*[1]*[1]*[1]*[1]*[1]*[1]*[1]*[1]string
	type deep struct {
		A string
		B inner
		C []string
		D string
	}
	defer debug.SetGCPercent(debug.SetGCPercent(1))
	var all sync.WaitGroup
	for i := range 500 {
		all.Go(func() {
			c := must[deep](nil)
			text := func() string { return fmt.Sprint("text ", i) }
			nested := [1]string{text()}
			v := deep{A: text(), B: &[1]*[1]*[1]*[1]*[1]*[1]*[1]*[1]*[1]*[1]*[1]*[1]*[1]*[1]*[1]*[1]string{}, D: text()}
			at := reflect.ValueOf(v.B).Elem().Index(0)
			for at.Type() != reflect.TypeFor[*[1]string]() {
				at.Set(reflect.New(at.Type().Elem()))
				at = at.Elem().Index(0)
			}
			at.Set(reflect.ValueOf(&nested))
			v.C = []string{text(), text()}
			want := plainPut(reflect.ValueOf(v))
			for range 20 {
				if got := c.append(nil, v); !bytes.Equal(got, want) {
					t.Errorf("%x, want %x", got, want)
				}
			}
		})
	}
	all.Wait()
}
