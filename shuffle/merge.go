package shuffle

import (
	"bytes"
	"cmp"
	"io"
	"math"
	"math/bits"
	"slices"
)

// source delivers a sorted run in blocks of whole records. It is a blockReader or a
// memoryRun; blockReader describes the methods.
type source interface {
	next() (payload []byte, whole bool, err error)
	load(buf []byte) ([]byte, error)
	part(buf []byte, at, n int) ([]byte, error)
}

var (
	_ source  = (*blockReader)(nil)
	_ source  = (*memoryRun)(nil)
	_ Records = (*merge)(nil)
)

// merge is [Records] over several sorted runs, by a loser tree: each step costs one
// comparison per level, mostly of cached prefixes. Equal keys come in the order of the
// sources.
type merge struct {
	cursors []cursor
	heads   []uint64 // prefix of each cursor's key; math.MaxUint64 at the end
	losers  []int32  // node n has children 2n and 2n+1; node k+i is cursor i
	winner  int32
	started bool
	err     error

	record, key, value []byte
	repeats            int       // the next records equal the current one
	big                []byte    // the current record, if it is large
	parts              [2][]byte // of two large keys during a comparison
}

// cursor is a position in a source.
type cursor struct {
	src     source
	rest    []byte // the block after the record
	record  []byte // encoded; only its beginning if partial
	key     []byte // the key, or the part that is in record
	start   int    // of the key in record
	length  int    // of the whole key
	ended   bool
	partial bool // the record is large and must be loaded
}

// newMerge starts a merge and moves every source to its first record.
func newMerge(sources []source) *merge {
	m := &merge{}
	m.reset(sources)
	return m
}

// reset starts another merge with the memory of the last one.
func (m *merge) reset(sources []source) {
	n := len(sources)
	m.cursors = slices.Grow(m.cursors[:0], n)[:n]
	clear(m.cursors)
	m.heads = slices.Grow(m.heads[:0], n)[:n]
	m.losers = slices.Grow(m.losers[:0], max(n, 1))[:max(n, 1)]
	m.winner, m.started, m.err, m.repeats = 0, false, nil, 0
	for i, s := range sources {
		m.cursors[i].src = s
		if m.err = m.advance(int32(i)); m.err != nil {
			return
		}
	}
	if n > 0 {
		m.winner = m.play(1) // play may set m.err
	}
}

// empty reports whether there are no records. Call it before Next.
func (m *merge) empty() bool { return len(m.cursors) == 0 || m.cursors[m.winner].ended }

// play fills the tree below node n and returns its winner.
func (m *merge) play(n int) int32 {
	if n >= len(m.cursors) {
		return int32(n - len(m.cursors))
	}
	a, b := m.play(2*n), m.play(2*n+1)
	if m.less(b, a) {
		a, b = b, a
	}
	m.losers[n] = b
	return a
}

func (m *merge) less(a, b int32) bool {
	if m.heads[a] != m.heads[b] {
		return m.heads[a] < m.heads[b]
	}
	return m.lessTied(a, b)
}

func (m *merge) lessTied(a, b int32) bool {
	x, y := &m.cursors[a], &m.cursors[b]
	if x.ended || y.ended {
		return !x.ended
	}
	var c int
	if x.partial || y.partial {
		c = m.compareLarge(x, y)
	} else {
		c = bytes.Compare(x.key, y.key)
	}
	return c < 0 || c == 0 && a < b
}

// compareLarge compares two keys that may be only partly read. It sets m.err if the rest
// cannot be read.
func (m *merge) compareLarge(x, y *cursor) int {
	at, end := 0, min(x.length, y.length)
	for n := min(len(x.key), len(y.key)); at < end; n = min(end-at, blockTarget) {
		a, err := x.keyPart(&m.parts[0], at, n)
		b, errB := y.keyPart(&m.parts[1], at, n)
		if err := cmp.Or(err, errB); err != nil {
			m.err = cmp.Or(m.err, err)
			return 0
		}
		if c := bytes.Compare(a, b); c != 0 {
			return c
		}
		at += n
	}
	return cmp.Compare(x.length, y.length)
}

// keyPart returns n bytes of the key from offset at. If they are not in memory, it reads
// them into buf.
func (c *cursor) keyPart(buf *[]byte, at, n int) (part []byte, err error) {
	if at+n <= len(c.key) {
		return c.key[at : at+n], nil
	}
	part, err = c.src.part(*buf, c.start+at, n)
	if err == nil {
		*buf = part
	}
	return part, err
}

