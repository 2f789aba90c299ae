package mapreduce

import (
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"

	mrruntime "github.com/quernmr/quern/runtime"
)

// Pairs describes map output: keys with values, which are partitioned, sorted and
// grouped by key. Its methods change it and return it, so that calls chain.
type Pairs[K, V any] struct {
	sources []source[K, V]
	key     *Codec[K]
	value   *Codec[V]

	fold       func(a, b V) V
	group      func(t *Task, key K, vals iter.Seq[V], emit func(V)) error
	partition  func(key K, n int) int
	totalOrder bool
	keyFile    KeyFile[K]   // of ranges; nil: none
	broadcasts []*broadcast // small sides that the maps look up
	errs       []error      // misuse, found while the job was built
}

// source is a map function with its input.
type source[K, V any] struct {
	input *inputSpec
	run   func(t *Task, in splitReader, emit func(K, V)) error
}

// Map calls f for every record of an input. Emitted keys and values are copied at
// once. An error from f fails the attempt, and is reported with the record's file and
// offset.
func Map[R, K, V any](in Input[R], f func(t *Task, rec R, emit func(K, V)) error) *Pairs[K, V] {
	return newPairs(in, f == nil, func(t *Task, s splitReader, emit func(K, V)) error {
		for rec := range in.read(t, s) {
			t.open = true
			if err := f(t, rec, emit); err != nil {
				t.open = false
				return errorAt(s, err)
			}
			if !t.open {
				return nil // emit has kept the error
			}
			t.open = false
		}
		return nil
	})
}

// MapSplit calls f once for every split, that is, once in every map. Code before the
// loop over recs is setup, code after it is cleanup. Range over the records once, and
// break only to skip the rest of the split. An error returned from within the loop is
// reported with the record's file and offset.
func MapSplit[R, K, V any](in Input[R], f func(t *Task, recs iter.Seq[R], emit func(K, V)) error) *Pairs[K, V] {
	return newPairs(in, f == nil, func(t *Task, s splitReader, emit func(K, V)) error {
		recs := once(t, in.read(t, s))
		return t.call(func() error { return errorAt(s, f(t, recs, emit)) })
	})
}

// errorAt adds the current record's file and offset to an error of the author's code.
func errorAt(s splitReader, err error) error {
	if where := s.Where(); err != nil && where != "" {
		return fmt.Errorf("%s: %w", where, err)
	}
	return err
}

func newPairs[R, K, V any](in Input[R], missing bool, run func(*Task, splitReader, func(K, V)) error) *Pairs[K, V] {
	p := &Pairs[K, V]{}
	if in.spec == nil {
		p.misuse("the input of a map is the zero Input")
		return p
	}
	if missing {
		p.misuse("a map has no function")
	}
	p.sources = []source[K, V]{{input: in.spec, run: run}}
	return p
}

var errRangeTwice = misuse("the records of a split were ranged over a second time: they can be read once")

func once[R any](t *Task, recs iter.Seq[R]) iter.Seq[R] {
	used := false
	return func(yield func(R) bool) {
		if used {
			t.failHere(errRangeTwice)
			return
		}
		used = true
		recs(yield)
	}
}

// Merge joins the output of several maps, each with its own input. Set Combine,
// Partition, TotalOrder and Codecs on the result.
func Merge[K, V any](ps ...*Pairs[K, V]) *Pairs[K, V] {
	merged := &Pairs[K, V]{}
	for _, p := range ps {
		if p == nil {
			merged.misuse("Merge was called without pairs")
			continue
		}
		if p.combines() || p.partition != nil || p.totalOrder || p.key != nil || p.value != nil {
			merged.misuse("set Combine, Partition, TotalOrder and Codecs on the result of Merge, not on its parts")
		}
		merged.sources = append(merged.sources, p.sources...)
		for _, b := range p.broadcasts {
			if !slices.Contains(merged.broadcasts, b) {
				merged.broadcasts = append(merged.broadcasts, b)
			}
		}
		merged.errs = append(merged.errs, p.errs...)
	}
	if len(ps) == 0 {
		merged.misuse("Merge was called without pairs")
	}
	return merged
}

