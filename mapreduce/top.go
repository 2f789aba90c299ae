package mapreduce

import (
	"bytes"
	"cmp"
	"fmt"
	"iter"
	"slices"
	"sync"
)

// Top keeps the n largest values of each key by compare, and writes them from the largest to
// the smallest. Maps keep only n values of a key too. Values that compare as equal are ordered
// by their encodings, so that the result does not depend on the splits.
//
// For the n largest of all records, emit the key struct{}{}: one reduce gets all of them.
func Top[K, V any](p *Pairs[K, V], n int, compare func(a, b V) int) *Result[K, V] {
	p = requirePairs(p, compare == nil, "Top")
	if p.combines() {
		p = p.withError("Top combines by itself, but the pairs have a combiner already")
	}
	if n < 1 {
		p = p.withError(fmt.Sprintf("Top of %d values: want 1 or more", n))
	}
	p, top := topOf(p, n, compare)
	return Reduce(p, func(t *Task, key K, vals iter.Seq[V], emit func(K, V)) error {
		return top(t, key, vals, func(v V) { emit(key, v) })
	}).Codecs(p.key, p.value)
}

// topOf returns pairs that combine the values of a key to the n largest, and the combiner.
func topOf[K, V any](p *Pairs[K, V], n int, compare func(a, b V) int) (*Pairs[K, V], func(*Task, K, iter.Seq[V], func(V)) error) {
	lists := sync.Pool{New: func() any { return newTopList(must(p.value), n, compare) }}
	kept := *p
	kept.group = func(_ *Task, _ K, vals iter.Seq[V], emit func(V)) error {
		list := lists.Get().(*topList[V])
		defer lists.Put(list)
		list.items = list.items[:0]
		for v := range vals {
			if err := list.offer(v); err != nil {
				return err
			}
		}
		for i := range list.items {
			emit(list.items[i].value)
		}
		return nil
	}
	return &kept, kept.group
}

// topList is the n largest values so far, from the largest to the smallest.
type topList[V any] struct {
	codec   *codec[V]
	d       decoder
	n       int
	compare func(a, b V) int
	items   []topItem[V]
	buf     []byte
}

// topItem is a value with memory of its own.
type topItem[V any] struct {
	value   V
	encoded []byte
}

func newTopList[V any](c *codec[V], n int, compare func(a, b V) int) *topList[V] {
	return &topList[V]{codec: c, d: decoder{keep: true, own: true}, n: n, compare: compare}
}

// offer takes a value if it is one of the n largest.
func (l *topList[V]) offer(v V) error {
	full := len(l.items) == l.n
	if full && l.compare(v, l.items[l.n-1].value) < 0 {
		return nil
	}
	item := topItem[V]{v, l.codec.encode(&l.buf, v)}
	at, _ := slices.BinarySearchFunc(l.items, item, func(a, b topItem[V]) int {
		return cmp.Or(l.compare(b.value, a.value), bytes.Compare(b.encoded, a.encoded))
	})
	if at == l.n {
		return nil
	}
	item.encoded = bytes.Clone(item.encoded)
	var err error
	if item.value, err = read(l.codec, &l.d, item.encoded); err != nil {
		return err
	}
	if full {
		l.items = l.items[:l.n-1]
	}
	l.items = slices.Insert(l.items, at, item)
	return nil
}
