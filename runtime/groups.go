package runtime

import (
	"fmt"

	"github.com/quernmr/quern/shuffle"
	"github.com/quernmr/quern/wire"
)

// Groups measures the groups of a reduce's input, to find the hot ones. The job's code says which records make a
// group. A record and a group cost a few additions; only a hot group costs more.
type Groups struct {
	records, bytes int64 // before the current record
	size           int64 // of the current record; 0: there is none
	first, start   int64 // records and bytes before the current group
	of             int64 // bytes of the partition
	largest        shuffle.Largest
	current        func() []byte // as in Describe; nil: not described
	text           func(key []byte) (string, error)
	where          func() string // as in Locate; nil: not known
}

// NewGroups returns a Groups of a partition with some bytes.
func NewGroups(of int64) *Groups {
	return &Groups{of: of, largest: shuffle.NewLargest(wire.MaxHotGroups, wire.MinHotBytes)}
}

// Next notes the size of the next record; 0: there is none.
func (x *Groups) Next(size int) {
	if x.size > 0 {
		x.records++
		x.bytes += x.size
	}
	x.size = int64(size)
}

// repeat notes n more records that equal the current one.
func (x *Groups) repeat(n int64) {
	x.records += n
	x.bytes += n * x.size
}

// Describe sets functions that return the key of the current group, nil if there is none, and that print the
// key of a group.
func (x *Groups) Describe(current func() []byte, text func(key []byte) (string, error)) {
	x.current, x.text = current, text
}

// Locate sets a function that names the group that the job's code is in, for the message of a panic.
func (x *Groups) Locate(where func() string) { x.where = where }

// Where returns that name, "" if it is not known.
func (x *Groups) Where() string {
	if x.where == nil {
		return ""
	}
	return x.where()
}

// End says that the group of a key has ended before the current record, or at the end.
func (x *Groups) End(key []byte) {
	if n := x.bytes - x.start; x.largest.Keeps(n) {
		x.largest.Add(key, x.records-x.first, n)
	}
	x.first, x.start = x.records, x.bytes
}

// Hot returns the hot groups so far, with the part of the current one that was read; nil: there are none. It
// returns last, an earlier answer, if nothing has changed since.
func (x *Groups) Hot(last *wire.Hot) *wire.Hot {
	if x.current == nil {
		return nil
	}
	hot := &wire.Hot{Read: x.bytes + x.size}
	hot.Of = max(x.of, hot.Read)
	add := func(key []byte, cut bool, records, bytes int64) {
		if wire.IsHot(bytes, hot.Of) {
			hot.Groups = append(hot.Groups, x.group(key, cut, records, bytes))
		}
	}
	key, left := x.current(), shuffle.Group{Records: x.records - x.first, Bytes: hot.Read - x.start}
	if x.size > 0 {
		left.Records++
	}
	for _, g := range x.largest.Groups() {
		if key != nil && left.Bytes > g.Bytes {
			add(key, false, left.Records, left.Bytes)
			key = nil
		}
		add(g.Key, g.Cut, g.Records, g.Bytes)
	}
	if key != nil {
		add(key, false, left.Records, left.Bytes)
	}
	return hot.Bound().After(last)
}

// group describes a hot group. Its key is raw bytes if it cannot be printed: the job's code may panic.
func (x *Groups) group(key []byte, cut bool, records, bytes int64) wire.HotGroup {
	g := wire.HotGroup{Records: records, Bytes: bytes}
	text, err := "", error(nil)
	if !cut {
		func() {
			defer func() {
				if r := recover(); r != nil {
					err = fmt.Errorf("%v", r)
				}
			}()
			text, err = x.text(key)
		}()
	}
	if g.Key = text; cut || err != nil {
		g.Key, g.Raw = string(key[:min(len(key), wire.MaxHotKey)]), true
	}
	return g
}
