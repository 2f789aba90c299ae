package shuffle

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestTableAgainstMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		memory := rapid.SampledFrom([]int64{0, 100, 1000, 10_000, 1 << 20}).Draw(t, "memory")
		table, err := NewTable(memory)
		if err != nil {
			t.Fatal(err)
		}
		defer table.Close()
		for range rapid.IntRange(1, 3).Draw(t, "rounds") {
			checkTable(t, table, memory, drawRecords(t, 1, false), rapid.IntRange(0, 4000).Draw(t, "more"))
			table.Reset()
		}
	})
}

// checkTable inserts the keys of recs, and more other keys.
func checkTable(t *rapid.T, table *Table, memory int64, recs []rec, more int) {
	numbers := make(map[string]int)
	for i := range len(recs) + more {
		key := fmt.Sprintf("%x", i*7919%5000)
		if i < len(recs) {
			key = recs[i].key
		}
		number, added, full := table.Insert([]byte(key))
		known, ok := numbers[key]
		switch {
		case ok && (number != known || added || full):
			t.Fatalf("%q is %d: got %d, added %v, full %v", key, known, number, added, full)
		case !ok && !full && (number != len(numbers) || !added):
			t.Fatalf("%q is new: got %d, added %v", key, number, added)
		case full && memory > 200_000:
			t.Fatalf("full with %d keys in %d bytes", table.Len(), inUse(table))
		}
		if !ok && !full {
			numbers[key] = number
		}
	}
	if table.Len() != len(numbers) || inUse(table) > max(memory, 64) {
		t.Fatalf("%d keys, want %d; %d bytes of %d", table.Len(), len(numbers), inUse(table), memory)
	}
	for key, number := range numbers {
		if got := string(table.Key(number)); got != key {
			t.Fatalf("key %d is %q, want %q", number, got, key)
		}
	}
}

// TestTableFull checks that a full table uses at least half of its memory.
func TestTableFull(t *testing.T) {
	for _, format := range []string{"%d", strings.Repeat("long", 20) + "%d"} {
		const memory = 1 << 20
		table, err := NewTable(memory)
		if err != nil {
			t.Fatal(err)
		}
		defer table.Close()
		for i, full := 0, false; !full; i++ {
			_, _, full = table.Insert(fmt.Appendf(nil, format, i))
		}
		if used := inUse(table); used < memory/2 || used > memory {
			t.Errorf("%s: full with %d of %d bytes", format, used, memory)
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

// inUse returns the memory of a table's keys and slots.
func inUse(t *Table) int64 { return int64(t.used + 4*t.n + slotSize*len(t.slots)) }
