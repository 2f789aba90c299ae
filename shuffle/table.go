package shuffle

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"iter"
	"math/bits"
	"unsafe"
)

// Table folds the values of equal keys, in the order in which they were added. V must have no
// pointers. It is a hash table with open addressing, with bounded memory outside the Go heap.
// Its hash has no seed: equal records give equal tables.
//
// [Table.Add] keeps records in a batch. [Table.Fold] computes the hashes of all of them, then
// touches their slots, and only then looks for the keys: a load that misses the caches takes as
// long as ten loads that do not wait for each other. A slot has the value and a key of up to 16
// bytes, so most keys cost one miss. Longer keys have memory of their own.
//
// The slots double in place as the table grows: slots and long keys together stay within the bound.
// The batch is on the Go heap, at most 128 records or 64 KiB of values,
// and long keys of at most [batchKeys] bytes and one more.
type Table[V any] struct {
	memory  int64
	slotMem arena          // for as many slots as the bound allows
	slots   []tableSlot[V] // the first ones; their number is a power of two
	shift   int            // from a hash to the number of a slot
	n       int            // keys
	limit   int            // number of keys at which the slots must double

	keys arena // long keys
	used int   // bytes of keys, each key after its length in 4 bytes

	batch   []batched[V]
	size    int    // records in the batch
	done    int    // of them are folded
	long    []byte // their long keys
	touched uint32 // keeps the compiler from removing the loads
}

// tableSlot has a key of the words a and b.
type tableSlot[V any] struct {
	a, b   uint64
	kind   uint32 // 0: free; else 1 + the key's length, or longKind
	offset uint32 // of a long key
	value  V
}

// batched is a record of the batch.
type batched[V any] struct {
	a, b, hash     uint64
	length, offset uint32 // of the key; the offset in Table.long
	value          V
}

const (
	inlineKey = 16 // the longest key in a slot
	longKind  = inlineKey + 2

	leastSlots   = 4
	firstSlots   = 1 << 10
	batchRecords = 128
	batchValues  = 64 << 10
	batchKeys    = 64 << 10
)

// NewTable makes a table of at most memory bytes outside the Go heap: call Close. A batch takes
// at most batch records.
func NewTable[V any](memory int64, batch int) (*Table[V], error) {
	keys, err := newArena(max(memory, 0))
	if err != nil {
		return nil, fmt.Errorf("new table: %w", err)
	}
	t := &Table[V]{memory: int64(len(keys.mem)), keys: keys}
	slots, most := leastSlots, leastSlots
	for slots < firstSlots && 4*int64(slots)*t.slotSize() < t.memory {
		slots *= 2
	}
	for 2*int64(most)*t.slotSize() <= t.memory {
		most *= 2
	}
	if t.slotMem, err = newArena(int64(most) * t.slotSize()); err != nil {
		t.keys.free()
		return nil, fmt.Errorf("new table: %w", err)
	}
	t.use(slots)
	var v V
	t.batch = make([]batched[V], min(batch, batchRecords, max(batchValues/max(int(unsafe.Sizeof(v)), 1), 1)))
	return t, nil
}

func (t *Table[V]) slotSize() int64 { return int64(unsafe.Sizeof(tableSlot[V]{})) }

// Close frees the memory.
func (t *Table[V]) Close() {
	t.keys.free()
	t.slotMem.free()
	t.slots = nil
}

// Len returns the number of keys that are folded.
func (t *Table[V]) Len() int { return t.n }

// Reset removes all keys and keeps the memory and the batch.
func (t *Table[V]) Reset() {
	clear(t.slots)
	t.used, t.n = 0, 0
}

// Add adds a copy of a record to the batch. It reports whether the batch is full: fold it before
// the next Add.
func (t *Table[V]) Add(key []byte, v V) (full bool) {
	r := &t.batch[t.size]
	r.length, r.value = uint32(len(key)), v
	if len(key) <= inlineKey {
		r.a, r.b = shortWords(key)
	} else {
		r.a, r.b = longWords(key)
		r.offset = uint32(len(t.long))
		t.long = append(t.long, key...)
	}
	t.size++
	return t.size == len(t.batch) || len(t.long) >= batchKeys
}

