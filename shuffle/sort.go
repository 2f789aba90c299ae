package shuffle

import (
	"bytes"
	"math/bits"
	"slices"
)

// entry is a record's entry in the collector's index. Most records can be sorted by their
// entries alone. No two entries of an index are equal.
type entry struct {
	prefix uint64 // of the key; during the sort, the next 8 bytes of keys with equal prefixes
	offset uint32 // of the record in the arena; later records have higher offsets
	tag    uint32 // partition << 4 | min(key length, 9)
}

const entrySize = 16

// shortKey is the longest key that fits into its prefix.
const shortKey = 8

func tagOf(partition, keyLength int) uint32 {
	return uint32(partition)<<4 | uint32(min(keyLength, shortKey+1))
}

func (e *entry) partition() int { return int(e.tag >> 4) }

// short reports whether the prefix has the whole key, padded.
func (e *entry) short() bool { return e.tag&15 <= shortKey }

const (
	// insertionMax is the length up to which insertion sort beats a radix pass.
	insertionMax = 24
	// maxRadixDepth is the number of leading key bytes that radix passes sort by. It bounds
	// the recursion. Keys with longer common prefixes are sorted by comparison.
	maxRadixDepth = 128
)

// sorter orders entries by partition, key and arrival, in place: first by partition, then by
// the bits of the prefix, eight at a time, the most significant first. Entries with equal prefixes get the
// next 8 bytes of their keys as prefix.
type sorter struct {
	mem  []byte   // the arena in which the records are
	ends []uint32 // end of each partition among the sorted entries
	next []uint32 // next free position of each partition, while entries move
}

func newSorter(mem []byte, partitions int) *sorter {
	return &sorter{mem: mem, ends: make([]uint32, partitions), next: make([]uint32, partitions)}
}

// sort orders the entries and sets ends.
func (s *sorter) sort(entries []entry) {
	s.byPartition(entries)
	start := uint32(0)
	for _, end := range s.ends {
		s.byPrefix(entries[start:end], 0)
		start = end
	}
}

// byPartition groups the entries by partition.
func (s *sorter) byPartition(entries []entry) {
	if len(s.ends) == 1 {
		s.ends[0] = uint32(len(entries))
		return
	}
	clear(s.ends)
	for i := range entries {
		s.ends[entries[i].partition()]++
	}
	sum := uint32(0)
	for p, n := range s.ends {
		s.next[p] = sum
		sum += n
		s.ends[p] = sum
	}
	for p, end := range s.ends {
		for i := s.next[p]; i < end; i++ {
			e := entries[i]
			for e.partition() != p { // Follow the cycle until an entry belongs here.
				at := &s.next[e.partition()]
				entries[*at], e = e, entries[*at]
				*at++
			}
			entries[i] = e
			s.next[p] = i + 1
		}
	}
}

// byPrefix sorts entries of one partition. Their keys have equal first depth bytes. A pass skips the bits that all prefixes
// share: most of them where many keys are equal.
func (s *sorter) byPrefix(entries []entry, depth int) {
	if len(entries) <= insertionMax {
		s.insertion(entries)
		return
	}
	differ, first := uint64(0), entries[0].prefix
	for i := range entries {
		differ |= entries[i].prefix ^ first
	}
	if differ == 0 {
		s.sortTied(entries, depth)
		return
	}
	shift := max(bits.Len64(differ)-8, 0)
	var ends, next [256]uint32
	for i := range entries {
		ends[byte(entries[i].prefix>>shift)]++
	}
	sum := uint32(0)
	for b, n := range ends {
		next[b] = sum
		sum += n
		ends[b] = sum
	}
	permute(entries, &next, &ends, shift)
	start := uint32(0)
	for _, end := range ends {
		if end-start > 1 {
			s.byPrefix(entries[start:end], depth)
		}
		start = end
	}
}

// permute moves every entry into a bucket, by the eight bits of its prefix at shift. Buckets begin
// at next, which it changes, and end at ends.
func permute(entries []entry, next, ends *[256]uint32, shift int) {
	for b := range ends {
		for i := next[b]; i < ends[b]; i++ {
			e := entries[i]
			for d := byte(e.prefix >> shift); d != byte(b); d = byte(e.prefix >> shift) {
				at := next[d]
				next[d]++
				entries[at], e = e, entries[at]
			}
			entries[i] = e
		}
	}
}

// insertion sorts a few entries.
func (s *sorter) insertion(entries []entry) {
	for i := 1; i < len(entries); i++ {
		e := entries[i]
		j := i
		for ; j > 0; j-- {
			other := &entries[j-1]
			if other.prefix < e.prefix || other.prefix == e.prefix && s.compareTied(other, &e) < 0 {
				break
			}
			entries[j] = *other
		}
		entries[j] = e
	}
}

// compareTied orders two entries with equal prefixes.
func (s *sorter) compareTied(a, b *entry) int {
	// Equal prefixes of short keys may differ in padding, which the tag shows.
	if a.tag != b.tag {
		return int(a.tag) - int(b.tag)
	}
	if !a.short() {
		if c := bytes.Compare(s.key(a), s.key(b)); c != 0 {
			return c
		}
	}
	if a.offset < b.offset {
		return -1
	}
	return 1
}

// sortTied sorts entries with equal prefixes, which are the 8 bytes of the keys after the
// first depth bytes.
func (s *sorter) sortTied(entries []entry, depth int) {
	if len(entries) <= insertionMax {
		s.insertion(entries)
		return
	}
	if depth >= maxRadixDepth {
		slices.SortFunc(entries, func(a, b entry) int { return s.compareTied(&a, &b) })
		return
	}
	// Keys that end within the prefix precede longer keys. Their order is by length, then
	// by arrival. Both fit into a new, unique prefix.
	ended := 0
	for i := range entries {
		e := &entries[i]
		if e.short() {
			e.prefix = uint64(e.tag&15)<<32 | uint64(e.offset)
		} else if key := s.key(e); len(key) > depth+8 {
			e.prefix = prefixOf(key[depth+8:])
			continue
		} else {
			e.prefix = uint64(len(key)-depth)<<32 | uint64(e.offset)
		}
		entries[i], entries[ended] = entries[ended], entries[i]
		ended++
	}
	s.byPrefix(entries[:ended], depth)
	s.byPrefix(entries[ended:], depth+8)
}

// key returns the whole key of an entry.
func (s *sorter) key(e *entry) []byte {
	record := s.mem[e.offset:]
	start, mid, _, _ := lengths(record)
	return record[start:mid]
}
