package shuffle

import (
	"bytes"
	"slices"
)

// Largest keeps the groups with most bytes among those that it is told of, exactly. Its memory is bounded: it
// keeps few groups, and the beginnings of their keys. Make one with [NewLargest].
type Largest struct {
	most   int
	least  int64 // a group must have more bytes
	read   int64 // bytes of all records that a merge has read
	groups []Group
}

// Group is the records of a key, or of keys with the same prefix.
type Group struct {
	Key     []byte // at most MaxGroupKey bytes of it
	Cut     bool   // Key is only the beginning
	Records int64
	Bytes   int64 // of the encoded records
}

// MaxGroupKey limits the key of a [Group], in bytes.
const MaxGroupKey = 1 << 10

// NewLargest returns a Largest that keeps at most some groups, each with at least some bytes.
func NewLargest(most int, least int64) Largest { return Largest{most: most, least: max(least, 1) - 1} }

// Keeps reports whether a group with this many bytes would be kept now.
func (x *Largest) Keeps(bytes int64) bool { return bytes > x.least }

// Add adds a group that Keeps has accepted. It copies the key.
func (x *Largest) Add(key []byte, records, bytes int64) {
	g := Group{Cut: len(key) > MaxGroupKey, Records: records, Bytes: bytes}
	if len(x.groups) == x.most { // reuse the memory of the last key
		g.Key = x.groups[x.most-1].Key
		x.groups = x.groups[:x.most-1]
	}
	g.Key = append(g.Key[:0], key[:min(len(key), MaxGroupKey)]...)
	at := len(x.groups)
	for at > 0 && x.groups[at-1].Bytes < bytes {
		at--
	}
	x.groups = slices.Insert(x.groups, at, g)
	if len(x.groups) == x.most {
		x.least = x.groups[x.most-1].Bytes
	}
}

// Groups returns the groups, most bytes first, and of equal ones the first that was added. They are valid until
// the next call of Add.
func (x *Largest) Groups() []Group { return x.groups }

// Read returns the bytes of all records of a [MergeTo].
func (x *Largest) Read() int64 { return x.read }

// grouping finds the groups of a merge that is written. It copies no key, except large ones: the key before is in the
// buffer of the writer.
type grouping struct {
	largest    *Largest
	to         *segmentWriter
	head       uint64 // prefixOf the current key
	key, value int    // sizes of the last record's
	large      []byte // the key of the last record, if that is large
	records    int64
	bytes      int64
}

// add adds the current record of a merge, before it is written.
func (g *grouping) add(m *merge) {
	head, size := m.heads[m.winner], int64(len(m.record))
	if head != g.head || !bytes.Equal(g.last(), m.key) {
		if g.largest.Keeps(g.bytes) {
			g.largest.Add(g.last(), g.records, g.bytes)
		}
		g.largest.read += g.bytes
		g.head, g.records, g.bytes = head, 0, 0
	}
	g.records++
	g.bytes += size
	g.key, g.value = len(m.key), len(m.value)
	if size > blockTarget {
		g.large = append(g.large[:0], m.key...)
	}
}

// last returns the key of the last record.
func (g *grouping) last() []byte {
	if g.to.open < 0 { // it is large, or there is none
		return g.large
	}
	end := len(g.to.buf) - g.value
	return g.to.buf[end-g.key : end]
}

// end ends the last group.
func (g *grouping) end() {
	if g.largest.Keeps(g.bytes) && g.records > 0 {
		g.largest.Add(g.last(), g.records, g.bytes)
	}
	g.largest.read += g.bytes
}
