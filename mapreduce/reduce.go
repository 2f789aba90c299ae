package mapreduce

import (
	"errors"
	"iter"
	"reflect"

	mrruntime "github.com/quernmr/quern/runtime"
	"github.com/quernmr/quern/wire"
)

// Result is what a job writes. [Result.Job] makes a job of it, and [From] an
// input of another job.
type Result[K, V any] struct {
	stage *stage
	key   *Codec[K]
	value *Codec[V]
}

// Codecs gives encodings and texts for types of others; nil keeps the derived one.
func (r *Result[K, V]) Codecs(k *Codec[K], v *Codec[V]) *Result[K, V] {
	r.key, r.value = k, v
	return r
}

// stage is a job's code and description, whatever its types.
type stage struct {
	inputs func() []*inputSpec
	check  func(Format) error // everything that is wrong with types and use

	pairTypes, resultTypes func() (key, value string)

	combine, total bool
	maps           func(*jobSpec) []mapFunc
	texts          func() []func(key, value []byte) string                    // of what each of the maps emits; nil: map-only
	combiner       func(*jobSpec) func(*mrruntime.Task) mrruntime.CombineFunc // makes nil: none
	reduce         func(*jobSpec) mrruntime.ReduceFunc                        // nil: map-only

	// mapOnly makes the stage that mapreduce.job.reduces=0 turns this one into,
	// where there is one.
	mapOnly func() *stage
}

// newResult makes the result of reducing p. Reduce is called for each partition.
func newResult[K, V, KO, VO any](p *Pairs[K, V], s shape[K], reduce func(r *reduction[KO, VO]) error) *Result[KO, VO] {
	r := &Result[KO, VO]{}
	r.stage = &stage{
		inputs:    p.inputs,
		check:     func(f Format) error { return errors.Join(p.check(), r.check(f)) },
		pairTypes: func() (string, string) { return typeName(p.key), typeName(p.value) },
		combine:   p.combines(),
		total:     p.total,
		maps:      func(job *jobSpec) []mapFunc { return p.mapFuncs(job, s) },
		texts:     func() []func(key, value []byte) string { return p.texts(s) },
		combiner: func(job *jobSpec) func(*mrruntime.Task) mrruntime.CombineFunc {
			return p.combiner(job, s.key)
		},
		mapOnly: func() *stage { return mapOnly(p).stage },
	}
	r.finish(s.prefix, reduce)
	return r
}

// finish adds what does not depend on the types of the pairs.
func (r *Result[KO, VO]) finish(prefix func() func([]byte) (int, error), reduce func(r *reduction[KO, VO]) error) {
	r.stage.resultTypes = func() (string, string) { return typeName(r.key), typeName(r.value) }
	r.stage.reduce = func(job *jobSpec) mrruntime.ReduceFunc {
		return func(rt *mrruntime.Task, in mrruntime.Records) (err error) {
			x := &reduction[KO, VO]{t: newTask(rt, job), g: &groups{in: in}, key: must(r.key), value: must(r.value)}
			defer x.t.blame(&err)
			if prefix != nil {
				x.g.prefix = prefix()
			}
			if x.emit, err = newWriter(x.t, "", x.key, x.value); err != nil {
				return err
			}
			err = x.t.end(x.g.readErr, reduce(x))
			x.t.Counter(wire.TaskCounters, wire.ReduceInputGroups).Add(x.g.n)
			return err
		}
	}
}

func (r *Result[K, V]) check(f Format) error {
	var errs []error
	if _, err := resolve(r.key); err != nil {
		errs = append(errs, err)
	}
	if _, err := resolve(r.value); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(append(errs, checkFormat(f, r.key, r.value))...)
}

// reduction is one partition on its way through a reduce.
type reduction[KO, VO any] struct {
	t     *Task
	g     *groups
	key   *codec[KO]
	value *codec[VO]
	emit  func(KO, VO)
}

