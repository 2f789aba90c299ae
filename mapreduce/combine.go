package mapreduce

import (
	"fmt"
	"reflect"

	mrruntime "github.com/quernmr/quern/runtime"
)

// combiner returns a function that makes an attempt's combiner, or nil. The combiner
// shrinks sorted map output: foldTable combines only what fits its memory. It may be
// called for several runs of records, one after the other.
func (p shaped[K, V]) combiner(job *jobSpec) func(*mrruntime.Task) mrruntime.CombineFunc {
	switch {
	case p.fold != nil:
		return func(rt *mrruntime.Task) mrruntime.CombineFunc {
			t, fold, g := newTask(rt, job), folding(must(p.value), p.fold), &groups{}
			where := whereCombined(g, p.groupText())
			return func(_ *mrruntime.Task, in mrruntime.Records, emit func(key, value []byte) error) error {
				*g = groups{in: in, key: g.key}
				locate(in, where)
				return foldGroups(t, g, fold, emit)
			}
		}
	case p.group != nil:
		return func(rt *mrruntime.Task) mrruntime.CombineFunc {
			t := newTask(rt, job)
			t.combines = true
			return p.groupCombiner(t, p.shape.key(), p.groupText())
		}
	}
	return nil
}

// whereCombined returns a function that names what a combiner is doing, for errors and panics.
func whereCombined(g *groups, text func(key []byte) (string, error)) func() string {
	return func() string {
		if key := g.where(text); key != "" {
			return "combine the values of " + key
		}
		return ""
	}
}

// locate sets the place of a panic while a combiner reads records.
func locate(in mrruntime.Records, where func() string) {
	if in, ok := in.(interface{ Locate(where func() string) }); ok {
		in.Locate(where)
	}
}

func (p *Pairs[K, V]) groupCombiner(t *Task, key *codec[K], text func(key []byte) (string, error)) mrruntime.CombineFunc {
	g := &groups{}
	where := whereCombined(g, text)
	v := &values{t: t, g: g}
	value, kd := must(p.value), &decoder{keep: true}
	vals := valuesOf(v, value)
	var emit func(key, value []byte) error
	var buf []byte
	put := func(v V) {
		if !t.open {
			t.rejectLate(errLateEmit)
			return
		}
		if err := emit(g.key, value.encode(&buf, v)); err != nil {
			t.fail(err)
		}
	}
	return func(_ *mrruntime.Task, in mrruntime.Records, out func(key, value []byte) error) (err error) {
		defer t.replacePanic(&err)
		*g = groups{in: in, key: g.key, n: g.n}
		emit, t.returned = out, false
		locate(in, where)
		for t.err == nil && g.nextGroup() {
			k, err := read(key, kd, g.key)
			if err != nil {
				return err
			}
			t.open = true
			err = p.group(t, k, vals(), put)
			t.open = false
			v.end()
			if err != nil {
				return t.end(g.readErr, fmt.Errorf("%s: %w", where(), err))
			}
		}
		return t.end(g.readErr, nil)
	}
}

// folding returns a function that folds the values of a group. The group's first record is
// current; the returned encoding is valid until the next group.
//
// The intermediate result stays decoded, so a value that grows is encoded once. Values with
// pointers get memory of their own, because the result may point into them.
func folding[V any](c *codec[V], f func(a, b V) V) func(*groups) ([]byte, error) {
	own := !pointerFree(reflect.TypeFor[V]())
	d := &decoder{keep: own, own: own}
	var first, buf []byte
	return func(g *groups) ([]byte, error) {
		first = append(first[:0], g.in.Value()...)
		if !g.next() {
			return first, nil
		}
		sum, err := read(c, d, first)
		for more := true; more && err == nil; more = g.next() {
			var v V
			if v, err = read(c, d, g.in.Value()); err == nil {
				sum = f(sum, v)
			}
		}
		return c.encode(&buf, sum), err
	}
}

// foldGroups emits one record for every group. A single value passes unchanged.
func foldGroups(t *Task, g *groups, fold func(*groups) ([]byte, error), emit func(key, value []byte) error) error {
	for g.nextGroup() {
		g.next()
		value, err := fold(g)
		if err == nil && g.in.Err() == nil {
			err = emit(g.key, value)
		}
		if err != nil {
			return t.end(g.readErr, err)
		}
	}
	return t.end(g.readErr, nil)
}
