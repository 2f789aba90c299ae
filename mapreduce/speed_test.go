package mapreduce

import (
	"encoding/binary"
	"fmt"
	"io"
	"iter"
	"math"
	"strconv"
	"testing"

	mrruntime "github.com/quernmr/quern/runtime"
	"github.com/quernmr/quern/wire"
)

// nullCollector discards map output.
type nullCollector struct{ bytes int }

func (c *nullCollector) Collect(_ int, key, value []byte) error {
	c.bytes += len(key) + len(value)
	return nil
}

// manyRecords is n sorted records, perGroup of each key.
type manyRecords struct {
	n, perGroup int
	at          int
	key, value  []byte
}

func (r *manyRecords) Next() bool {
	if r.at == r.n {
		return false
	}
	r.key = append(r.key[:0], "some key of a group "...)
	r.key = binary.BigEndian.AppendUint64(r.key, uint64(r.at/r.perGroup))
	r.value = int64Codec.append(r.value[:0], int64(r.at))
	r.at++
	return true
}

func (r *manyRecords) Key() []byte   { return r.key }
func (r *manyRecords) Value() []byte { return r.value }
func (r *manyRecords) Err() error    { return nil }

type nullOutput struct{ bytes int }

func (o *nullOutput) Write(record []byte) error {
	o.bytes += len(record)
	return nil
}

type nullHost struct {
	*mrruntime.Task
	out nullOutput
}

func (h *nullHost) open(string) (recordWriter, error) { return &h.out, nil }

func (h *nullHost) container(string, string, func(io.Writer) (func() error, error)) (recordCounter, error) {
	panic("no container")
}

func (h *nullHost) sideInput([]string, *wire.InputPlan, mrruntime.Format) (splitReader, error) {
	panic("no small side")
}

func nullSpec() *jobSpec {
	return &jobSpec{format: Text{}, host: func(t *mrruntime.Task) host { return &nullHost{Task: t} }}
}

func nullTask() *mrruntime.Task {
	return &mrruntime.Task{Partitions: 4, ID: wire.AttemptID{Task: wire.TaskID{Kind: wire.Map}}, Plan: &wire.JobPlan{}}
}

var someWords = func() (all []string) {
	for i := range 2000 {
		all = append(all, fmt.Sprintf("w%05d", i*7919%2000))
	}
	return all
}()

// emitting returns the pairs of a map that emits n records.
func emitting[K, V any](n int, record func(i int) (K, V)) *Pairs[K, V] {
	return MapSplit(Lines(), func(_ *Task, _ iter.Seq[string], emit func(K, V)) error {
		for i := range n {
			emit(record(i))
		}
		return nil
	})
}

func runMap[K, V any](tb testing.TB, p *Pairs[K, V]) {
	tb.Helper()
	if err := p.wholeKeys().maps(nullSpec())[0](nullTask(), &fakeSplit{}, &nullCollector{}); err != nil {
		tb.Fatal(err)
	}
}

func runReduce[K, V any](tb testing.TB, r *Result[K, V], records int) {
	tb.Helper()
	if err := r.stage.reduce(nullSpec())(nullTask(), &manyRecords{n: records, perGroup: 400}); err != nil {
		tb.Fatal(err)
	}
}

func wordOne(i int) (string, int64) { return someWords[i%len(someWords)], 1 }

func wordPair(i int) (Pair[string, int64], int64) {
	return PairOf(someWords[i%len(someWords)], int64(i)), 1
}

func wordFields(i int) (order, order) {
	return order{int64(i), 1}, order{2, 3}
}

// TestAllocations: at most one allocation per hundred records. Only groups allocate: once
// for their sequence, and twice for Go's loop over an unknown sequence.
func TestAllocations(t *testing.T) {
	const n = 100_000
	folded := emitting(n, wordOne)
	folded.fold = Sum
	sum := Reduce(wordPairs(), func(_ *Task, w string, ones iter.Seq[int64], emit func(string, int64)) error {
		n := int64(0)
		for one := range ones {
			n += one
		}
		emit(w, n)
		return nil
	})
	texts := emitting(n, func(i int) (string, string) { return someWords[i%2000], someWords[i%1999] })
	copied := Sort(texts)
	for name, run := range map[string]func(){
		"emit":        func() { runMap(t, emitting(n, wordOne)) },
		"emit pair":   func() { runMap(t, emitting(n, wordPair)) },
		"emit fields": func() { runMap(t, emitting(n, wordFields)) },
		"fold":        func() { runMap(t, folded) },
		"reduce":      func() { runReduce(t, sum, n) },
		"reduce fold": func() { runReduce(t, Fold(wordPairs(), Sum), n) },
		"sort":        func() { runReduce(t, copied, n) },
	} {
		if perRecord := testing.AllocsPerRun(2, run) / n; perRecord > 0.01 {
			t.Errorf("%s: %.4f allocations a record", name, perRecord)
		}
	}
}

