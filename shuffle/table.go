package shuffle

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"
)

// Table numbers distinct keys in order of insertion, from 0. Callers keep their data about a
// key in a slice, by its number. A Table is a hash table with open addressing, with bounded
// memory outside the Go heap. Its hash has no seed: equal insertions give equal tables.
//
// The front of the memory has the keys, each after its length. The back has their offsets.
// Slots have other memory, which doubles as the table grows. Keys, offsets and slots together
// stay within the bound.
type Table struct {
	arena   arena
	mem     []byte
	offsets []uint32 // the same memory; key i begins at offsets[len(offsets)-1-i]
	used    int      // bytes of mem that hold keys
	n       int      // keys

	slotMem arena
	slots   []tableSlot // their number is a power of two
	limit   int         // number of keys at which the slots must double
}

// tableSlot has a key's prefix, which is the whole key if it is short.
type tableSlot struct {
	prefix uint64
	number uint32 // 1 + the key's number; 0: free
	tag    uint32 // of the hash and the length, see tableTag
}

const (
	slotSize   = 16
	firstSlots = 1 << 10
)

// NewTable makes a table of at most memory bytes outside the Go heap: call Close.
func NewTable(memory int64) (*Table, error) {
	keys, err := newArena(max(memory, 0) &^ 3)
	if err != nil {
		return nil, fmt.Errorf("new table: %w", err)
	}
	t := &Table{arena: keys, mem: keys.mem, offsets: viewAs[uint32](keys.mem)}
	slots := 4
	for slots < firstSlots && 4*slotSize*slots < len(t.mem) {
		slots *= 2
	}
	if err := t.resize(slots); err != nil {
		t.arena.free()
		return nil, err
	}
	return t, nil
}

// Close frees the memory.
func (t *Table) Close() {
	t.arena.free()
	t.slotMem.free()
	t.slots = nil
}

// Len returns the number of keys.
func (t *Table) Len() int { return t.n }

// Reset removes all keys and keeps the memory.
func (t *Table) Reset() {
	clear(t.slots)
	t.used, t.n = 0, 0
}

// Insert returns the key's number, and adds the key if it is new. If a new key does not fit,
// full is set and nothing changes. A large key may not even fit into an empty table.
func (t *Table) Insert(key []byte) (number int, added, full bool) {
	prefix := prefixOf(key)
	hash := hashOf(prefix, key)
	tag := tableTag(hash, len(key))
	mask := uint64(len(t.slots) - 1)
	for i := hash & mask; ; i = (i + 1) & mask {
		s := &t.slots[i]
		if s.number == 0 {
			return t.insert(i, tableSlot{prefix: prefix, tag: tag}, key)
		}
		if s.prefix == prefix && s.tag == tag && (len(key) <= shortKey || bytes.Equal(t.Key(int(s.number-1)), key)) {
			return int(s.number - 1), false, false
		}
	}
}

// insert puts a new key into the free slot i.
func (t *Table) insert(i uint64, s tableSlot, key []byte) (number int, added, full bool) {
	end := t.used + uvarintLen(len(key)) + len(key)
	if end > 4*(len(t.offsets)-t.n-1) || end+4*(t.n+1)+slotSize*len(t.slots) > len(t.mem) {
		return 0, false, true
	}
	if t.n == t.limit {
		if !t.grow(end) {
			return 0, false, true
		}
		return t.Insert(key)
	}
	t.offsets[len(t.offsets)-1-t.n] = uint32(t.used)
	n := binary.PutUvarint(t.mem[t.used:], uint64(len(key)))
	copy(t.mem[t.used+n:], key)
	t.used = end
	t.n++
	s.number = uint32(t.n)
	t.slots[i] = s
	return t.n - 1, true, false
}

// Key returns the key with a number, valid until Reset or Close.
func (t *Table) Key(number int) []byte {
	if uint(number) >= uint(t.n) {
		panic(fmt.Sprintf("shuffle: key %d of a table of %d", number, t.n))
	}
	b := t.mem[t.offsets[len(t.offsets)-1-number]:]
	length, n := uint64(b[0]), 1
	if length >= 0x80 {
		length, n = binary.Uvarint(b)
	}
	end := n + int(length)
	return b[n:end:end]
}

// grow doubles the slots, if they fit beside keys that end at end.
func (t *Table) grow(end int) bool {
	slots := 2 * len(t.slots)
	if end+4*(t.n+1)+slotSize*slots > len(t.mem) || t.resize(slots) != nil {
		return false
	}
	mask := uint64(slots - 1)
	for number := range t.n {
		key := t.Key(number)
		prefix := prefixOf(key)
		hash := hashOf(prefix, key)
		i := hash & mask
		for t.slots[i].number != 0 {
			i = (i + 1) & mask
		}
		t.slots[i] = tableSlot{prefix, uint32(number + 1), tableTag(hash, len(key))}
	}
	return true
}

// resize makes n empty slots and frees the old slots. New slots take physical memory only
// when they are used.
func (t *Table) resize(n int) error {
	mem, err := newArena(int64(n) * slotSize)
	if err != nil {
		return fmt.Errorf("slots of a table: %w", err)
	}
	t.slotMem.free()
	t.slotMem, t.slots = mem, viewAs[tableSlot](mem.mem)
	t.limit = n / 4 * 3
	return nil
}

// tableTag distinguishes keys with equal prefixes: short keys by length, others mostly by hash.
func tableTag(hash uint64, keyLength int) uint32 {
	return uint32(hash>>32)&^15 | uint32(min(keyLength, shortKey+1))
}

// Odd numbers with random bits, for multiplications that mix.
const (
	mixA = 0x9e3779b97f4a7c15
	mixB = 0xd6e8feb86659fd93
)

// hashOf hashes a key, given its prefix.
func hashOf(prefix uint64, key []byte) uint64 {
	hash := mix(prefix^mixA, uint64(len(key))^mixB)
	for len(key) > 8 {
		key = key[8:]
		hash = mix(hash^prefixOf(key), mixB)
	}
	return hash
}

// mix multiplies to 128 bits and folds them.
func mix(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	return high ^ low
}