// each calls f for every group, with which the group's values end.
func (x *reduction[KO, VO]) each(vals *values, f func() error) error {
	for x.t.err == nil && x.g.nextGroup() {
		x.t.open = true
		err := f()
		x.t.open = false
		vals.end()
		if err != nil {
			return err
		}
	}
	return nil
}

// Reduce calls f for every key with its values, in the order of keys. The values
// are streamed: they are read once, and a range that was left goes on where it
// stopped. No order is promised among them; see [ReduceSorted].
func Reduce[K, V, KO, VO any](p *Pairs[K, V], f func(t *Task, key K, vals iter.Seq[V], emit func(KO, VO)) error) *Result[KO, VO] {
	p = given(p, f == nil, "Reduce")
	return newResult(p, p.plainShape(), func(x *reduction[KO, VO]) error {
		key, kd := must(p.key), &decoder{keep: true}
		v := &values{t: x.t, g: x.g}
		vals := valuesOf(v, must(p.value))
		return x.each(v, func() error {
			k, err := read(key, kd, x.g.key)
			if err != nil {
				return err
			}
			return f(x.t, k, vals(), x.emit)
		})
	})
}

// ReduceAll calls f once for every partition: for state across keys, and for
// setup and cleanup. The values of a key end when the next key is asked for.
func ReduceAll[K, V, KO, VO any](p *Pairs[K, V], f func(t *Task, groups iter.Seq2[K, iter.Seq[V]], emit func(KO, VO)) error) *Result[KO, VO] {
	p = given(p, f == nil, "ReduceAll")
	return newResult(p, p.plainShape(), func(x *reduction[KO, VO]) error {
		key, kd := must(p.key), &decoder{keep: true}
		v := &values{t: x.t, g: x.g}
		vals := valuesOf(v, must(p.value))
		ended := false
		all := func(yield func(K, iter.Seq[V]) bool) {
			if ended {
				x.t.fail(errGroupsEnded)
				return
			}
			for x.t.err == nil && x.g.nextGroup() {
				k, err := read(key, kd, x.g.key)
				if err != nil {
					x.t.fail(err)
					return
				}
				if !yield(k, vals()) {
					return
				}
				v.end()
			}
			ended = true
		}
		defer v.end()
		return x.t.call(func() error { return f(x.t, all, x.emit) })
	})
}

var errGroupsEnded = misuse("the groups of a partition were ranged over again after their end: they can be read once")

// ReduceSorted is [Reduce] with the values of each group in order: keys are pairs
// whose first part makes the partition and the group, and whose second part sorts
// within it.
func ReduceSorted[G, S, V, KO, VO any](p *Pairs[Pair[G, S], V], f func(t *Task, group G, vals iter.Seq2[S, V], emit func(KO, VO)) error) *Result[KO, VO] {
	p = given(p, f == nil, "ReduceSorted")
	if p.key != nil {
		p = p.wrong("ReduceSorted needs the key's own encoding, but Codecs gives it another")
	}
	return newResult(p, sortedShape[G, S](), func(x *reduction[KO, VO]) error {
		group, gd := must[G](nil), &decoder{keep: true}
		second, sd := must[S](nil), &decoder{keep: true}
		value, vd := must(p.value), &decoder{keep: true}
		v := &values{t: x.t, g: x.g}
		each := func(n int64, yield func(S, V) bool) {
			v.each(n, func() bool {
				s, err := read(second, sd, x.g.rest())
				if err != nil {
					x.t.fail(err)
					return false
				}
				val, err := read(value, vd, x.g.in.Value())
				if err != nil {
					x.t.fail(err)
					return false
				}
				return yield(s, val)
			})
		}
		return x.each(v, func() error {
			g, _, err := readNested(group, gd, x.g.key)
			if err != nil {
				return err
			}
			n := v.begin()
			return f(x.t, g, func(yield func(S, V) bool) { each(n, yield) }, x.emit)
		})
	})
}

