package mapreduce

import (
	"bytes"
	"iter"

	mrruntime "github.com/quernmr/quern/runtime"
)

// groups walks through sorted records group by group. A group is the records
// whose keys are equal, or have the same prefix.
type groups struct {
	in     mrruntime.Records
	prefix func(key []byte) (int, error) // nil: the whole key makes the group

	key     []byte // of the current group, a copy
	started bool
	waiting bool // in stands at a record that has not been taken
	inside  bool // the current group may have more records
	n       int64
	err     error
}

// nextGroup goes to the next group, past what is left of the current one.
func (g *groups) nextGroup() bool {
	for g.next() {
	}
	if !g.started {
		g.started = true
		g.waiting = g.in.Next()
	}
	if !g.waiting || g.err != nil {
		return false
	}
	key := g.in.Key()
	if g.prefix != nil {
		size, err := g.prefix(key)
		if err != nil {
			g.err = err
			return false
		}
		key = key[:size]
	}
	g.key = append(g.key[:0], key...)
	g.inside = true
	g.n++
	return true
}

// next takes the next record of the group.
func (g *groups) next() bool {
	switch {
	case !g.inside:
		return false
	case g.waiting:
		g.waiting = false
		return true
	case !g.in.Next():
		g.inside = false
		return false
	case !g.same(g.in.Key()):
		g.inside, g.waiting = false, true
		return false
	}
	return true
}

func (g *groups) same(key []byte) bool {
	if g.prefix == nil {
		return bytes.Equal(key, g.key)
	}
	return bytes.HasPrefix(key, g.key) // nested forms tell their end: none is a prefix of another
}

// rest is the current record's key behind the group's prefix.
func (g *groups) rest() []byte { return g.in.Key()[len(g.key):] }

// readErr is why the records ended.
func (g *groups) readErr() error {
	if err := g.in.Err(); err != nil {
		return err
	}
	return g.err
}

var (
	errRangeEnded = misuse("the values of a group were ranged over again after their end: they can be read once")
	errRangeLate  = misuse("the values of a group were ranged over after the group: they can be read until the next group begins or the function returns")
)

// values is what the author ranges over: the values of one group after the other.
type values struct {
	t     *Task
	g     *groups
	of    int64 // the group whose values can be read; 0: none
	ended bool  // a range has seen the end
}

// begin lets the values of a new group be read, and no other's.
func (v *values) begin() (group int64) {
	v.of, v.ended = v.g.n, false
	return v.of
}

// end lets no values be read until the next group.
func (v *values) end() { v.of = 0 }

// current says whether the values of a group can be read.
func (v *values) current(group int64) bool {
	if v.of != group {
		v.t.misused(errRangeLate)
	}
	return v.of == group
}

// each calls take for the remaining records of a group, until it returns false.
func (v *values) each(group int64, take func() bool) {
	if !v.current(group) {
		return
	}
	if v.ended {
		v.t.fail(errRangeEnded)
		return
	}
	for v.g.next() {
		if !take() {
			return
		}
		if !v.current(group) { // the author's loop has gone on to another group
			return
		}
	}
	v.ended = true
}

// valuesOf makes the sequence of a group's values. Each group has a sequence of its
// own, so that one that was kept is known.
func valuesOf[V any](v *values, c *codec[V]) func() iter.Seq[V] {
	d := &decoder{keep: true}
	each := func(group int64, yield func(V) bool) {
		v.each(group, func() bool {
			val, err := read(c, d, v.g.in.Value())
			if err != nil {
				v.t.fail(err)
				return false
			}
			return yield(val)
		})
	}
	return func() iter.Seq[V] {
		group := v.begin()
		return func(yield func(V) bool) { each(group, yield) }
	}
}
