package mapreduce

import (
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
			t, fold, g := newTask(rt, job), folding(must(p.value), p.fold), p.combined()
			return func(rt *mrruntime.Task, in mrruntime.Records, emit func(key, value []byte) error) error {
				g.begin(rt, in)
				return foldGroups(t, g, fold, emit)
			}
		}
	case p.group != nil:
		return func(rt *mrruntime.Task) mrruntime.CombineFunc {
			t := newTask(rt, job)
			t.combines = true
			return p.groupCombiner(t, p.shape.key(), p.combined())
		}
	}
	return nil
}

// combined returns the groups of a combiner.
func (p shaped[K, V]) combined() *groups {
	return &groups{keyText: p.groupText(), doing: "combine the values of "}
}

// begin goes to another run of records.
func (g *groups) begin(rt *mrruntime.Task, in mrruntime.Records) {
	*g = groups{in: in, key: g.key, n: g.n, keyText: g.keyText, doing: g.doing}
	rt.Combining(g.where)
}

func (p *Pairs[K, V]) groupCombiner(t *Task, key *codec[K], g *groups) mrruntime.CombineFunc {
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
	return func(rt *mrruntime.Task, in mrruntime.Records, out func(key, value []byte) error) (err error) {
		defer t.replacePanic(&err)
		g.begin(rt, in)
		emit, t.returned = out, false
		for t.err == nil && g.nextGroup() {
			k, err := read(key, kd, g.key)
			if err != nil {
				return g.located(err)
			}
			t.open = true
			err = p.group(t, k, vals(), put)
			t.open = false
			v.end()
			if err != nil {
				return t.end(g.readErr, g.located(err))
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
		if err != nil {
			err = g.located(err)
		} else if g.in.Err() == nil {
			err = emit(g.key, value)
		}
		if err != nil {
			return t.end(g.readErr, err)
		}
	}
	return t.end(g.readErr, nil)
}
