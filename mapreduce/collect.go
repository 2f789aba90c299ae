package mapreduce

import (
	"bytes"
	"fmt"
	"math"
	"slices"

	mrruntime "github.com/quernmr/quern/runtime"
)

// collect encodes and partitions records that a map emits, and passes them to the
// shuffle.
type collect[K, V any] struct {
	t     *Task
	key   *codec[K]
	value *codec[V]
	out   mrruntime.Collector
	n     int       // partitions
	route router[K] // nil: all to partition 0

	kbuf, vbuf []byte
}

// router picks the partition of a key; it gets the key decoded and encoded.
type router[K any] func(k K, key []byte) int

func (c *collect[K, V]) emit(k K, v V) {
	if !c.t.open {
		c.t.rejectLate(errLateEmit)
		return
	}
	c.put(k, c.key.encode(&c.kbuf, k), v)
}

// put collects a record with an encoded key.
func (c *collect[K, V]) put(k K, key []byte, v V) {
	p := 0
	if c.route != nil {
		if p = c.route(k, key); uint(p) >= uint(c.n) {
			c.t.fail(misuse(fmt.Sprintf("partition %d of key %q is not one of 0 to %d", p, c.key.text(nil, k), c.n-1)))
			return
		}
	}
	if err := c.out.Collect(p, key, c.value.encode(&c.vbuf, v)); err != nil {
		c.t.fail(err)
	}
}

func (p *Pairs[K, V]) router(rt *mrruntime.Task, in splitReader, key *codec[K], s shape[K]) router[K] {
	n := rt.Partitions
	switch {
	case n <= 1:
		return nil
	case p.partition != nil:
		return func(k K, _ []byte) int { return p.partition(k, n) }
	case p.totalOrder:
		if rt.Division != nil && s.prefix == nil {
			return dividingRouter[K](rt, in)
		}
		return rangeRouter[K](rt.Cuts, s)
	}
	hash, parts := key.hash, uint32(n)
	return func(k K, _ []byte) int { return int(uint32(hash(k)&math.MaxInt32) % parts) }
}

// rangeRouter counts the cuts that are not greater than a key. If groups are prefixes
// of keys, it shortens the cuts to prefixes too, so that no cut divides a group.
func rangeRouter[K any](cuts [][]byte, s shape[K]) router[K] {
	if len(cuts) == 0 {
		return nil // this map reads the sample
	}
	if s.prefix == nil {
		return func(_ K, key []byte) int { return countNotGreater(cuts, key) }
	}
	prefix := s.prefix()
	cuts = slices.Clone(cuts)
	for i, cut := range cuts {
		if n, err := prefix(cut); err == nil {
			cuts[i] = cut[:n]
		}
	}
	return func(_ K, key []byte) int {
		n, err := prefix(key)
		if err != nil {
			return -1 // not an encoding of the key's codec
		}
		return countNotGreater(cuts, key[:n])
	}
}

func countNotGreater(cuts [][]byte, key []byte) int {
	low, high := 0, len(cuts)
	for low < high {
		mid := int(uint(low+high) / 2)
		if bytes.Compare(cuts[mid], key) <= 0 {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low
}
