package mapreduce

import (
	"errors"
	"iter"
	"reflect"
)

// Result is what a job writes. [Result.Job] makes a job of it, and [From] an
// input of another job.
type Result[K, V any] struct {
	stage stage
	key   *Codec[K]
	value *Codec[V]
}

// Codecs gives encodings and texts for types of others; nil keeps the derived one.
func (r *Result[K, V]) Codecs(k *Codec[K], v *Codec[V]) *Result[K, V] {
	r.key, r.value = k, v
	return r
}

func (r *Result[K, V]) types() (key, value string) { return typeName(r.key), typeName(r.value) }

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
	return newResult(p.plain(), nil, func(x *reduction[KO, VO]) error {
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
	return newResult(p.plain(), nil, func(x *reduction[KO, VO]) error {
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
	s := sortedShape[G, S]()
	return newResult(shaped[Pair[G, S], V]{p, s}, s.prefix, func(x *reduction[KO, VO]) error {
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
	r := newResult(p.plain(), nil, func(x *reduction[K, V]) error {
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
	r := newResult(p.plain(), nil, func(x *reduction[K, V]) error {
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
	return p.mapOnly()
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
