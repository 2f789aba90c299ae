package container

import (
	"bytes"
	"encoding/binary"
	"slices"
)

// MapSorter orders the entries of maps in encoded records by their keys. The maps of a program have no order.
type MapSorter struct {
	schema *schema
	in     decoder
	out    []byte
}

// NewMapSorter returns the sorter of a schema's records; nil if they have no maps.
func NewMapSorter(text string) (*MapSorter, error) {
	s, err := parseSchema([]byte(text))
	if err != nil || !s.hasMap(make(map[*schema]bool)) {
		return nil, err
	}
	return &MapSorter{schema: s}, nil
}

func (s *schema) hasMap(seen map[*schema]bool) bool {
	if s == nil || seen[s] {
		return false
	}
	seen[s] = true
	return s.kind == "map" || s.items.hasMap(seen) ||
		slices.ContainsFunc(s.branches, func(b *schema) bool { return b.hasMap(seen) }) ||
		slices.ContainsFunc(s.fields, func(f field) bool { return f.schema.hasMap(seen) })
}

// Sorted returns an encoded record with its maps in order. It is valid until the next call.
func (m *MapSorter) Sorted(record []byte) ([]byte, error) {
	m.in, m.out = decoder{data: record}, m.out[:0]
	m.value(m.schema)
	return m.out, m.in.err
}

// value copies the next value.
func (m *MapSorter) value(s *schema) {
	if m.in.err != nil {
		return
	}
	switch s.kind {
	case "record":
		for _, f := range s.fields {
			m.value(f.schema)
		}
	case "array":
		m.array(s)
	case "map":
		m.entries(s)
	case "union":
		if n := m.in.long(); n >= 0 && n < int64(len(s.branches)) {
			m.out = binary.AppendVarint(m.out, n)
			m.value(s.branches[n])
		} else {
			m.in.fail(errNumber)
		}
	default:
		before := m.in.data
		m.in.skip(s)
		m.out = append(m.out, before[:len(before)-len(m.in.data)]...)
	}
}

// array copies the elements as one block.
func (m *MapSorter) array(s *schema) {
	begin, n := len(m.out), int64(0)
	m.in.blocks(func() {
		m.value(s.items)
		n++
	})
	m.block(n, slices.Clone(m.out[begin:]), begin)
}

// block writes a block of entries at an offset of the output, and the end of an array or map.
func (m *MapSorter) block(n int64, entries []byte, at int) {
	m.out = m.out[:at]
	if n > 0 {
		m.out = append(binary.AppendVarint(m.out, n), entries...)
	}
	m.out = append(m.out, 0)
}

func (m *MapSorter) entries(s *schema) {
	type entry struct{ key, encoded []byte }
	var all []entry
	begin := len(m.out)
	m.in.blocks(func() {
		key := m.in.bytes()
		m.out = append(binary.AppendVarint(m.out[:begin], int64(len(key))), key...)
		m.value(s.items)
		all = append(all, entry{key, slices.Clone(m.out[begin:])})
	})
	slices.SortStableFunc(all, func(a, b entry) int { return bytes.Compare(a.key, b.key) })
	var joined []byte
	for _, e := range all {
		joined = append(joined, e.encoded...)
	}
	m.block(int64(len(all)), joined, begin)
}

// skip steps over a value without parts.
func (d *decoder) skip(s *schema) {
	switch s.kind {
	case "boolean":
		d.take(1)
	case "float":
		d.take(4)
	case "double":
		d.take(8)
	case "fixed":
		d.take(s.size)
	case "int", "long", "enum":
		d.long()
	case "bytes", "string":
		d.bytes()
	}
}
