package mapreduce

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestFoldTableFlushes: the output is correct if there are more keys than the table
// holds, whether keys repeat or not, or only close together.
func TestFoldTableFlushes(t *testing.T) {
	const n = 400_000
	for _, c := range []struct{ distinct, inRow int }{{n, 1}, {n / 4, 1}, {1000, 1}, {n / 2, 2}} {
		distinct := c.distinct
		var b jobRunner
		b.files = map[string]string{"in": "go\n"}
		out, err := b.run(Fold(Map(Lines(), func(_ *Task, _ string, emit func(string, int64)) error {
			pad := strings.Repeat("p", 60*c.inRow)
			for i := range n {
				emit(pad+strconv.Itoa(i/c.inRow%distinct), int64(i))
			}
			return nil
		}), Sum).Job("j"))
		if err != nil {
			t.Fatal(err)
		}
		lines, sum := 0, 0
		for line := range strings.Lines(mainText(out, "j")) {
			_, v, _ := strings.Cut(line, "\t")
			x, err := strconv.Atoi(strings.TrimSpace(v))
			if err != nil {
				t.Fatal(err)
			}
			lines, sum = lines+1, sum+x
		}
		if lines != distinct || sum != n*(n-1)/2 || b.counters["MAP_OUTPUT_RECORDS"] != n {
			t.Errorf("%d keys: %d lines, sum %d, %v", distinct, lines, sum, b.counters)
		}
	}
}

// TestFoldTableDisabled: a full table that has saved fewer than one record in five is not filled again.
func TestFoldTableDisabled(t *testing.T) {
	const memory, size = 32 * 128, 104 // 13/16 of 128 slots
	for records, disabled := range map[int]bool{size: true, size*5/4 - 1: true, size * 5 / 4: false, 2 * size: false} {
		for _, skips := range []bool{false, true} {
			table, out := newTestTable(t, Sum[int64], memory, skips)
			for range records - size {
				table.emit(0, 1)
			}
			for k := range int64(size) {
				table.emit(k, 1)
			}
			table.fold()
			if n := len(slices.Concat(out.parts...)); n != 0 {
				t.Fatalf("%d records: the table has emitted %d", records, n)
			}
			table.emit(size, 1)
			table.fold()
			want := size
			if disabled {
				want++
			}
			if n := len(slices.Concat(out.parts...)); n != want || table.disabled != disabled {
				t.Errorf("%d records of %d keys: the full table has emitted %d, want %d; disabled is %v", records, size, n, want, table.disabled)
			}
		}
	}
}

// newTestTable returns a table of int64 keys without a job.
func newTestTable[V any](t interface {
	Fatal(args ...any)
	Cleanup(f func())
}, f func(a, b V) V, memory int64, skips bool) (*foldTable[int64, V], *fakeCollector) {
	out := &fakeCollector{parts: make([][]record, 3)}
	key := must[int64](nil)
	c := &collect[int64, V]{t: &Task{open: true}, key: key, value: must[V](nil), out: out, n: 3}
	c.route = func(k int64, _ []byte) int { return int(uint64(k) % 3) }
	table, err := newFoldTable(c, f, memory, skips)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(table.close)
	return table, out
}

// TestFoldTableOrder: values of a key are folded in the order of emission, whatever the table flushes, and the counters
// of records are exact. Its dumb twin is a map of sums.
func TestFoldTableOrder(t *testing.T) {
	type text struct{ Power, Hash uint64 }
	join := func(a, b text) text { return text{a.Power * b.Power, a.Hash*b.Power + b.Hash} } // associative, and the order counts
	rapid.Check(t, func(t *rapid.T) {
		table, out := newTestTable(t, join, rapid.SampledFrom([]int64{0, 3000, 20_000, 1 << 20}).Draw(t, "memory"), rapid.Bool().Draw(t, "skips"))
		keys := rapid.IntRange(1, 2000).Draw(t, "keys")
		n, step := rapid.IntRange(0, 4000).Draw(t, "records"), rapid.IntRange(1, 10_000).Draw(t, "step")
		want := make(map[int64]text)
		for i := range n {
			k, v := int64(i/(1+i%2)*step%keys), text{1_000_003, uint64(i) + 1}
			table.emit(k, v)
			if sum, ok := want[k]; ok {
				v = join(sum, v)
			}
			want[k] = v
		}
		table.finish()
		got := make(map[int64]text)
		emitted := 0
		for p, part := range out.parts {
			emitted += len(part)
			for _, r := range part {
				k, v := decoded[int64](t, r.key), decoded[text](t, r.value)
				if int(k%3) != p {
					t.Fatalf("key %d is in partition %d", k, p)
				}
				if sum, ok := got[k]; ok {
					if out.distinct {
						t.Fatalf("key %d is not distinct", k)
					}
					v = join(sum, v)
				}
				got[k] = v
			}
		}
		if !maps.Equal(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
		if saved := table.folded - table.flushed; saved != int64(n-emitted) || table.keyBytes != 8*saved {
			t.Fatalf("%d records, %d emitted: %d saved, %d bytes of keys", n, emitted, saved, table.keyBytes)
		}
	})
}

func decoded[T any](t *rapid.T, b []byte) T {
	v, err := read(must[T](nil), &decoder{}, b)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestFoldPanicNamesKey: the fold runs when the map may be at a later record, so its panic names the key. A job that
// skips bad records folds at once.
func TestFoldPanicNamesKey(t *testing.T) {
	for skips, want := range map[bool]int{false: 12, true: 5} {
		emitted := 0
		table, _ := newTestTable(t, func(a, b int64) int64 {
			if b == 5 {
				panic("odd")
			}
			return a + b
		}, 1<<20, skips)
		text := func() (text string) {
			defer func() { text = fmt.Sprint(recover()) }()
			for i := range int64(12) {
				emitted++
				table.emit(41+i%2, i+1)
			}
			table.fold()
			return ""
		}()
		if !strings.HasPrefix(text, `fold of key "41", `) || !strings.HasSuffix(text, ": odd") || emitted != want {
			t.Errorf("skips %v: %d records, %s", skips, emitted, text)
		}
		for range 300 { // the map has recovered
			table.emit(41, 1)
		}
		table.fold()
		sum := int64(300 - 5)
		for i := range int64(emitted) {
			sum += i + 1
		}
		for _, v := range table.table.All() {
			sum -= v
		}
		if sum != 0 {
			t.Errorf("skips %v: %d are missing", skips, sum)
		}
	}
}
