package mapreduce

import (
	"bytes"
	"cmp"
	"iter"
	"maps"
	"math"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quernmr/quern/internal/javatext"
	"github.com/quernmr/quern/internal/membound"
)

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
	refused(of(reflect.TypeFor[[]wide]()), "([]mapreduce.wide)[].V: an interface, which does not tell the type of its values, has no encoding")
	refused(of(reflect.TypeFor[map[string]any]()), "(map[string]any)[]: an interface, which")
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

// TestNestedText: in JSON, structs in structs are objects, also embedded ones. A struct with a method Fields is its text.
func TestNestedText(t *testing.T) {
	type deep struct {
		N    int
		Page struct {
			place
			Path string
			Size struct{ X, Y int8 }
		}
		Nothing struct{}
		Last    struct{ Z bool }
	}
	var v deep
	v.Page.City, v.Page.Path, v.Page.Size.Y = "Oslo", "/", 2
	want := `[{"N":0,"Page":{"place":{"City":"Oslo","At":[0.0,0.0]},"Path":"/","Size":{"X":0,"Y":2}},"Last":{"Z":false}}]`
	if text, _ := textAndHash(t, []deep{v}); text != want {
		t.Errorf("%s\nwant\n%s", text, want)
	}
	if text, _ := textAndHash(t, []*listed{{Key: "k", Tags: []string{"x"}}}); text != `["k\u0009[\"x\"]\u0009\u0009[0.0,0.0]"]` {
		t.Errorf("%s", text)
	}
	if text, _ := textAndHash(t, []Desc[int64]{{5}}); text != `[5]` {
		t.Errorf("%s", text)
	}
	if text, _ := textAndHash(t, &listed{Key: "k"}); text != "k\t[]\t\t[0.0,0.0]" {
		t.Errorf("%q", text)
	}
}

// TestEmptyMaps: empty and nil maps come back as maps that a fold can assign to.
func TestEmptyMaps(t *testing.T) {
	type counts struct{ ByWord map[string]int64 }
	job := Fold(Map(Lines(), func(_ *Task, line string, emit func(string, Pair[counts, map[string]int64])) error {
		emit("k", PairOf(counts{}, map[string]int64{}))
		return nil
	}), func(a, b Pair[counts, map[string]int64]) Pair[counts, map[string]int64] {
		a.A.ByWord["a"]++
		b.B["b"]++
		return PairOf(a.A, b.B)
	}).Job("j")
	out, err := (&jobRunner{files: map[string]string{"in": "x\ny\n"}}).run(job)
	if want := "k\t{\"a\":1}\t{\"b\":1}\n"; err != nil || out["j/part-r-00000"] != want {
		t.Errorf("%q: %v", out["j/part-r-00000"], err)
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
			checkError(t, job, b, "Addr.addr", "a Codec of the pairs")
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