// sortedShape has pairs as keys, and their first part as group.
func sortedShape[G, S any]() shape[Pair[G, S]] {
	return shape[Pair[G, S]]{
		key: func() *codec[Pair[G, S]] {
			c, group := must[Pair[G, S]](nil), must[G](nil)
			c.hash = func(v Pair[G, S]) int32 { return group.hash(v.A) }
			return c
		},
		prefix: func() func([]byte) (int, error) {
			group, d := must[G](nil), &decoder{}
			return func(key []byte) (int, error) {
				_, rest, err := readNested(group, d, key)
				return len(key) - len(rest), err
			}
		},
	}
}

// Fold reduces the values of each key to one by f, in the maps as [Pairs.Combine]
// does and then in the reduces.
func Fold[K, V any](p *Pairs[K, V], f func(a, b V) V) *Result[K, V] {
	p = given(p, f == nil, "Fold")
	if p.combines() {
		p = p.wrong("Fold combines by itself, but the pairs have a combiner already")
	}
	folded := *p
	folded.fold = f
	p = &folded
	r := newResult(p, p.plainShape(), func(x *reduction[K, V]) error {
		key, value := must(p.key), must(p.value)
		kd, vd := &decoder{}, &decoder{}
		return foldGroups(x.t, x.g, folding(value, f), func(kb, vb []byte) error {
			k, err := read(key, kd, kb)
			if err != nil {
				return err
			}
			v, err := read(value, vd, vb)
			if err != nil {
				return err
			}
			x.t.open = true
			x.emit(k, v)
			x.t.open = false
			return x.t.err
		})
	})
	return r.Codecs(p.key, p.value)
}

// Sort writes the pairs as they are, sorted by key: each partition by itself, or
// all of them one after the other with [Pairs.TotalOrder].
func Sort[K, V any](p *Pairs[K, V]) *Result[K, V] {
	p = given(p, false, "Sort")
	r := newResult(p, p.plainShape(), func(x *reduction[K, V]) error {
		key, value := must(p.key), must(p.value)
		kd, vd := &decoder{}, &decoder{}
		return x.each(&values{}, func() error {
			k, err := read(key, kd, x.g.key)
			for err == nil && x.g.next() {
				var v V
				if v, err = read(value, vd, x.g.in.Value()); err == nil {
					x.emit(k, v)
				}
			}
			return err
		})
	})
	return r.Codecs(p.key, p.value)
}

// MapOnly writes the pairs as the maps emit them: no partitions, no sorting, no
// reduces.
func MapOnly[K, V any](p *Pairs[K, V]) *Result[K, V] {
	p = given(p, false, "MapOnly")
	if p.combines() || p.partition != nil || p.total {
		p = p.wrong("MapOnly has no reduces, so Combine, Partition and TotalOrder mean nothing to it")
	}
	return mapOnly(p)
}

func mapOnly[K, V any](p *Pairs[K, V]) *Result[K, V] {
	r := &Result[K, V]{key: p.key, value: p.value}
	types := func() (string, string) { return typeName(r.key), typeName(r.value) }
	r.stage = &stage{
		inputs:      p.inputs,
		check:       func(f Format) error { return errors.Join(p.check(), r.check(f)) },
		pairTypes:   types,
		resultTypes: types,
		maps: func(job *jobSpec) []mapFunc {
			q := *p
			q.key, q.value = r.key, r.value
			return q.mapOnlyFuncs(job)
		},
	}
	return r
}

// given makes sure that there are pairs and a function.
func given[K, V any](p *Pairs[K, V], missing bool, what string) *Pairs[K, V] {
	if p == nil {
		p = (&Pairs[K, V]{}).wrong(what + " was given no pairs")
	}
	if missing {
		p = p.wrong(what + " has no function")
	}
	return p
}

// wrong is a copy of p with an error, so that other users of p are not blamed.
func (p *Pairs[K, V]) wrong(text string) *Pairs[K, V] {
	q := *p
	q.errs = append(q.errs[:len(q.errs):len(q.errs)], errors.New(reflect.TypeFor[Pair[K, V]]().String()+": "+text))
	return &q
}