func BenchmarkEmit(b *testing.B)       { benchMap(b, false, wordOne) }
func BenchmarkEmitPair(b *testing.B)   { benchMap(b, false, wordPair) }
func BenchmarkEmitFields(b *testing.B) { benchMap(b, false, wordFields) }
func BenchmarkFold(b *testing.B)       { benchMap(b, true, wordOne) }

func BenchmarkFoldPair(b *testing.B) {
	benchMap(b, true, func(i int) (Pair[string, int64], int64) { return PairOf(someWords[i%2000], int64(i%3)), 1 })
}

func benchMap[K, V any](b *testing.B, fold bool, record func(i int) (K, V)) {
	p := emitting(b.N, record)
	if fold {
		p.fold = func(a, _ V) V { return a }
	}
	b.ReportAllocs()
	runMap(b, p)
}

func BenchmarkReduce(b *testing.B) {
	b.ReportAllocs()
	runReduce(b, Reduce(wordPairs(), func(_ *Task, w string, ones iter.Seq[int64], emit func(string, int64)) error {
		n := int64(0)
		for one := range ones {
			n += one
		}
		emit(w, n)
		return nil
	}), b.N)
}

func BenchmarkReduceFold(b *testing.B) {
	b.ReportAllocs()
	runReduce(b, Fold(wordPairs(), Sum), b.N)
}

// ledger is a record without methods, ledgerFields the same with a method Fields.
type ledger struct {
	User  string
	Day   int64
	Total float64
	Shop  string
	Count int32
	Paid  bool
}

type ledgerFields ledger

func (v *ledgerFields) Fields(f *Fields) {
	f.String(&v.User)
	f.Int64(&v.Day)
	f.Float64(&v.Total)
	f.String(&v.Shop)
	f.Int32(&v.Count)
	f.Bool(&v.Paid)
}

// ledgerCodec is written by hand, with names of this API only.
func ledgerCodec() *Codec[ledger] {
	putString := func(dst []byte, s string) []byte { return append(binary.AppendUvarint(dst, uint64(len(s))), s...) }
	getString := func(src []byte) (string, []byte) {
		n, size := binary.Uvarint(src)
		if src = src[max(size, 0):]; size <= 0 || n > uint64(len(src)) {
			return "", nil
		}
		return string(src[:n]), src[n:]
	}
	return &Codec[ledger]{
		Name: "ledger",
		Append: func(dst []byte, v ledger) []byte {
			dst = putString(dst, v.User)
			dst = binary.BigEndian.AppendUint64(dst, uint64(v.Day))
			dst = binary.BigEndian.AppendUint64(dst, math.Float64bits(v.Total))
			dst = putString(dst, v.Shop)
			dst = binary.BigEndian.AppendUint32(dst, uint32(v.Count))
			return strconv.AppendBool(dst, v.Paid)
		},
		Decode: func(src []byte) (v ledger, err error) {
			if v.User, src = getString(src); len(src) < 16 {
				return v, errTruncated
			}
			v.Day, v.Total = int64(binary.BigEndian.Uint64(src)), math.Float64frombits(binary.BigEndian.Uint64(src[8:]))
			if v.Shop, src = getString(src[16:]); len(src) < 5 {
				return v, errTruncated
			}
			v.Count, v.Paid = int32(binary.BigEndian.Uint32(src)), src[4] == 't'
			return v, nil
		},
	}
}