// Fold empties the batch into the table: f(a, b) combines the value of a key with its next one.
// It returns false if a new key does not fit into the table. The batch then begins with its
// record: take it by [Table.First] and [Table.Drop], or reset the table and fold again. If f panics, the batch
// begins with the record with the value b.
func (t *Table[V]) Fold(f func(a, b V) V) bool {
	batch := t.batch[t.done:t.size]
	for i := range batch {
		r := &batch[i]
		r.hash = mix(r.a^mixA, r.b^mixB)
	}
	touched := uint32(0)
	for i := range batch {
		touched += t.slots[batch[i].hash>>t.shift].kind
	}
	t.touched = touched
	for i := range batch {
		r := &batch[i]
		s := t.find(r)
		if s.kind != 0 {
			s.value = f(s.value, r.value)
		} else if !t.insert(s, r) {
			return false
		}
		t.done++
	}
	t.emptyBatch()
	return true
}

func (t *Table[V]) emptyBatch() {
	t.size, t.done, t.long = 0, 0, t.long[:0]
	if cap(t.long) > 4*batchKeys { // after a large key
		t.long = nil
	}
}

// find returns the slot of a record's key, or a free one.
func (t *Table[V]) find(r *batched[V]) *tableSlot[V] {
	mask := uint64(len(t.slots) - 1)
	kind := min(r.length+1, longKind)
	for i := r.hash >> t.shift; ; i++ {
		s := &t.slots[i&mask]
		if s.a == r.a && s.b == r.b && s.kind == kind && (kind < longKind || bytes.Equal(t.longKey(s), t.batchKey(r))) || s.kind == 0 {
			return s
		}
	}
}

// insert puts a new key into the free slot s.
func (t *Table[V]) insert(s *tableSlot[V], r *batched[V]) bool {
	end := t.used
	if r.length > inlineKey {
		end += 4 + int(r.length)
	}
	size := int64(len(t.slots)) * t.slotSize()
	if int64(end)+size > t.memory {
		return false
	}
	if t.n == t.limit {
		if int64(end)+2*size > t.memory {
			return false
		}
		t.grow()
		s = t.find(r)
	}
	*s = tableSlot[V]{a: r.a, b: r.b, kind: min(r.length+1, longKind), offset: uint32(t.used), value: r.value}
	if r.length > inlineKey {
		binary.NativeEndian.PutUint32(t.keys.mem[t.used:], r.length)
		copy(t.keys.mem[t.used+4:], t.batchKey(r))
		t.used = end
	}
	t.n++
	return true
}

// grow doubles the slots. It moves keys from the last one to the first: the place of a key is then usually
// beyond all that have not moved. Other keys wait until the end: those that the hash puts before their old
// place even in twice as many slots, and those that find no place up to the last slot.
func (t *Table[V]) grow() {
	old := len(t.slots)
	t.use(2 * old)
	var waiting []tableSlot[V]
	for k := old - 1; k >= 0; k-- {
		s := t.slots[k]
		if s.kind == 0 {
			continue
		}
		t.slots[k].kind = 0
		i := t.home(&s)
		for i >= k && i < len(t.slots) && t.slots[i].kind != 0 {
			i++
		}
		if i < k || i == len(t.slots) {
			waiting = append(waiting, s)
		} else {
			t.slots[i] = s
		}
	}
	for _, s := range waiting {
		i := t.home(&s)
		for t.slots[i].kind != 0 {
			i = (i + 1) & (len(t.slots) - 1)
		}
		t.slots[i] = s
	}
}

// home returns the first slot that a key may have.
func (t *Table[V]) home(s *tableSlot[V]) int { return int(mix(s.a^mixA, s.b^mixB) >> t.shift) }

// use takes the first n slots, which take physical memory only when they are used.
func (t *Table[V]) use(n int) {
	t.slots = viewAs[tableSlot[V]](t.slotMem.mem)[:n]
	t.shift, t.limit = 64-bits.TrailingZeros(uint(n)), n*13/16
}

// Pending returns the number of records in the batch.
func (t *Table[V]) Pending() int { return t.size - t.done }

