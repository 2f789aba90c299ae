package mapreduce

import (
	"errors"
	"fmt"
	"iter"
)

// Result describes a job's output. [Result.Job] makes it a job, and [From] an input of
// another job.
type Result[K, V any] struct {
	stage stage
	key   *Codec[K]
	value *Codec[V]
}

// Codecs sets encodings and texts for types from other packages; nil keeps the derived one.
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

// reduction is the state of an attempt that reduces one partition.
type reduction[KO, VO any] struct {
	t     *Task
	g     *groups
	key   *codec[KO]
	value *codec[VO]
	emit  func(KO, VO)
}

// each calls f for every group. A group's values can be read only during its call.
func (x *reduction[KO, VO]) each(vals *values, f func() error) error {
	for x.t.err == nil && x.g.nextGroup() {
		x.t.open = true
		err := f()
		x.t.open = false
		vals.end()
		if err != nil {
			return x.g.located(err)
		}
	}
	return nil
}

// Reduce calls f for every key with its values, in the order of keys. The values are
// streamed: range over them once; after a break, a second range continues where the
// first stopped. Their order is not defined; see [ReduceSorted].
func Reduce[K, V, KO, VO any](p *Pairs[K, V], f func(t *Task, key K, vals iter.Seq[V], emit func(KO, VO)) error) *Result[KO, VO] {
	p = requirePairs(p, f == nil, "Reduce")
	return newResult(p.wholeKeys(), nil, func(x *reduction[KO, VO]) error {
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

// ReduceAll calls f once for every partition: for state across keys, and for setup and
// cleanup. The values of a key can be read until the loop goes to the next key.
func ReduceAll[K, V, KO, VO any](p *Pairs[K, V], f func(t *Task, groups iter.Seq2[K, iter.Seq[V]], emit func(KO, VO)) error) *Result[KO, VO] {
	p = requirePairs(p, f == nil, "ReduceAll")
	return newResult(p.wholeKeys(), nil, func(x *reduction[KO, VO]) error {
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
					v.fail(err)
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
		return x.g.located(x.t.call(func() error { return f(x.t, all, x.emit) }))
	})
}

var errGroupsEnded = misuse("the groups of a partition were ranged over again after their end: they can be read once")

// ReduceSorted is [Reduce] with sorted values. Keys are pairs: the first part selects
// the partition and the group, the second part sorts the values within the group.
func ReduceSorted[G, S, V, KO, VO any](p *Pairs[Pair[G, S], V], f func(t *Task, group G, vals iter.Seq2[S, V], emit func(KO, VO)) error) *Result[KO, VO] {
	p = requirePairs(p, f == nil, "ReduceSorted")
	var parts pairCodecs[G, S]
	if p.key != nil {
		var ok bool
		if parts, ok = p.key.parts.(pairCodecs[G, S]); !ok {
			p = p.withError("ReduceSorted needs the parts of the key: make its Codec with PairCodec")
		}
	}
	s := sortedShape(parts)
	return newResult(shaped[Pair[G, S], V]{p, s}, s.prefix, func(x *reduction[KO, VO]) error {
		group, gd := must(parts.a), &decoder{keep: true}
		second, sd := must(parts.b), &decoder{keep: true}
		value, vd := must(p.value), &decoder{keep: true}
		v := &values{t: x.t, g: x.g}
		each := func(n int64, yield func(S, V) bool) {
			v.each(n, func() bool {
				s, err := read(second, sd, x.g.rest())
				if err != nil {
					v.fail(fmt.Errorf("second part of the key: %w", err))
					return false
				}
				val, err := read(value, vd, x.g.in.Value())
				if err != nil {
					v.fail(err)
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

// sortedShape partitions and groups pairs by their first part.
func sortedShape[G, S any](parts pairCodecs[G, S]) shape[Pair[G, S]] {
	return shape[Pair[G, S]]{
		key: func() *codec[Pair[G, S]] {
			group := must(parts.a)
			c := pairOf(group, must(parts.b))
			c.hash = func(v Pair[G, S]) int32 { return group.hash(v.A) }
			return c
		},
		prefix: func() func([]byte) (int, error) {
			group, d := must(parts.a), &decoder{}
			return func(key []byte) (int, error) {
				_, rest, err := readNested(group, d, key)
				return len(key) - len(rest), err
			}
		},
		group: func() func([]byte) (string, error) { return nestedText(must(parts.a)) },
	}
}

// Fold reduces the values of each key to one value, by calling f for two at a time. Maps
// apply f too, as with [Pairs.Combine].
func Fold[K, V any](p *Pairs[K, V], f func(a, b V) V) *Result[K, V] {
	p = requirePairs(p, f == nil, "Fold")
	if p.combines() {
		p = p.withError("Fold combines by itself, but the pairs have a combiner already")
	}
	folded := *p
	folded.fold = f
	p = &folded
	r := newResult(p.wholeKeys(), nil, func(x *reduction[K, V]) error {
		key, value := must(p.key), must(p.value)
		kd, vd := &decoder{}, &decoder{}
		return foldGroups(x.t, x.g, folding(value, f), func(kb, vb []byte) error {
			k, err := read(key, kd, kb)
			if err != nil {
				return x.g.located(err)
			}
			v, err := read(value, vd, vb)
			if err != nil {
				return x.g.located(err)
			}
			x.t.open = true
			x.emit(k, v)
			x.t.open = false
			return x.t.err
		})
	})
	return r.Codecs(p.key, p.value)
}

// Sort writes the pairs unchanged, sorted by key within each partition. With
// [Pairs.TotalOrder], the part files together are sorted too. A key with more than a quarter of a mean
// partition may then be in several part files, unless quern.totalorder.divide.keys is false.
func Sort[K, V any](p *Pairs[K, V]) *Result[K, V] {
	p = requirePairs(p, false, "Sort")
	r := newResult(p.wholeKeys(), nil, func(x *reduction[K, V]) error {
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
	r.stage.(*reduced[K, V]).single = true
	return r.Codecs(p.key, p.value)
}

// MapOnly writes the pairs as the maps emit them, without partitions, sorting or
// reduces.
func MapOnly[K, V any](p *Pairs[K, V]) *Result[K, V] {
	p = requirePairs(p, false, "MapOnly")
	if p.combines() || p.partition != nil || p.totalOrder {
		p = p.withError("MapOnly has no reduces, so Combine, Partition and TotalOrder have no effect")
	}
	return p.mapOnly()
}

func requirePairs[K, V any](p *Pairs[K, V], missing bool, function string) *Pairs[K, V] {
	if p == nil {
		p = (&Pairs[K, V]{}).withError(function + " was called without pairs")
	}
	if missing {
		p = p.withError(function + " has no function")
	}
	return p
}

// withError returns a copy of p with an error, which begins with the function that was called. Other users of p do not get it.
func (p *Pairs[K, V]) withError(text string) *Pairs[K, V] {
	q := *p
	q.errs = append(q.errs[:len(q.errs):len(q.errs)], errors.New(text))
	return &q
}
