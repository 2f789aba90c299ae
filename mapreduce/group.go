package mapreduce

import (
	"bytes"
	"errors"
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

var errRangeEnded = errors.New("the values of a group were ranged over again after their end: they can be read once")

// values is the sequence of a group's values that the author ranges over. One
// serves all groups, so that a group costs no allocation.
type values struct {
	t     *Task
	g     *groups
	ended bool // a range has seen the end
}

// begin lets the values of a new group be read.
func (v *values) begin() { v.ended = false }

// each calls take for the remaining records, until it returns false.
func (v *values) each(take func() bool) {
	if v.ended {
		v.t.fail(errRangeEnded)
		return
	}
	for v.g.next() {
		if !take() {
			return
		}
	}
	v.ended = true
}

// valuesOf decodes the values of a group.
func valuesOf[V any](v *values, c *codec[V]) iter.Seq[V] {
	d := &decoder{keep: true}
	return func(yield func(V) bool) {
		v.each(func() bool {
			val, err := read(c, d, v.g.in.Value())
			if err != nil {
				v.t.fail(err)
				return false
			}
			return yield(val)
		})
	}
}
