package shuffle

import (
	"bytes"
	"fmt"
	"maps"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// text is a polynomial hash of the values that were joined: joining is associative, and the order of values counts.
type text struct{ power, hash uint64 }

func join(a, b text) text { return text{a.power * b.power, a.hash*b.power + b.hash} }

func textOf(i int) text { return text{1_000_003, uint64(i) + 1} }

// tableTest folds records in a table, which it empties into emit when it is full, as a map does.
type tableTest struct {
	t      tester
	table  *Table[text]
	memory int64
	emit   func(key []byte, v text)
	key    []byte // the caller's memory, which changes after each Add
}

func (tt *tableTest) add(key string, v text) {
	tt.key = append(tt.key[:0], key...)
	full := tt.table.Add(tt.key, v)
	for i := range tt.key {
		tt.key[i] ^= 0x55
	}
	if full {
		tt.fold(0)
	}
}

// fold folds the batch. It empties a full table, and passes up to so many records of the batch by.
func (tt *tableTest) fold(pass int) {
	for !tt.table.Fold(join) {
		if tt.table.Len() > 0 {
			tt.flush()
		} else {
			pass++ // larger than the table
		}
		for ; pass > 0 && tt.table.Pending() > 0; pass-- {
			tt.emit(tt.table.First())
			tt.table.Drop()
		}
		if tt.table.Pending() == 0 {
			return
		}
	}
	if inUse(tt.table) > max(tt.memory, 4*tt.table.slotSize()) {
		tt.t.Fatalf("%d bytes of %d", inUse(tt.table), tt.memory)
	}
}

func (tt *tableTest) flush() {
	seen := make(map[string]bool)
	for key, v := range tt.table.All() {
		if seen[string(key)] {
			tt.t.Fatalf("%q occurs twice", key)
		}
		seen[string(key)] = true
		tt.emit(key, v)
	}
	if len(seen) != tt.table.Len() {
		tt.t.Fatalf("%d keys, Len is %d", len(seen), tt.table.Len())
	}
	tt.table.Reset()
}

// drawTable draws a table and a batch.
func drawTable(t *rapid.T, emit func([]byte, text)) *tableTest {
	memory := rapid.SampledFrom([]int64{0, 100, 1000, 10_000, 1 << 20}).Draw(t, "memory")
	table, err := NewTable[text](memory, rapid.SampledFrom([]int{1, 2, 7, 1000}).Draw(t, "batch"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(table.Close)
	return &tableTest{t: t, table: table, memory: memory, emit: emit}
}

func TestTableAgainstMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		got, want := make(map[string]text), make(map[string]text)
		add := func(m map[string]text, key string, v text) {
			if sum, ok := m[key]; ok {
				v = join(sum, v)
			}
			m[key] = v
		}
		tt := drawTable(t, func(key []byte, v text) { add(got, string(key), v) })
		recs, more := drawRecords(t, 1, false), rapid.IntRange(0, 4000).Draw(t, "more")
		folds, pass := rapid.IntRange(1, 500).Draw(t, "folds"), rapid.IntRange(0, 200).Draw(t, "pass")
		for i := range len(recs) + more {
			key := fmt.Sprintf("%x", i*7919%5000)
			if i < len(recs) {
				key = recs[i].key
			}
			tt.add(key, textOf(i))
			add(want, key, textOf(i))
			if i%folds == 0 {
				tt.fold(pass)
			}
		}
		tt.fold(0)
		tt.flush()
		if !maps.Equal(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
	})
}

// TestTableCollected: records that a table folds in batches, a collector sorts and spills, and a merge joins are the
// records themselves, joined in their order.
func TestTableCollected(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		recs := drawRecords(t, 1, false)
		var collected []rec
		tt := drawTable(t, func(key []byte, v text) {
			collected = append(collected, rec{0, string(key), fmt.Sprintf("%d %d", v.power, v.hash)})
		})
		want := make(map[string]text)
		for i, r := range recs {
			tt.add(r.key, textOf(i))
			if sum, ok := want[r.key]; ok {
				want[r.key] = join(sum, textOf(i))
			} else {
				want[r.key] = textOf(i)
			}
		}
		tt.fold(0)
		tt.flush()
		cfg, _ := collect(t, Config{Partitions: 1, Memory: rapid.SampledFrom([]int64{1, 300, 1 << 20}).Draw(t, "spills")}, collected)
		got := make(map[string]text)
		for _, r := range readSegments(t, 0, MergeOptions{}, cfg.File) {
			var v text
			if _, err := fmt.Sscan(r.value, &v.power, &v.hash); err != nil {
				t.Fatal(err)
			}
			if sum, ok := got[r.key]; ok {
				v = join(sum, v)
			}
			got[r.key] = v
		}
		if !maps.Equal(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
	})
}

// TestTableFull checks that a full table uses at least half of its memory, and at most all.
func TestTableFull(t *testing.T) {
	for _, format := range []string{"%d", strings.Repeat("long", 20) + "%d"} {
		const memory = 1 << 20
		table, err := NewTable[int64](memory, 128)
		if err != nil {
			t.Fatal(err)
		}
		defer table.Close()
		sum := func(a, b int64) int64 { return a + b }
		for i, fits := 0, true; fits; i++ {
			if table.Add(fmt.Appendf(nil, format, i), 1) {
				fits = table.Fold(sum)
			}
		}
		if used := inUse(table); used < memory/2 || used > memory {
			t.Errorf("%s: full with %d of %d bytes", format, used, memory)
		}
	}
}

// TestShortWords compares both ways to load a key, at all places around a page's end, after which there may be no memory.
func TestShortWords(t *testing.T) {
	mem, err := newArena(2 * smallestPage)
	if err != nil {
		t.Fatal(err)
	}
	defer mem.free()
	for i := range mem.mem {
		mem.mem[i] = byte(i%255 + 1)
	}
	for begin := smallestPage - 40; begin <= len(mem.mem); begin++ {
		for n := range inlineKey + 1 {
			if begin+n > len(mem.mem) {
				break
			}
			key := mem.mem[begin:][:n]
			a, b := shortWords(key)
			if wantA, wantB := shortWordsWithin(key); a != wantA || b != wantB {
				t.Fatalf("%x: got %x %x, want %x %x", key, a, b, wantA, wantB)
			}
			if got := appendWords(nil, a, b, n); !bytes.Equal(got, key) {
				t.Fatalf("got %x, want %x", got, key)
			}
		}
	}
}

func TestPrefix(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.SliceOfN(rapid.Byte(), 0, 12).Draw(t, "key")
		want := uint64(0)
		for i := range 8 {
			want <<= 8
			if i < len(key) {
				want |= uint64(key[i])
			}
		}
		if got := prefixOf(key); got != want {
			t.Fatalf("got %016x, want %016x", got, want)
		}
	})
}

// inUse returns the memory of a table's long keys and slots.
func inUse[V any](t *Table[V]) int64 { return int64(t.used) + int64(len(t.slots))*t.slotSize() }