// Combine lets maps shrink their output: f merges two values of a key into one. It must
// be associative and commutative. It is called any number of times, or never. String and
// []byte arguments are valid until f returns. Values of fixed size without pointers are
// combined in a hash table, before they are encoded.
func (p *Pairs[K, V]) Combine(f func(a, b V) V) *Pairs[K, V] {
	if p.combines() || f == nil {
		p.misuse("Combine: the pairs have a combiner already, or the function is nil")
	}
	p.fold = f
	return p
}

// CombineGroup is [Pairs.Combine] for functions that need several values of a key at
// once: f emits the values that replace vals. It cannot change the key.
func (p *Pairs[K, V]) CombineGroup(f func(t *Task, key K, vals iter.Seq[V], emit func(V)) error) *Pairs[K, V] {
	if p.combines() || f == nil {
		p.misuse("CombineGroup: the pairs have a combiner already, or the function is nil")
	}
	p.group = f
	return p
}

func (p *Pairs[K, V]) combines() bool { return p.fold != nil || p.group != nil }

// Partition replaces the hash of the key: f returns the number of the reduce that gets
// the key, from 0 to n-1.
func (p *Pairs[K, V]) Partition(f func(key K, n int) int) *Pairs[K, V] {
	if p.partition != nil || p.totalOrder || f == nil {
		p.misuse("Partition: the pairs have a partition or a total order already, or the function is nil")
	}
	p.partition = f
	return p
}

// TotalOrder partitions by ranges of keys, so that the part files together are sorted,
// in the order of their names. The job's setup runs the maps on a sample of the input to
// find ranges of equal size.
func (p *Pairs[K, V]) TotalOrder() *Pairs[K, V] {
	if p.partition != nil {
		p.misuse("TotalOrder: the pairs have a partition already")
	}
	p.totalOrder = true
	return p
}

// Codecs sets encodings for types from other packages; nil keeps the derived one. See
// [PairCodec] for parts of a pair.
func (p *Pairs[K, V]) Codecs(k *Codec[K], v *Codec[V]) *Pairs[K, V] {
	p.key, p.value = k, v
	return p
}

func (p *Pairs[K, V]) misuse(text string) {
	p.errs = append(p.errs, errors.New(text))
}

// check returns the errors of the pairs: misuse, types without codec, invalid inputs.
func (p *Pairs[K, V]) check() error {
	errs := p.errs
	if _, err := resolve(p.key); err != nil {
		errs = append(errs, fmt.Errorf("key of pairs: %w", err))
	}
	if _, err := resolve(p.value); err != nil {
		errs = append(errs, fmt.Errorf("value of pairs: %w", err))
	}
	for _, s := range p.sources {
		if s.input.err != nil {
			errs = append(errs, s.input.err)
		}
	}
	return errors.Join(errs...)
}

// checkOrder refuses keys without an order.
func (p *Pairs[K, V]) checkOrder() error {
	if c, err := resolve(p.key); err == nil && c.noOrder != nil {
		return fmt.Errorf("key of pairs: %w, and keys are sorted", c.noOrder)
	}
	return nil
}

func (p *Pairs[K, V]) inputs() []*inputSpec {
	var all []*inputSpec
	for _, s := range p.sources {
		all = append(all, s.input)
	}
	return all
}

func (p *Pairs[K, V]) smallSides() []*broadcast { return p.broadcasts }

// shape is how one kind of reduce encodes and groups keys.
type shape[K any] struct {
	key func() *codec[K] // returns a new codec; its hash picks the partition
	// prefix returns a function that returns the length of an encoded key's group
	// prefix: keys with equal prefixes are one group. nil: the whole key.
	prefix func() func(key []byte) (int, error)
	group  func() func(group []byte) (string, error) // returns a function that prints the key of a group
}

