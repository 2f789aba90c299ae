package mapreduce

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/hex"
	"fmt"
	"math"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quernmr/quern/internal/javatext"
	"github.com/quernmr/quern/internal/membound"
)

type word string
type small int16

// visit is an author's key type with two fields in descending order.
type visit struct {
	User string
	At   int64
	Page []byte
	Fee  float64
	Ok   bool
}

func (v *visit) Fields(f *Fields) {
	f.String(&v.User)
	f.Desc().Int64(&v.At)
	f.Desc().Bytes(&v.Page)
	f.Float64(&v.Fee)
	f.Bool(&v.Ok)
}

func compareVisits(a, b visit) int {
	return cmp.Or(cmp.Compare(a.User, b.User), cmp.Compare(b.At, a.At), bytes.Compare(b.Page, a.Page),
		compareFloats(a.Fee, b.Fee), compareBools(a.Ok, b.Ok))
}

func compareBools(a, b bool) int {
	n := map[bool]int{true: 1}
	return n[a] - n[b]
}

// compareFloats orders as Java does: -0 before 0, NaN last.
func compareFloats(a, b float64) int {
	rank := func(f float64) (int, float64, int) {
		switch {
		case f != f:
			return 1, 0, 0
		case f == 0 && math.Signbit(f):
			return 0, 0, -1
		}
		return 0, f, 0
	}
	na, va, za := rank(a)
	nb, vb, zb := rank(b)
	return cmp.Or(cmp.Compare(na, nb), cmp.Compare(va, vb), cmp.Compare(za, zb))
}

// oddBytes draws strings with many of the bytes that encodings treat specially.
var oddBytes = rapid.SliceOfN(rapid.OneOf(rapid.SampledFrom([]byte{0, 1, 2, 0xfd, 0xfe, 0xff}), rapid.Byte()), 0, 6)

func oddString() *rapid.Generator[string] {
	return rapid.Map(oddBytes, func(b []byte) string { return string(b) })
}

func oddFloat() *rapid.Generator[float64] {
	return rapid.OneOf(rapid.SampledFrom([]float64{0, math.Copysign(0, -1), math.NaN(), math.Inf(1), math.Inf(-1), 1, -1}), rapid.Float64())
}

func drawVisit() *rapid.Generator[visit] {
	return rapid.Custom(func(t *rapid.T) visit {
		return visit{oddString().Draw(t, "user"), rapid.Int64Range(-2, 2).Draw(t, "at"), oddBytes.Draw(t, "page"),
			oddFloat().Draw(t, "fee"), rapid.Bool().Draw(t, "ok")}
	})
}

// TestCodecs: byte order is value order, in both forms; decoding returns the encoded
// value; a nested encoding marks its end.
func TestCodecs(t *testing.T) {
	check(t, oddString(), cmp.Compare[string])
	check(t, rapid.Map(oddString(), func(s string) word { return word(s) }), cmp.Compare[word])
	check(t, oddBytes, bytes.Compare)
	check(t, rapid.Bool(), compareBools)
	check(t, rapid.Int(), cmp.Compare[int])
	check(t, rapid.Int8(), cmp.Compare[int8])
	check(t, rapid.Map(rapid.Int16(), func(n int16) small { return small(n) }), cmp.Compare[small])
	check(t, rapid.Int32(), cmp.Compare[int32])
	check(t, rapid.Int64(), cmp.Compare[int64])
	check(t, rapid.Uint(), cmp.Compare[uint])
	check(t, rapid.Uint8(), cmp.Compare[uint8])
	check(t, rapid.Uint16(), cmp.Compare[uint16])
	check(t, rapid.Uint32(), cmp.Compare[uint32])
	check(t, rapid.Uint64(), cmp.Compare[uint64])
	check(t, rapid.Float32(), func(a, b float32) int { return compareFloats(float64(a), float64(b)) })
	check(t, oddFloat(), compareFloats)
	check(t, rapid.Just(struct{}{}), func(_, _ struct{}) int { return 0 })
	check(t, drawVisit(), compareVisits)
	check(t, rapid.Map(oddString(), Descending[string]), func(a, b Desc[string]) int { return cmp.Compare(b.V, a.V) })
	check(t, rapid.Map(rapid.Map(oddString(), Descending[string]), Descending[Desc[string]]),
		func(a, b Desc[Desc[string]]) int { return cmp.Compare(a.V.V, b.V.V) })
	check(t, pairGen(oddString(), oddString()), func(a, b Pair[string, string]) int {
		return cmp.Or(cmp.Compare(a.A, b.A), cmp.Compare(a.B, b.B))
	})
	check(t, pairGen(pairGen(oddString(), oddFloat()), rapid.Map(drawVisit(), Descending[visit])),
		func(a, b Pair[Pair[string, float64], Desc[visit]]) int {
			return cmp.Or(cmp.Compare(a.A.A, b.A.A), compareFloats(a.A.B, b.A.B), compareVisits(b.B.V, a.B.V))
		})
	check(t, rapid.Map(pairGen(oddString(), rapid.Int64Range(-1, 1)), Descending[Pair[string, int64]]),
		func(a, b Desc[Pair[string, int64]]) int {
			return cmp.Or(cmp.Compare(b.V.A, a.V.A), cmp.Compare(b.V.B, a.V.B))
		})
}

