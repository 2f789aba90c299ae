package mapreduce

import (
	"bytes"
	"math/bits"

	mrruntime "github.com/quernmr/quern/runtime"
)

// dividingRouter is a [rangeRouter] with cuts that divide the records of keys by their place in the input.
func dividingRouter[K any](rt *mrruntime.Task, in splitReader) router[K] {
	cuts, divided := rt.Cuts, dividedKeys(rt.Cuts, rt.Division, rt.ID.Task.N, in.Chunks())
	return func(_ K, key []byte) int {
		n := countNotGreater(cuts, key)
		if n > 0 && divided[n-1] != nil && bytes.Equal(cuts[n-1], key) {
			return divided[n-1].partition(in)
		}
		return n
	}
}

// dividedKey is a key with a cut that does not have all of its records on the right.
type dividedKey struct {
	next int     // partition of the next record, unless it is beyond an offset
	ends []int64 // offsets in the map's file: the following partitions begin there
}

// dividedKeys returns the divided keys for a map, each at the index of its last cut.
func dividedKeys(cuts [][]byte, d *mrruntime.Division, m int, chunks []mrruntime.Chunk) []*dividedKey {
	divided := make([]*dividedKey, len(cuts))
	for first, last := 0, 0; first < len(cuts); first = last {
		for last = first + 1; last < len(cuts) && bytes.Equal(cuts[first], cuts[last]); {
			last++
		}
		if d.Places[last-1] == 0 {
			continue
		}
		key := &dividedKey{next: first}
		for _, place := range d.Places[first:last] {
			key.add(place*uint64(d.Maps), uint64(m)<<32, chunks)
		}
		divided[last-1] = key
	}
	return divided
}

// add adds a cut at a place, for a map that begins at another. A map has 1<<32 places. In a map with several files, all
// records are on the nearer side of the cut.
func (k *dividedKey) add(place, begin uint64, chunks []mrruntime.Chunk) {
	const length = 1 << 32
	switch {
	case place <= begin:
		k.next++
	case place >= begin+length:
	case len(chunks) == 1:
		high, low := bits.Mul64(place-begin, uint64(chunks[0].Length))
		k.ends = append(k.ends, chunks[0].Offset+int64(high<<32|low>>32))
	case place-begin < length/2:
		k.next++
	}
}

// partition returns the partition of the current record. It never decreases.
func (k *dividedKey) partition(in splitReader) int {
	if len(k.ends) == 0 {
		return k.next
	}
	for _, at := in.Place(); len(k.ends) > 0 && at >= k.ends[0]; k.ends = k.ends[1:] {
		k.next++
	}
	return k.next
}
