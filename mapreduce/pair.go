package mapreduce

import (
	"fmt"
	"reflect"
)

// Pair has two values. Pairs are ordered by A, then by B. Make one with [PairOf].
type Pair[A, B any] struct {
	A A
	B B
}

// PairOf returns a Pair.
func PairOf[A, B any](a A, b B) Pair[A, B] { return Pair[A, B]{A: a, B: b} }

// Desc is a value that sorts from high to low. Text prints V. Make it with [Descending].
type Desc[T any] struct{ V T }

// Descending returns a Desc.
func Descending[T any](v T) Desc[T] { return Desc[T]{V: v} }

// deriveCodec encodes A in nested form, then B in the form that the pair itself has.
func (Pair[A, B]) deriveCodec() (any, error) {
	a, err := derive[A]()
	if err != nil {
		return nil, fmt.Errorf("in %s: %w", reflect.TypeFor[Pair[A, B]](), err)
	}
	b, err := derive[B]()
	if err != nil {
		return nil, fmt.Errorf("in %s: %w", reflect.TypeFor[Pair[A, B]](), err)
	}
	return pairOf(a, b), nil
}

func pairOf[A, B any](a *codec[A], b *codec[B]) *codec[Pair[A, B]] {
	return &codec[Pair[A, B]]{
		name: "Pair[" + a.name + "," + b.name + "]",
		form: "pair(" + a.form + "," + b.form + ")",
		null: a.null && b.null,
		append: func(dst []byte, v Pair[A, B]) []byte {
			return b.append(a.appendNested(dst, v.A), v.B)
		},
		decode: func(d *decoder, src []byte) (v Pair[A, B]) {
			v.A, src = a.decodeNested(d, src)
			if d.err == nil {
				v.B = b.decode(d, src)
			}
			return v
		},
		appendNested: func(dst []byte, v Pair[A, B]) []byte {
			return b.appendNested(a.appendNested(dst, v.A), v.B)
		},
		decodeNested: func(d *decoder, src []byte) (v Pair[A, B], rest []byte) {
			v.A, rest = a.decodeNested(d, src)
			if d.err == nil {
				v.B, rest = b.decodeNested(d, rest)
			}
			return v, rest
		},
		hash: func(v Pair[A, B]) int32 { return 31*a.hash(v.A) + b.hash(v.B) },
		text: func(dst []byte, v Pair[A, B]) []byte {
			dst = a.text(dst, v.A)
			if !a.null && !b.null {
				dst = append(dst, '\t')
			}
			return b.text(dst, v.B)
		},
	}
}

// deriveCodec encodes the nested form of V with every bit inverted. Inverted terminal
// forms would sort "a" before "ab".
func (Desc[T]) deriveCodec() (any, error) {
	c, err := derive[T]()
	if err != nil {
		return nil, fmt.Errorf("in %s: %w", reflect.TypeFor[Desc[T]](), err)
	}
	put := func(dst []byte, v Desc[T]) []byte {
		start := len(dst)
		dst = c.appendNested(dst, v.V)
		invert(dst[start:])
		return dst
	}
	get := func(d *decoder, src []byte) (v Desc[T], rest []byte) {
		v.V, rest = c.decodeNested(d, d.inverted(src))
		return v, src[len(src)-len(rest):]
	}
	return &codec[Desc[T]]{
		name:         "Desc[" + c.name + "]",
		form:         "desc(" + c.form + ")",
		null:         c.null,
		append:       put,
		appendNested: put,
		decodeNested: get,
		decode: func(d *decoder, src []byte) Desc[T] {
			v, rest := get(d, src)
			if len(rest) > 0 {
				d.fail(errTrailing)
			}
			return v
		},
		hash: func(v Desc[T]) int32 { return c.hash(v.V) },
		text: func(dst []byte, v Desc[T]) []byte { return c.text(dst, v.V) },
	}, nil
}
