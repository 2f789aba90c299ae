package shuffle

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/bits"
)

// repeats finds records that repeat the last record of their key, as those of a word count without a combiner do: such a
// record only raises a count, and needs no memory and no place in the sort. Records that are not neighbors among those of
// their key stay apart, so that values keep the order in which they were collected.
//
// It is a cache with one slot for each hash of a partition and key. A slot has the last record that was added with its
// hash. So the last record of a key is in its slot, or none of that key is. While the cache is in use, the count of a record
// comes before it in the arena, in 4 bytes.
//
// Slots and the records in them are scattered in memory. So records wait at the end of the arena for a batch, so that
// cache misses overlap; those that repeat others are then overwritten.
//
// A cache that finds few repeats costs more than it saves: it is switched off until the arena is empty again.
type repeats struct {
	slots       []entry // those with offset 0 are free; their number is a power of two
	shift       int     // from a hash to the number of a slot
	on          bool
	end         uint32 // the records in the arena before it have counts
	seen, found int    // records since the last decision about the cache

	batch   [batchSize]entry
	at      [batchSize]uint32 // the numbers of their slots
	waiting int               // records of the batch
	touched uint32            // keeps the compiler from removing loads
}

const (
	countSize = 4
	// The cache takes 1/repeatShare of a collector's memory, at most maxRepeatMemory bytes.
	repeatShare     = 32
	maxRepeatMemory = 2 << 20
	// One repeat in leastRepeats of every repeatSample records pays for the cache.
	repeatSample = 1 << 14
	leastRepeats = 8
)

// repeatSlots returns the number of slots for a collector of some memory; 0: no cache.
func repeatSlots(memory int) int {
	n := min(memory/repeatShare, maxRepeatMemory) / entrySize
	if n == 0 {
		return 0
	}
	return 1 << (bits.Len(uint(n)) - 1)
}

// start puts the cache into zeroed memory.
func (r *repeats) start(slots []entry) {
	if len(slots) > 0 {
		*r = repeats{slots: slots, shift: 64 - bits.TrailingZeros(uint(len(slots))), on: true, end: math.MaxUint32}
	}
}

// reset forgets all records.
func (r *repeats) reset() {
	clear(r.slots)
	r.start(r.slots)
}

// slot returns the number of a key's slot.
func (r *repeats) slot(e *entry, key []byte) uint32 {
	last := uint64(len(key)) << 32
	if n := len(key); n > shortKey {
		last ^= binary.LittleEndian.Uint64(key[n-8:])
	}
	return uint32(mix(e.prefix^mixA, last^uint64(e.tag)^mixB) >> r.shift)
}

// touch loads the slots of the batch and their records.
func (r *repeats) touch(mem []byte) {
	at, slots, touched := r.at[:r.waiting], r.slots, uint32(0)
	for _, i := range at {
		touched += slots[i].tag
	}
	for _, i := range at {
		touched += uint32(mem[slots[i].offset])
	}
	r.touched = touched
}

// count counts a record if it repeats the one in its slot.
func (r *repeats) count(mem []byte, slot, e *entry, record []byte) bool {
	if slot.prefix != e.prefix || slot.tag != e.tag || slot.offset == 0 || !bytes.HasPrefix(mem[slot.offset:], record) {
		return false
	}
	at := mem[slot.offset-countSize:]
	n := binary.NativeEndian.Uint32(at)
	if n == math.MaxUint32 {
		return false
	}
	binary.NativeEndian.PutUint32(at, n+1)
	r.found++
	return true
}

// settle empties the batch.
func (c *Collector) settle() {
	r := &c.repeats
	if r.waiting == 0 {
		return
	}
	r.touch(c.mem)
	end := int(r.batch[0].offset) - countSize
	for i := range r.batch[:r.waiting] {
		e, slot := &r.batch[i], &r.slots[r.at[i]]
		record := c.mem[e.offset:]
		_, _, size, _ := lengths(record)
		if record = record[:size]; r.count(c.mem, slot, e, record) {
			continue
		}
		binary.NativeEndian.PutUint32(c.mem[end:], 1)
		e.offset = uint32(end + countSize)
		copy(c.mem[e.offset:], record)
		end += countSize + size
		c.firstEntry--
		c.index[c.firstEntry], *slot = *e, *e
	}
	r.seen += r.waiting
	r.waiting, c.used = 0, end
	if r.seen >= repeatSample {
		r.decide(end)
	}
}

// decide switches the cache off if it has found too few repeats. The next record would be at the offset used.
func (r *repeats) decide(used int) {
	if r.found < r.seen/leastRepeats {
		r.on, r.end = false, uint32(used)
	}
	r.seen, r.found = 0, 0
}

// countOf returns how often the record at an offset was collected.
func countOf(mem []byte, offset, end uint32) int {
	if offset >= end {
		return 1
	}
	return int(binary.NativeEndian.Uint32(mem[offset-countSize:]))
}

// repeated returns how many records, which follow the first one of size bytes, equal it.
func repeated(records []byte, size int) int {
	a, b := records, records[size:]
	n := 0
	for ; len(b)-n >= 8; n += 8 {
		if differ := binary.LittleEndian.Uint64(a[n:]) ^ binary.LittleEndian.Uint64(b[n:]); differ != 0 {
			return (n + bits.TrailingZeros64(differ)/8) / size
		}
	}
	for n < len(b) && a[n] == b[n] {
		n++
	}
	return n / size
}

// appendRepeated appends a record n times, n > 0.
func appendRepeated(dst, record []byte, n int) []byte {
	start, end := len(dst), len(dst)+n*len(record)
	dst = append(dst, record...)
	for len(dst) < end {
		dst = append(dst, dst[start:start+min(len(dst)-start, end-len(dst))]...)
	}
	return dst
}