// ledgerInside is the best code inside this package, with the same bytes as the layout.
func ledgerInside() *codec[ledger] {
	c := &codec[ledger]{name: "ledger"}
	c.append = func(dst []byte, v ledger) []byte {
		dst = appendEscaped(dst, bytesOf(v.User))
		dst = binary.BigEndian.AppendUint64(dst, uint64(v.Day)^sign64)
		dst = binary.BigEndian.AppendUint64(dst, orderFloat64(float64bits(v.Total)))
		dst = appendEscaped(dst, bytesOf(v.Shop))
		dst = binary.BigEndian.AppendUint32(dst, uint32(v.Count)^sign32)
		return appendBool(dst, v.Paid)
	}
	c.decode = func(d *decoder, src []byte) (v ledger) {
		if v.User, src = stringCodec.decodeNested(d, src); len(src) < 16 {
			d.fail(errTruncated)
			return v
		}
		v.Day = int64(binary.BigEndian.Uint64(src) ^ sign64)
		v.Total = math.Float64frombits(unorderFloat64(binary.BigEndian.Uint64(src[8:])))
		if v.Shop, src = stringCodec.decodeNested(d, src[16:]); len(src) != 5 || src[4] > 1 {
			d.fail(errTruncated)
			return v
		}
		v.Count, v.Paid = int32(binary.BigEndian.Uint32(src)^sign32), src[4] == 1
		return v
	}
	return c
}

func ledgerOf(i int) ledger {
	return ledger{someWords[i%2000], int64(i), float64(i), "a shop in town", int32(i), i%2 == 0}
}

// BenchmarkLedger compares a struct without methods with hand-written code.
func BenchmarkLedger(b *testing.B) {
	benchCodec(b, "inside", ledgerInside(), ledgerOf)
	benchCodec(b, "hand", must(ledgerCodec()), ledgerOf)
	benchCodec(b, "fields", must[ledgerFields](nil), func(i int) ledgerFields { return ledgerFields(ledgerOf(i)) })
	benchCodec(b, "layout", must[ledger](nil), ledgerOf)
	b.Run("emit/hand", func(b *testing.B) {
		runMap(b, emitting(b.N, func(i int) (string, ledger) { return someWords[i%2000], ledgerOf(i) }).Codecs(nil, ledgerCodec()))
	})
	b.Run("key/hand", func(b *testing.B) {
		runMap(b, emitting(b.N, func(i int) (ledger, string) { return ledgerOf(i), someWords[i%2000] }).Codecs(ledgerCodec(), nil))
	})
	b.Run("key/layout", func(b *testing.B) {
		benchMap(b, false, func(i int) (ledger, string) { return ledgerOf(i), someWords[i%2000] })
	})
	b.Run("emit/fields", func(b *testing.B) {
		benchMap(b, false, func(i int) (string, ledgerFields) { return someWords[i%2000], ledgerFields(ledgerOf(i)) })
	})
	b.Run("emit/layout", func(b *testing.B) {
		benchMap(b, false, func(i int) (string, ledger) { return someWords[i%2000], ledgerOf(i) })
	})
}

// BenchmarkFoldGrows folds n values of each key to one, in a map: slices with one element, and bytes.
func BenchmarkFoldGrows(b *testing.B) {
	benchGrows(b, "bytes", []byte("a few more"))
	benchGrows(b, "int64", []int64{7})
	benchGrows(b, "string", []string{"some word"})
}

func benchGrows[T any](b *testing.B, name string, value []T) {
	for _, n := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprintf("%s/n=%d", name, n), func(b *testing.B) {
			key := ""
			p := emitting(b.N, func(i int) (string, []T) {
				if i%n == 0 {
					key = strconv.Itoa(i)
				}
				return key, value
			})
			p.fold = func(a, b []T) []T { return append(a, b...) }
			runMap(b, p)
		})
	}
}

func BenchmarkFoldStrings(b *testing.B) {
	texts := Map(Lines(), func(*Task, string, func(string, string)) error { return nil })
	runReduce(b, Fold(texts, Max), b.N)
}

func benchCodec[T any](b *testing.B, name string, c *codec[T], of func(i int) T) {
	b.Run("encode/"+name, func(b *testing.B) {
		var buf []byte
		for i := range b.N {
			c.encode(&buf, of(i))
		}
	})
	b.Run("decode/"+name, func(b *testing.B) {
		src, d := c.append(nil, of(1)), &decoder{keep: true}
		for range b.N {
			if _, err := read(c, d, src); err != nil {
				b.Fatal(err)
			}
		}
	})
}