// advance moves a cursor to its next record.
func (m *merge) advance(i int32) error {
	c := &m.cursors[i]
	if len(c.rest) == 0 {
		payload, whole, err := c.src.next()
		if err == io.EOF {
			c.ended = true
			m.heads[i] = math.MaxUint64
			return nil
		}
		if err != nil {
			return err
		}
		c.rest, c.partial = payload, !whole
	}
	start, mid, end, ok := lengths(c.rest)
	c.length = mid - start
	if c.partial {
		end = len(c.rest)
		mid = min(mid, end)
	}
	if !ok || mid > end || end > len(c.rest) {
		return badRecord(c.src)
	}
	c.start, c.record, c.key, c.rest = start, c.rest[:end], c.rest[start:mid], c.rest[end:]
	m.heads[i] = prefixOf(c.key)
	return nil
}

// badRecord reports a block with a correct checksum that does not contain records.
func badRecord(s source) error {
	if r, ok := s.(*blockReader); ok {
		return r.explain(damaged(r.at, "%v", errBadRecord))
	}
	panic(errBadRecord)
}

// Next moves to the next record.
func (m *merge) Next() bool {
	if m.repeats > 0 {
		m.repeats--
		return true
	}
	if m.err != nil || len(m.cursors) == 0 {
		return false
	}
	if m.started {
		if m.err = m.advance(m.winner); m.err != nil {
			return false
		}
		if m.replay(); m.err != nil {
			return false
		}
	}
	m.started = true
	c := &m.cursors[m.winner]
	if c.ended {
		return false
	}
	if c.partial {
		return m.loadWinner(c)
	}
	m.record, m.key, m.value = c.record, c.key, c.record[c.start+len(c.key):]
	if n := len(c.record); len(c.rest) >= n {
		m.repeats = repeated(c.record[:n+len(c.rest)], n) // rest follows the record in memory
		c.rest = c.rest[m.repeats*n:]
	}
	return true
}

// replay finds the next winner after the last one has advanced. Which of two prefixes is less cannot be predicted, so it
// selects without a branch.
func (m *merge) replay() {
	w := m.winner
	head := m.heads[w]
	for n := (int(w) + len(m.cursors)) / 2; n > 0; n /= 2 {
		l := m.losers[n]
		other := m.heads[l]
		if other == head {
			if m.lessTied(l, w) {
				m.losers[n], w = w, l
			}
			continue
		}
		_, less := bits.Sub64(other, head, 0)
		swap := int32(-less) & (l ^ w)
		m.losers[n], w = l^swap, w^swap
		head = min(head, other)
	}
	m.winner = w
}

// loadWinner loads a record that is only partly in memory.
func (m *merge) loadWinner(c *cursor) bool {
	if m.big, m.err = c.src.load(m.big); m.err != nil {
		return false
	}
	if !bytes.HasPrefix(m.big, c.record) {
		m.err = badRecord(c.src)
		return false
	}
	mid := c.start + c.length
	m.record, m.key, m.value = m.big, m.big[c.start:mid], m.big[mid:]
	return true
}

// Key returns the current record's key, valid until the next call of Next.
func (m *merge) Key() []byte { return m.key }

// Value returns the current record's value, valid until the next call of Next.
func (m *merge) Value() []byte { return m.value }

// Repeats skips records that equal the current one, and returns their number. Equal records may still follow.
func (m *merge) Repeats() int {
	n := m.repeats
	m.repeats = 0
	return n
}

// Size returns the bytes of the current record as it is encoded.
func (m *merge) Size() int { return len(m.record) }

// Err returns the reason why Next returned false; nil at the end.
func (m *merge) Err() error { return m.err }

// groups plans one round of merges that reduce n runs to fanIn runs. It returns the sizes
// of groups of neighbors to merge; a group of 1 stays as it is. It merges no more runs than
// necessary. More rounds may follow.
func groups(n, fanIn int) []int {
	var sizes []int
	excess := n - fanIn
	for n > 0 {
		size := 1
		if excess > 0 {
			size = min(n, fanIn, excess+1)
		}
		sizes = append(sizes, size)
		n -= size
		excess -= size - 1
	}
	return sizes
}
