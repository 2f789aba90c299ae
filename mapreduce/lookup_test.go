package mapreduce

import (
	"fmt"
	"hash/maphash"
	"testing"
)

// TestKeyFilter: a filter has every key of its set, and few others.
func TestKeyFilter(t *testing.T) {
	seed := maphash.MakeSeed()
	hash := func(n int) uint64 { return maphash.String(seed, fmt.Sprint(n)) }
	for _, n := range []int{0, 1, 7, 8, 1000, 100_000} {
		keys := make(map[uint64]int)
		for i := range n {
			keys[hash(i)] = i
		}
		f := newKeyFilter(keys)
		others := 0
		for i := range max(n, 1000) {
			if i < n && !f.mayHave(hash(i)) {
				t.Fatalf("%d keys: %d is not in the filter", n, i)
			}
			if f.mayHave(hash(-1 - i)) {
				others++
			}
		}
		if n > 1 && others*10 > max(n, 1000) {
			t.Errorf("%d keys: the filter has %d other keys of %d", n, others, max(n, 1000))
		}
	}
}
