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

// PairCodec returns the codec of a pair with codecs for its parts; nil keeps the derived one
// of a part.
func PairCodec[A, B any](a *Codec[A], b *Codec[B]) *Codec[Pair[A, B]] {
	return &Codec[Pair[A, B]]{parts: pairCodecs[A, B]{a, b}}
}

// partCodecs are codecs of the parts of T.
type partCodecs[T any] interface{ resolve() (*codec[T], error) }

type pairCodecs[A, B any] struct {
	a *Codec[A]
	b *Codec[B]
}

func (p pairCodecs[A, B]) resolve() (*codec[Pair[A, B]], error) {
	a, errA := resolve(p.a)
	b, errB := resolve(p.b)
	if err := inPair[A, B](errA, errB); err != nil {
		return nil, err
	}
	return pairOf(a, b), nil
}

// deriveCodec encodes A in nested form, then B in the form that the pair itself has.
func (Pair[A, B]) deriveCodec() (any, error) {
	return pairCodecs[A, B]{}.resolve()
}

func pairOf[A, B any](a *codec[A], b *codec[B]) *codec[Pair[A, B]] {
	return &codec[Pair[A, B]]{
		name: "Pair[" + a.name + "," + b.name + "]",
		form: "pair(" + a.form + "," + b.form + ")",
		null: a.null && b.null,

		noOrder: inPair[A, B](a.noOrder, b.noOrder),
		append: func(dst []byte, v Pair[A, B]) []byte {
			return b.append(a.appendNested(dst, v.A), v.B)
		},
		decode: func(d *decoder, src []byte) (v Pair[A, B]) {
			v.A, src = a.decodeNested(d, src)
			if d.err != nil {
				d.inside(".A")
			} else if v.B = b.decode(d, src); d.err != nil {
				d.inside(".B")
			}
			return v
		},
		appendNested: func(dst []byte, v Pair[A, B]) []byte {
			return b.appendNested(a.appendNested(dst, v.A), v.B)
		},
		decodeNested: func(d *decoder, src []byte) (v Pair[A, B], rest []byte) {
			v.A, rest = a.decodeNested(d, src)
			if d.err != nil {
				d.inside(".A")
			} else if v.B, rest = b.decodeNested(d, rest); d.err != nil {
				d.inside(".B")
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

// inPair names the pair of a part without an order.
func inPair[A, B any](parts ...error) error {
	for _, err := range parts {
		if err != nil {
			return fmt.Errorf("in %s: %w", reflect.TypeFor[Pair[A, B]](), err)
		}
	}
	return nil
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
		noOrder:      c.noOrder,
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