func pairGen[A, B any](a *rapid.Generator[A], b *rapid.Generator[B]) *rapid.Generator[Pair[A, B]] {
	return rapid.Custom(func(t *rapid.T) Pair[A, B] { return PairOf(a.Draw(t, "a"), b.Draw(t, "b")) })
}

func check[T any](t *testing.T, gen *rapid.Generator[T], compare func(a, b T) int) {
	t.Helper()
	t.Run(reflect.TypeFor[T]().String(), func(t *testing.T) {
		c, err := derive[T]()
		if err != nil {
			t.Fatal(err)
		}
		keep, view := &decoder{keep: true}, &decoder{}
		var buf []byte
		rapid.Check(t, func(t *rapid.T) {
			a, b := gen.Draw(t, "a"), gen.Draw(t, "b")
			whole := [2][]byte{bytes.Clone(c.encode(&buf, a)), bytes.Clone(c.encode(&buf, b))}
			nested := [2][]byte{c.appendNested(nil, a), c.appendNested(nil, b)}
			want := compare(a, b)
			if got := bytes.Compare(whole[0], whole[1]); got != want {
				t.Fatalf("whole: %x and %x compare %d, want %d", whole[0], whole[1], got, want)
			}
			tail := oddBytes.Draw(t, "tail") // following bytes must not change the order
			if got := bytes.Compare(append(nested[0], tail...), nested[1]); want != 0 && got != want {
				t.Fatalf("nested: %x and %x compare %d, want %d", nested[0], nested[1], got, want)
			}
			if !bytes.Equal(c.append(nil, a), whole[0]) {
				t.Fatalf("encode and append differ")
			}
			for _, d := range []*decoder{keep, view} {
				src := bytes.Clone(whole[0])
				back, err := read(c, d, src)
				if err != nil || compare(a, back) != 0 {
					t.Fatalf("%v came back as %v: %v", a, back, err)
				}
				back, rest, err := readNested(c, d, append(bytes.Clone(nested[0][:len(nested[0]):len(nested[0])]), tail...))
				if err != nil || compare(a, back) != 0 || !bytes.Equal(rest, tail) {
					t.Fatalf("nested %v came back as %v, rest %x: %v", a, back, rest, err)
				}
			}
			if want == 0 && c.hash(a) != c.hash(b) {
				t.Fatalf("equal keys have different hashes")
			}
		})
	})
}

// TestEscapes: strings of all lengths are encoded as their bytes one by one, and come back,
// whatever room the buffer has.
func TestEscapes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		src := rapid.SliceOfN(rapid.ByteRange(2, 255), 0, 40).Draw(t, "string")
		for range rapid.IntRange(0, 2).Draw(t, "escaped") {
			if len(src) > 0 {
				src[rapid.IntRange(0, len(src)-1).Draw(t, "at")] = rapid.ByteRange(0, 1).Draw(t, "byte")
			}
		}
		var want []byte
		for _, b := range src {
			if b <= 1 {
				want = append(want, 1)
				b++
			}
			want = append(want, b)
		}
		want = append(want, 0)
		dst := make([]byte, 3, 3+rapid.IntRange(0, 50).Draw(t, "room"))
		got := appendEscaped(dst, src)[3:]
		if !bytes.Equal(got, want) {
			t.Fatalf("%x is encoded as %x, want %x", src, got, want)
		}
		if back, rest := (&decoder{}).unescape(append(got, 7)); !bytes.Equal(back, src) || !bytes.Equal(rest, []byte{7}) {
			t.Fatalf("%x came back as %x, rest %x", src, back, rest)
		}
	})
}

// TestKeptStrings: a decoder with keep set copies strings, so they stay the same when the
// decoded bytes change.
func TestKeptStrings(t *testing.T) {
	c, err := derive[Pair[string, string]]()
	if err != nil {
		t.Fatal(err)
	}
	d := &decoder{keep: true}
	var decoded []Pair[string, string]
	var want []string
	for i := range 3000 {
		src := c.append(nil, PairOf(fmt.Sprint("a\x00", i), strings.Repeat("b", i*5)))
		p, err := read(c, d, src)
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, fmt.Sprint("a\x00", i, strings.Repeat("b", i*5)))
		decoded = append(decoded, p)
		for j := range src {
			src[j] = 0xEE
		}
	}
	for i, p := range decoded {
		if p.A+p.B != want[i] {
			t.Fatalf("string %d became %.20q", i, p.A+p.B)
		}
	}
}