// First returns the first record of the batch. The key is valid until the next Add or Fold.
func (t *Table[V]) First() (key []byte, v V) {
	r := &t.batch[t.done]
	if r.length > inlineKey {
		return t.batchKey(r), r.value
	}
	return appendWords(nil, r.a, r.b, int(r.length)), r.value
}

// Drop removes the first record of the batch.
func (t *Table[V]) Drop() {
	if t.done++; t.done == t.size {
		t.emptyBatch()
	}
}

// All returns keys and values of the table, not of the batch, in no particular order: that of
// hashes. A key is valid until the next one.
func (t *Table[V]) All() iter.Seq2[[]byte, V] {
	return func(yield func([]byte, V) bool) {
		var buf [inlineKey]byte
		for i := range t.slots {
			s := &t.slots[i]
			if s.kind == 0 {
				continue
			}
			key := buf[:0]
			if s.kind == longKind {
				key = t.longKey(s)
			} else {
				key = appendWords(key, s.a, s.b, int(s.kind-1))
			}
			if !yield(key, s.value) {
				return
			}
		}
	}
}

func (t *Table[V]) longKey(s *tableSlot[V]) []byte {
	begin := int(s.offset) + 4
	end := begin + int(binary.NativeEndian.Uint32(t.keys.mem[s.offset:]))
	return t.keys.mem[begin:end:end]
}

func (t *Table[V]) batchKey(r *batched[V]) []byte {
	return t.long[r.offset:][:r.length:r.length]
}

// shortWords returns a key of up to 16 bytes as two little-endian words, padded with zeros. Lengths
// of keys are hard to predict, so it has no branches for them: it loads 16 bytes, also beyond the key's
// end, if these are in the same page of memory, and clears the others.
//
//go:norace
//go:nocheckptr
func shortWords(key []byte) (a, b uint64) {
	n := len(key)
	begin := unsafe.SliceData(key)
	if n == 0 || uintptr(unsafe.Pointer(begin))%smallestPage > smallestPage-inlineKey {
		return shortWordsWithin(key)
	}
	loaded := unsafe.Slice(begin, inlineKey)
	a, b = binary.LittleEndian.Uint64(loaded), binary.LittleEndian.Uint64(loaded[8:])
	return a & (1<<(8*n) - 1), b & (1<<(8*max(n-8, 0)) - 1)
}

// smallestPage divides the size of a page of memory on all systems.
const smallestPage = 4096

// shortWordsWithin is shortWords without loads beyond the key's end.
func shortWordsWithin(key []byte) (a, b uint64) {
	n := len(key)
	switch {
	case n > 8: // two loads that overlap
		return binary.LittleEndian.Uint64(key), binary.LittleEndian.Uint64(key[n-8:]) >> (8 * (16 - n))
	case n >= 4:
		return uint64(binary.LittleEndian.Uint32(key)) | uint64(binary.LittleEndian.Uint32(key[n-4:]))<<(8*(n-4)), 0
	case n > 0: // first, middle and last byte, which may coincide
		return uint64(key[0]) | uint64(key[n/2])<<(8*(n/2)) | uint64(key[n-1])<<(8*(n-1)), 0
	}
	return 0, 0
}

// appendWords appends the key of two words.
func appendWords(dst []byte, a, b uint64, length int) []byte {
	n := len(dst)
	dst = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(dst, a), b)
	return dst[:n+length]
}

// longWords returns the first word of a longer key, and a hash of all.
func longWords(key []byte) (a, b uint64) {
	a, b = binary.LittleEndian.Uint64(key), uint64(len(key))^mixB
	for len(key) > 16 {
		b = mix(b^binary.LittleEndian.Uint64(key), mixA^binary.LittleEndian.Uint64(key[8:]))
		key = key[16:]
	}
	low, high := shortWords(key)
	return a, mix(b^low, mixA^high)
}

// Odd numbers with random bits, for multiplications that mix.
const (
	mixA = 0x9e3779b97f4a7c15
	mixB = 0xd6e8feb86659fd93
)

// mix multiplies to 128 bits and folds them.
func mix(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	return high ^ low
}
