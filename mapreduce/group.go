package mapreduce

import (
	"bytes"
	"fmt"
	"iter"

	mrruntime "github.com/quernmr/quern/runtime"
	"github.com/quernmr/quern/wire"
)

// groups iterates over sorted records group by group. The keys of a group are equal, or
// have the same prefix.
type groups struct {
	in     mrruntime.Records
	prefix func(key []byte) (int, error) // nil: the whole key makes the group

	key     []byte // of the current group, a copy
	started bool
	pending bool // the current record of in has not been returned
	inGroup bool // the current group may have more records
	within  bool // the code is in the current group, although it may have read all its records
	n       int64
	err     error

	keyText func(key []byte) (string, error) // prints the key of a group
	doing   string                           // with the group, before its key in errors

	meter   *mrruntime.Groups              // nil: groups are not measured
	skipper groupSkipper                   // nil: no group is skipped
	text    func(key, value []byte) string // of a skipped record
	skipped int64                          // groups
}

// groupSkipper is records of a job that skips bad groups.
type groupSkipper interface {
	BeginGroup() (skip bool)
	SkipRecord(text string)
	EndGroups()
}

// measuredRecords is the input of a real reduce.
type measuredRecords interface{ Groups() *mrruntime.Groups }

// measure measures the groups.
func (g *groups) measure() {
	in, ok := g.in.(measuredRecords)
	if !ok {
		return
	}
	g.meter = in.Groups()
	g.meter.Describe(func() []byte {
		if !g.inGroup {
			return nil
		}
		return g.key
	}, g.keyText)
	g.meter.Locate(g.where)
}

// where names the key of the group that the code is in, for errors; "" if there is none.
func (g *groups) where() (key string) {
	if !g.within {
		return ""
	}
	defer func() {
		if recover() != nil { // the job's own text of the key
			key = g.doing + keyBytes(g.key)
		}
	}()
	printed, err := g.keyText(g.key)
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf("%skey %q", g.doing, wire.Truncate(printed, maxKeyText))
}

// keyBytes names a key that cannot be printed.
func keyBytes(key []byte) string {
	return fmt.Sprintf("the key with bytes %q", wire.Truncate(string(key), wire.MaxHotKey))
}

// located adds the key of the group that the code is in to an error.
func (g *groups) located(err error) error {
	if err == nil {
		return nil
	}
	if where := g.where(); where != "" {
		return fmt.Errorf("%s: %w", where, err)
	}
	return err
}

// maxKeyText limits a key in an error, in bytes.
const maxKeyText = 1 << 10

// nextGroup skips the rest of the current group and goes to the next one that is not skipped.
func (g *groups) nextGroup() bool {
	for g.enterNext() {
		if g.skipper == nil || !g.skipper.BeginGroup() {
			return true
		}
		g.skipped++
		for g.next() {
			g.skipper.SkipRecord(g.text(g.in.Key(), g.in.Value()))
		}
	}
	if g.skipper != nil {
		g.skipper.EndGroups()
	}
	return false
}

func (g *groups) enterNext() bool {
	for g.next() {
	}
	g.within = false
	if !g.started {
		g.started = true
		g.pending = g.in.Next()
	} else if g.meter != nil {
		g.meter.End(g.key)
	}
	if !g.pending || g.err != nil {
		return false
	}
	key := g.in.Key()
	if g.prefix != nil {
		size, err := g.prefix(key)
		if err != nil {
			g.err = fmt.Errorf("%s%s: %w", g.doing, keyBytes(key), err)
			return false
		}
		key = key[:size]
	}
	g.key = append(g.key[:0], key...)
	g.inGroup, g.within = true, true
	g.n++
	return true
}

// next goes to the next record of the group.
func (g *groups) next() bool {
	switch {
	case !g.inGroup:
		return false
	case g.pending:
		g.pending = false
		return true
	case !g.in.Next():
		g.inGroup = false
		return false
	case !g.same(g.in.Key()):
		g.inGroup, g.pending = false, true
		return false
	}
	return true
}

func (g *groups) same(key []byte) bool {
	if g.prefix == nil {
		return bytes.Equal(key, g.key)
	}
	return bytes.HasPrefix(key, g.key) // no nested form is a prefix of another
}

// rest returns the current record's key after the group's prefix.
func (g *groups) rest() []byte { return g.in.Key()[len(g.key):] }

// readErr returns the error that ended the records.
func (g *groups) readErr() error {
	if err := g.in.Err(); err != nil {
		return err
	}
	return g.err
}

var (
	errRangeEnded = misuse("the values of a group were ranged over again after their end: they can be read once; keep them in a slice to read them again")
	errRangeLate  = misuse("the values of a group were ranged over after the group: they can be read until the next group begins or the function returns")
)

// values guards the sequences of values that the author ranges over, group by group.
type values struct {
	t     *Task
	g     *groups
	group int64 // its values can be read; 0: none can
	ended bool  // a range has seen the end
}

// begin allows reading the values of the current group, and of no other.
func (v *values) begin() (group int64) {
	v.group, v.ended = v.g.n, false
	return v.group
}

// end forbids reading values until the next group.
func (v *values) end() { v.group = 0 }

// current reports whether the values of a group can be read, and fails the task if not.
func (v *values) current(group int64) bool {
	if v.group != group {
		v.t.misused(errRangeLate)
	}
	return v.group == group
}

// fail fails the task because of a record of the current group.
func (v *values) fail(err error) { v.t.fail(v.g.located(err)) }

// each calls take for the remaining records of a group until take returns false.
func (v *values) each(group int64, take func() bool) {
	if !v.current(group) {
		return
	}
	if v.ended {
		v.fail(errRangeEnded)
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

// valuesOf returns a function that makes the sequence of a group's values. Each group
// has its own sequence, so that a range over an earlier one is detected.
func valuesOf[V any](v *values, c *codec[V]) func() iter.Seq[V] {
	d := &decoder{keep: true}
	each := func(group int64, yield func(V) bool) {
		v.each(group, func() bool {
			val, err := read(c, d, v.g.in.Value())
			if err != nil {
				v.fail(err)
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