// TestJavaTable compares texts and hashes with the results of Hadoop's Writables, which
// `make compat` records in testdata/java.txt.
func TestJavaTable(t *testing.T) {
	f, err := os.Open("testdata/java.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := 0
	for s := bufio.NewScanner(f); s.Scan(); lines++ {
		var kind, value, text string
		var hash int32
		if _, err := fmt.Sscan(s.Text(), &kind, &value, &text, &hash); err != nil {
			t.Fatal(err)
		}
		var gotText string
		var gotHash int32
		switch kind {
		case "double":
			bits, _ := strconv.ParseUint(value, 16, 64)
			gotText, gotHash = textAndHash(t, math.Float64frombits(bits))
		case "float":
			bits, _ := strconv.ParseUint(value, 16, 32)
			gotText, gotHash = textAndHash(t, math.Float32frombits(uint32(bits)))
		case "long":
			n, _ := strconv.ParseInt(value, 10, 64)
			gotText, gotHash = textAndHash(t, n)
			_, h := textAndHash(t, int(n))
			if h != gotHash {
				t.Errorf("int %d hashes to %d, int64 to %d", n, h, gotHash)
			}
		case "text":
			b, _ := hex.DecodeString(value[1:])
			_, gotHash = textAndHash(t, string(b))
			_, h := textAndHash(t, b)
			if h != gotHash {
				t.Errorf("[]byte %x hashes to %d, string to %d", b, h, gotHash)
			}
			gotText = "-"
		}
		if gotText != text || gotHash != hash {
			t.Errorf("%s: text %s, hash %d", s.Text(), gotText, gotHash)
		}
	}
	if lines < 2000 {
		t.Errorf("table of %d lines", lines)
	}
}

func textAndHash[T any](t *testing.T, v T) (string, int32) {
	t.Helper()
	c, err := derive[T]()
	if err != nil {
		t.Fatal(err)
	}
	return string(c.text(nil, v)), c.hash(v)
}

// TestOtherHashesAndTexts covers types that the table leaves out: Hadoop's small types
// and our composed ones.
func TestOtherHashesAndTexts(t *testing.T) {
	abc := int32((((31+'a')*31)+'b')*31 + 'c')
	for _, c := range []struct {
		text string
		hash int32
		got  func() (string, int32)
	}{
		{"true", 0, func() (string, int32) { return textAndHash(t, true) }},
		{"false", 1, func() (string, int32) { return textAndHash(t, false) }},
		{"", 0, func() (string, int32) { return textAndHash(t, struct{}{}) }},
		{"-7", -7, func() (string, int32) { return textAndHash(t, int8(-7)) }},
		{"-7", -7, func() (string, int32) { return textAndHash(t, small(-7)) }},
		{"4294967295", -1, func() (string, int32) { return textAndHash(t, uint32(math.MaxUint32)) }},
		{"18446744073709551615", -1, func() (string, int32) { return textAndHash(t, uint64(math.MaxUint64)) }},
		{"abc", abc, func() (string, int32) { return textAndHash(t, word("abc")) }},
		{"abc", abc, func() (string, int32) { return textAndHash(t, Descending("abc")) }},
		{"abc\t5", 31*abc + 5, func() (string, int32) { return textAndHash(t, PairOf("abc", int64(5))) }},
		{"abc", 31 * abc, func() (string, int32) { return textAndHash(t, PairOf("abc", struct{}{})) }},
		{"abc\t5\tp\t1.5\ttrue", ((((31*abc)+5)*31+(31+'p'))*31+0)*31 + 0,
			func() (string, int32) { return textAndHash(t, visit{"abc", 5, []byte("p"), 1.5, true}) }},
	} {
		if text, hash := c.got(); text != c.text || hash != c.hash {
			t.Errorf("text %q, hash %d; want %q, %d", text, hash, c.text, c.hash)
		}
	}
}

type byValue struct{ N int64 }

func (v byValue) Fields(f *Fields) { f.Int64(&v.N) }

type noFields struct{ N int64 }

func (v *noFields) Fields(*Fields) {}

type lastDesc struct{ N int64 }

func (v *lastDesc) Fields(f *Fields) { f.Int64(&v.N); f.Desc() }

type nilField struct{ Next *struct{ N int64 } }

func (v *nilField) Fields(f *Fields) { f.Int64(&v.Next.N) }

func TestTypesWithoutCodec(t *testing.T) {
	wants := func(err error, want string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	_, err := derive[Desc[chan int]]()
	wants(err, "a channel has no encoding; a Codec of the pairs can encode such values")
	_, err = derive[any]()
	wants(err, "interface")
	_, err = derive[byValue]()
	wants(err, "pointer receiver")
	_, err = derive[noFields]()
	wants(err, "lists no field")
	_, err = derive[lastDesc]()
	wants(err, "Desc after the last field")
	_, err = derive[nilField]()
	wants(err, "panics on the zero value")
	_, err = resolve(&Codec[time.Time]{Name: "x"})
	wants(err, "Append and Decode")
}

// TestOwnCodec: an author's codec can be part of a pair, like any other.
func TestOwnCodec(t *testing.T) {
	own := &Codec[time.Duration]{
		Name:   "bytes",
		Append: func(dst []byte, v time.Duration) []byte { return append(dst, 0, 1, byte(v)) },
		Decode: func(src []byte) (time.Duration, error) {
			if len(src) != 3 {
				return 0, errTruncated
			}
			return time.Duration(src[2]), nil
		},
	}
	c, err := resolve(own)
	if err != nil {
		t.Fatal(err)
	}
	p := pairOf(c, &stringCodec)
	for _, want := range []Pair[time.Duration, string]{PairOf(time.Duration(0), "x"), PairOf(time.Duration(1), "")} {
		got, err := read(p, &decoder{}, p.append(nil, want))
		if err != nil || got != want {
			t.Errorf("%v came back as %v: %v", want, got, err)
		}
	}
	if got := string(c.text(nil, time.Second)); got != "1s" {
		t.Errorf("text %s", got)
	}
	if got, want := c.hash(7), javatext.Hash(1, []byte{0, 1, 7}); got != want {
		t.Errorf("hash %d, want %d", got, want)
	}
	if _, err := read(c, &decoder{}, []byte{1}); err == nil || !strings.Contains(err.Error(), "time.Duration as bytes") {
		t.Errorf("error %v", err)
	}
}

// FuzzDecode: no bytes make a decoder panic, and decoded values encode to the same bytes
// again. With two encodings of one value, equal keys would be two groups.
func FuzzDecode(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("a\x01\x01b\x00\x80\x00\x00\x00\x00\x00\x00\x01"))
	f.Add(bytes.Repeat([]byte{0xff, 0xfe}, 20))
	f.Fuzz(func(t *testing.T, src []byte) {
		fuzzOne[string](t, src)
		fuzzOne[int64](t, src)
		fuzzOne[bool](t, src)
		fuzzOne[Pair[string, int32]](t, src)
		fuzzOne[Pair[Desc[[]byte], Pair[string, bool]]](t, src)
		fuzzOne[Desc[Pair[string, Desc[string]]]](t, src)
		fuzzOne[struct{}](t, src)
		fuzzOne[flat](t, src)
	})
}

// FuzzLayout: no bytes make a decoder of a layout panic or take much memory, and a decoded
// value encodes to the same bytes again.
func FuzzLayout(f *testing.F) {
	c, _ := derive[map[string][]Desc[string]]()
	f.Add(c.append(nil, map[string][]Desc[string]{"a": {Descending("b"), Descending("")}, "c": nil}))
	f.Add(bytes.Repeat([]byte{1}, 50))
	f.Add(bytes.Repeat([]byte{1, 0}, 50))
	f.Add(bytes.Repeat([]byte{1, 0xff}, 50))
	f.Fuzz(func(t *testing.T, src []byte) {
		fuzzOne[[]string](t, src)
		fuzzOne[[]struct{}](t, src)
		fuzzOne[[]int64](t, src)
		fuzzOne[[]Desc[string]](t, src)
		fuzzOne[[]Desc[[]Desc[Desc[string]]]](t, src)
		fuzzOne[map[string][]Desc[string]](t, src)
		fuzzOne[map[float64]map[uint8]bool](t, src)
		fuzzOne[[]*[2][]byte](t, src)
		fuzzOne[sale](t, src)
		fuzzOne[time.Time](t, src)
		fuzzOne[listed](t, src)
	})
}

type flat struct {
	S string
	N uint16
	B []byte
}

func (v *flat) Fields(f *Fields) {
	f.Desc().String(&v.S)
	f.Desc().Uint16(&v.N)
	f.Bytes(&v.B)
}

func fuzzOne[T any](t *testing.T, src []byte) {
	c, err := derive[T]()
	if err != nil {
		t.Fatal(err)
	}
	for _, keep := range []bool{true, false} {
		var v T
		membound.Bound{Free: 1 << 20, PerByte: 64}.Check(t, len(src), func() { v, err = read(c, &decoder{keep: keep}, src) })
		if err != nil {
			continue
		}
		if encoded := c.append(nil, v); !bytes.Equal(encoded, src) {
			t.Fatalf("%s: %x decodes to %v, which encodes to %x", c.name, src, v, encoded)
		}
	}
}