// wholeKeys groups by whole keys.
func (p *Pairs[K, V]) wholeKeys() shaped[K, V] {
	key := func() *codec[K] { return must(p.key) }
	return shaped[K, V]{p, shape[K]{key: key, group: func() func([]byte) (string, error) {
		c := key()
		return func(group []byte) (string, error) {
			k, err := read(c, &decoder{}, group)
			if err != nil {
				return "", err
			}
			return string(c.text(nil, k)), nil
		}
	}}}
}

// nestedText returns a function that prints a nested encoding.
func nestedText[T any](c *codec[T]) func(group []byte) (string, error) {
	return func(group []byte) (string, error) {
		v, _, err := readNested(c, &decoder{}, group)
		if err != nil {
			return "", err
		}
		return string(c.text(nil, v)), nil
	}
}

func (p shaped[K, V]) groupText() func(group []byte) (string, error) { return p.shape.group() }

// mapFunc is the code of a map task.
type mapFunc func(t *mrruntime.Task, in splitReader, out mrruntime.Collector) error

// maps returns the map functions of a job with reduces.
func (p shaped[K, V]) maps(job *jobSpec) []mapFunc {
	var maps []mapFunc
	for _, src := range p.sources {
		maps = append(maps, func(rt *mrruntime.Task, in splitReader, out mrruntime.Collector) (err error) {
			t := newMapTask(rt, job, in)
			defer t.replacePanic(&err)
			key, value := p.shape.key(), must(p.value)
			c := &collect[K, V]{t: t, key: key, value: value, out: out, n: max(rt.Partitions, 1)}
			c.route = p.router(rt, in, key, p.shape)
			if p.fold == nil || job.noCombine || !pointerFree(reflect.TypeFor[V]()) {
				return t.end(in.Err, src.run(t, in, c.emit))
			}
			return p.mapFolding(t, src, in, c)
		})
	}
	return maps
}

// recordText returns a function that prints an emitted record.
func (p shaped[K, V]) recordText() func(key, value []byte) string {
	k, v := p.shape.key(), must(p.value)
	return func(key, value []byte) string {
		a, errA := read(k, &decoder{}, key)
		b, errB := read(v, &decoder{}, value)
		if err := errors.Join(errA, errB); err != nil {
			return err.Error()
		}
		return string(v.text(append(k.text(nil, a), '\t'), b))
	}
}

func (p shaped[K, V]) texts() []func(key, value []byte) string {
	return slices.Repeat([]func(key, value []byte) string{p.recordText()}, len(p.sources))
}

func (p *Pairs[K, V]) mapFolding(t *Task, src source[K, V], in splitReader, c *collect[K, V]) error {
	table, err := newFoldTable(c, p.fold, foldTableMemory, t.skipsRecords())
	if err != nil {
		return err
	}
	defer table.close()
	err = src.run(t, in, table.emit)
	if err == nil && t.err == nil && in.Err() == nil {
		table.finish()
	}
	table.count()
	return t.end(in.Err, err)
}

// mapOnlyFuncs returns the map functions of a job without reduces. They write its output.
func (p *Pairs[K, V]) mapOnlyFuncs(job *jobSpec) []mapFunc {
	var maps []mapFunc
	for _, src := range p.sources {
		maps = append(maps, func(rt *mrruntime.Task, in splitReader, _ mrruntime.Collector) (err error) {
			t := newMapTask(rt, job, in)
			defer t.replacePanic(&err)
			emit, err := newWriter(t, "", must(p.key), must(p.value))
			if err != nil {
				return err
			}
			return t.end(in.Err, src.run(t, in, emit))
		})
	}
	return maps
}

func newMapTask(rt *mrruntime.Task, job *jobSpec, in splitReader) *Task {
	t := newTask(rt, job)
	t.in = in
	t.locate = func(err error) error { return errorAt(in, err) }
	for _, c := range in.Chunks() {
		if c.Path == "" {
			continue // of Generate
		}
		t.splits = append(t.splits, splitOf(c))
	}
	return t
}
