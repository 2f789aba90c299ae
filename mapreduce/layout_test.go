package mapreduce

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"iter"
	"maps"
	"math"
	"net/netip"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quernmr/quern/internal/javatext"
	"github.com/quernmr/quern/internal/membound"
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
		for range few.Draw(t, "entries") {
			k, e := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			drawInto(t, k)
			drawInto(t, e)
			if v.IsNil() {
				v.Set(reflect.MakeMap(v.Type()))
			}
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

type (
	endless *endless
	ring    []*ring
	knot    struct {
		N    int
		Next *knot
	}
	chain struct {
		N    int
		Rest []link
	}
	link  struct{ To *chain }
	shelf map[string]shelf
)

func (k *knot) Fields(f *Fields)  { f.Int(&k.N); f.Value(&k.Next) }
func (c *chain) Fields(f *Fields) { f.Int(&c.N); f.Value(&c.Rest) }

// TestEndlessTypes: wherever a type contains itself within another one, the type is refused by
// the path of that part, also where a method Fields lists it.
func TestEndlessTypes(t *testing.T) {
	endlessTypes := map[reflect.Type]string{
		reflect.TypeFor[endless](): "", reflect.TypeFor[forest](): "[]", reflect.TypeFor[ring](): "[]",
		reflect.TypeFor[tree](): ".Left", reflect.TypeFor[shelf](): "[]",
		reflect.TypeFor[knot]():  ": method Fields of mapreduce.knot: knot.Next",
		reflect.TypeFor[chain](): ": method Fields of mapreduce.chain: chain.Rest[].To",
	}
	rapid.Check(t, func(t *rapid.T) {
		inner := rapid.SampledFrom(slices.SortedFunc(maps.Keys(endlessTypes), func(a, b reflect.Type) int { return cmp.Compare(a.Name(), b.Name()) })).Draw(t, "type")
		typ, path := inner, ""
		for range rapid.IntRange(0, 4).Draw(t, "depth") {
			switch rapid.IntRange(0, 4).Draw(t, "around") {
			case 0:
				typ, path = reflect.SliceOf(typ), "[]"+path
			case 1:
				typ, path = reflect.ArrayOf(2, typ), "[]"+path
			case 2:
				typ = reflect.PointerTo(typ)
			case 3:
				typ, path = reflect.MapOf(reflect.TypeFor[string](), typ), "[]"+path
			case 4:
				typ, path = reflect.StructOf([]reflect.StructField{{Name: "A", Type: reflect.TypeFor[int]()}, {Name: "B", Type: typ}}), ".B"+path
			}
		}
		_, _, err := layoutOf(typ)
		if want := rootOf(typ) + path + endlessTypes[inner] + ": "; err == nil || !strings.HasPrefix(err.Error(), want) || !strings.Contains(err.Error(), inner.String()+" contains itself") {
			t.Fatalf("error %v, want %q", err, want)
		}
	})
	b := &jobRunner{files: map[string]string{"in": "a\n"}}
	checkError(t, Sort(Map(Lines(), func(_ *Task, _ string, emit func(endless, *knot)) error { return nil })).Job("j"), b,
		"key", "endless: mapreduce.endless contains itself", "value", "knot.Next: *mapreduce.knot contains itself")
	wants := func(err error, want string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	_, err := rowPlanOf(reflect.TypeFor[struct{ A, B **endless }]())
	wants(err, ".A: a column cannot be read as **mapreduce.endless")
	wants(JSONLines[map[string][]struct{ P endless }]().spec.err, "[][].P: mapreduce.endless refers to pointers without an end")
	if err := JSONLines[tree]().spec.err; err != nil {
		t.Error(err)
	}
	wants(checkParams(reflect.TypeFor[struct{ A []endless }](), "params", nil), "params.A has the type mapreduce.endless")
}

type (
	place struct {
		City string
		At   [2]float32
	}
	line struct {
		Price map[string]int64
		Count int32
	}
	sale struct {
		place
		Day   time.Time
		Tags  []string
		Back  *int64
		Until time.Time `mapreduce:"desc"`
		ID    [2]byte
		Parts []place
		Note  func() `mapreduce:"-"`
	}
	order2 struct {
		Lines []line
	}
	listed struct {
		Key  string
		Tags []string
		Sub  place
	}
	tree   struct{ Left, Right *tree }
	forest []forest
	hidden struct{ Addr netip.Addr }
	tagged struct {
		N int `mapreduce:"asc"`
	}
	byDay   struct{ Days map[time.Time]int64 }
	nothing struct {
		N int `mapreduce:"-"`
	}
	wide   struct{ V any }
	within struct{ Inner forgets }
)

func (v *listed) Fields(f *Fields) { f.String(&v.Key); f.Desc().Value(&v.Tags); f.Value(&v.Sub) }

func compareSales(a, b sale) int {
	return cmp.Or(cmp.Compare(a.City, b.City), cmp.Compare(a.At[0], b.At[0]), cmp.Compare(a.At[1], b.At[1]),
		a.Day.Compare(b.Day), slices.Compare(a.Tags, b.Tags), comparePointers(a.Back, b.Back), b.Until.Compare(a.Until),
		bytes.Compare(a.ID[:], b.ID[:]), slices.CompareFunc(a.Parts, b.Parts, func(a, b place) int {
			return cmp.Or(cmp.Compare(a.City, b.City), slices.Compare(a.At[:], b.At[:]))
		}))
}

func comparePointers(a, b *int64) int {
	switch {
	case a == nil || b == nil:
		return compareBools(a != nil, b != nil)
	}
	return cmp.Compare(*a, *b)
}

func drawOf[T any]() *rapid.Generator[T] {
	return rapid.Custom(func(t *rapid.T) (v T) {
		drawInto(t, reflect.ValueOf(&v).Elem())
		return v
	})
}

// TestLayoutOrder: bytes have the order of keys.
func TestLayoutOrder(t *testing.T) {
	check(t, rapid.Map(drawOf[struct {
		Place place
		Day   time.Time
		Tags  []string
		Back  *int64
		Until time.Time
		ID    [2]byte
		Parts []place
	}](), func(v struct {
		Place place
		Day   time.Time
		Tags  []string
		Back  *int64
		Until time.Time
		ID    [2]byte
		Parts []place
	}) sale {
		return sale{v.Place, v.Day, v.Tags, v.Back, v.Until, v.ID, v.Parts, nil}
	}), compareSales)
	check(t, drawOf[[]string](), slices.Compare[[]string])
	check(t, drawOf[[3]int16](), func(a, b [3]int16) int { return slices.Compare(a[:], b[:]) })
	check(t, drawOf[*int64](), comparePointers)
	check(t, drawOf[Desc[[]string]](), func(a, b Desc[[]string]) int { return slices.Compare(b.V, a.V) })
	check(t, drawOf[[]Desc[string]](), func(a, b []Desc[string]) int {
		return slices.CompareFunc(a, b, func(a, b Desc[string]) int { return cmp.Compare(b.V, a.V) })
	})
	check(t, rapid.Map(drawOf[Pair[string, Pair[[]string, place]]](), func(p Pair[string, Pair[[]string, place]]) listed {
		return listed{p.A, p.B.A, p.B.B}
	}), func(a, b listed) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), slices.Compare(b.Tags, a.Tags), cmp.Compare(a.Sub.City, b.Sub.City), slices.Compare(a.Sub.At[:], b.Sub.At[:]))
	})
}

// TestLayoutRefused: errors name the path of what cannot be encoded, or is no key.
func TestLayoutRefused(t *testing.T) {
	refused := func(err error, want string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	of := func(t reflect.Type) error { _, _, err := layoutOf(t); return err }
	refused(of(reflect.TypeFor[tree]()), "tree.Left: mapreduce.tree contains itself")
	refused(of(reflect.TypeFor[forest]()), "forest[]: mapreduce.forest contains itself")
	refused(of(reflect.TypeFor[hidden]()), "hidden.Addr.addr: a field that is not exported has no encoding")
	refused(of(reflect.TypeFor[tagged]()), `tagged.N: tag mapreduce:"asc" is unknown`)
	refused(of(reflect.TypeFor[byDay]()), "byDay.Days[key]: time.Time cannot be in the key of a map")
	refused(of(reflect.TypeFor[nothing]()), "nothing: no field of mapreduce.nothing is encoded")
	refused(of(reflect.TypeFor[[]wide]()), "[]mapreduce.wide[].V: an interface, which does not tell the type of its values, has no encoding")
	refused(of(reflect.TypeFor[within]()), "within.Inner: method Fields of mapreduce.forgets leaves out unseen")
	refused(of(reflect.TypeFor[[20_000]struct{ A, B *[1]chan int }]()), "[1]chan int")

	b := &jobRunner{files: map[string]string{"in": "a\n"}}
	checkError(t, Sort(Map(Lines(), func(_ *Task, _ string, emit func(order2, int64)) error { return nil })).Job("j"), b,
		"job j: key of pairs: order2.Lines[].Price: a map has no order")
	checkError(t, Sort(Map(Lines(), func(_ *Task, _ string, emit func(Pair[string, Desc[order2]], int64)) error { return nil })).Job("j"), b,
		"job j: key of pairs: in mapreduce.Pair[string", "order2.Lines[].Price: a map has no order")
}

// TestLayoutText: the text of a struct has its fields between tabs. Parts with
// several values are JSON.
func TestLayoutText(t *testing.T) {
	n := int64(5)
	day := time.Date(2026, 2, 3, 4, 5, 6, 7_000_000, time.FixedZone("", 3600))
	v := sale{place{"Oslo", [2]float32{1, 2.5}}, day, []string{"a\"", "\x01"}, &n, day, [2]byte{1, 0xab}, []place{{"Rome", [2]float32{}}}, nil}
	want := "Oslo\t[1.0,2.5]\t2026-02-03T03:05:06.007Z\t[\"a\\\"\",\"\\u0001\"]\t5\t2026-02-03T03:05:06.007Z\t01ab\t[{\"City\":\"Rome\",\"At\":[0.0,0.0]}]"
	if text, _ := textAndHash(t, v); text != want {
		t.Errorf("%s\nwant\n%s", text, want)
	}
	if text, _ := textAndHash(t, map[int16]*[]float64{2: {math.NaN()}, -1: nil}); text != `{"-1":null,"2":["NaN"]}` {
		t.Errorf("%s", text)
	}
	if text, hash := textAndHash(t, struct {
		A string
		B int64
	}{"abc", 5}); text != "abc\t5" || hash != 31*javatext.Hash(1, []byte("abc"))+5 {
		t.Errorf("%q %d", text, hash)
	}
}

// TestNestedData runs a job over nested data: grouped by a key with a list, with maps as
// values, in the same way for every size of splits.
func TestNestedData(t *testing.T) {
	type key struct {
		Words []string
		Day   time.Time
	}
	type counts struct {
		ByWord map[string]int64
		Last   *string
	}
	job := func() *Job {
		pairs := Map(Lines(), func(_ *Task, line string, emit func(key, counts)) error {
			words := strings.Fields(line)
			c := counts{map[string]int64{}, &words[len(words)-1]}
			for _, w := range words {
				c.ByWord[w]++
			}
			emit(key{words[:1], time.Unix(int64(len(words)), 0)}, c)
			return nil
		})
		return Fold(pairs, func(a, b counts) counts {
			for w, n := range b.ByWord {
				a.ByWord[w] += n
			}
			return counts{a.ByWord, new(max(*a.Last, *b.Last))}
		}).Job("j")
	}
	text := "a b\na c\nb a\na b c\na b\n"
	want := "[\"a\"]\t1970-01-01T00:00:02Z\t{\"a\":3,\"b\":2,\"c\":1}\tc\n[\"a\"]\t1970-01-01T00:00:03Z\t{\"a\":1,\"b\":1,\"c\":1}\tc\n[\"b\"]\t1970-01-01T00:00:02Z\t{\"a\":1,\"b\":1}\ta\n"
	for lines := range 4 {
		out, err := (&jobRunner{files: map[string]string{"in": text}, splitLines: lines}).run(job())
		if err != nil || out["j/part-r-00000"] != want {
			t.Errorf("%d lines a split: %s: %v", lines, out["j/part-r-00000"], err)
		}
	}
}

// TestPairCodec: parts of a pair have codecs of their own, also where values are sorted.
func TestPairCodec(t *testing.T) {
	addr := &Codec[netip.Addr]{
		Name:   "address",
		Append: func(dst []byte, v netip.Addr) []byte { return append(dst, v.AsSlice()...) },
		Decode: func(src []byte) (netip.Addr, error) {
			a, ok := netip.AddrFromSlice(src)
			if !ok {
				return a, errTruncated
			}
			return a, nil
		},
	}
	for name, codec := range map[string]*Codec[Pair[string, netip.Addr]]{"j": PairCodec[string](nil, addr), "without": nil} {
		pairs := Map(Lines(), func(_ *Task, line string, emit func(Pair[string, netip.Addr], struct{})) error {
			host, at, _ := strings.Cut(line, " ")
			emit(PairOf(host, netip.MustParseAddr(at)), struct{}{})
			return nil
		}).Codecs(codec, nil)
		job := ReduceSorted(pairs, func(_ *Task, host string, all iter.Seq2[netip.Addr, struct{}], emit func(string, string)) error {
			for a := range all {
				emit(host, a.String())
			}
			return nil
		}).Job("j")
		b := &jobRunner{files: map[string]string{"in": "b 10.0.0.1\na 9.0.0.1\nb 9.0.0.7\n"}}
		if name == "without" {
			checkError(t, job, b, "Addr.addr", "give the pairs a Codec")
			continue
		}
		if out, err := b.run(job); err != nil || out["j/part-r-00000"] != "a\t9.0.0.1\nb\t9.0.0.7\nb\t10.0.0.1\n" {
			t.Errorf("%v: %v", out, err)
		}
	}
}

// TestDescendingElements: memory for a list of descending elements grows as the list does.
func TestDescendingElements(t *testing.T) {
	c, err := derive[[]Desc[Desc[string]]]()
	if err != nil {
		t.Fatal(err)
	}
	src := c.append(nil, make([]Desc[Desc[string]], 10_000))
	membound.Bound{Free: 1 << 20, PerByte: 64}.Check(t, len(src), func() { _, err = read(c, &decoder{}, src) })
	if err != nil {
		t.Error(err)
	}
}

// TestFoldEncodesOnce: a value that grows is encoded once for each key, not for each value.
func TestFoldEncodesOnce(t *testing.T) {
	encoded := 0
	lists := Map(Lines(), func(*Task, string, func(string, []byte)) error { return nil }).Codecs(nil, &Codec[[]byte]{
		Name:   "counted",
		Append: func(dst, v []byte) []byte { encoded++; return append(dst, v...) },
		Decode: func(src []byte) ([]byte, error) { return bytes.Clone(src), nil },
		Text:   func(dst, v []byte) []byte { return append(dst, v...) },
	})
	runReduce(t, Fold(lists, func(a, b []byte) []byte { return append(a, b...) }), 800) // 400 of each key
	if encoded != 2 {
		t.Errorf("values were encoded %d times, want 2", encoded)
	}
}

// TestFoldGrows: a fold that extends its first argument gets values with memory of their own.
func TestFoldGrows(t *testing.T) {
	text := strings.Repeat("k\tab\nl\tc\n", 50)
	for name, job := range map[string]*Job{
		"bytes": Fold(Map(KeyValues(), func(_ *Task, kv Pair[string, string], emit func(string, []byte)) error {
			emit(kv.A, []byte(kv.B))
			return nil
		}), func(a, b []byte) []byte { return append(a, b...) }).Job("j"),
		"strings": Fold(Map(KeyValues(), func(_ *Task, kv Pair[string, string], emit func(string, string)) error { emit(kv.A, kv.B); return nil }), func(a, b string) string { return a + b }).Job("j"),
	} {
		out, err := (&jobRunner{files: map[string]string{"in": text}, splitLines: 7}).run(job)
		if want := "k\t" + strings.Repeat("ab", 50) + "\nl\t" + strings.Repeat("c", 50) + "\n"; err != nil || out["j/part-r-00000"] != want {
			t.Errorf("%s: %v: %v", name, out, err)
		}
	}
	sets := Fold(Map(KeyValues(), func(_ *Task, kv Pair[string, string], emit func(string, map[string]bool)) error {
		emit(kv.A, map[string]bool{kv.B: true})
		return nil
	}), func(a, b map[string]bool) map[string]bool { maps.Copy(a, b); return a }).Job("j")
	if out, err := (&jobRunner{files: map[string]string{"in": text}}).run(sets); err != nil || out["j/part-r-00000"] != "k\t{\"ab\":true}\nl\t{\"c\":true}\n" {
		t.Errorf("%v: %v", out, err)
	}
}
