package mapreduce

import (
	"errors"
	"fmt"
	"iter"
	"slices"

	mrruntime "github.com/quernmr/quern/runtime"
)

// Join calls f for every key of a or b, in the order of keys, with the values of both
// sides. The sequence of a side without the key is empty.
//
// Both sequences are streamed and can be read once, as before bs. Put the smaller side
// first if you have to keep its values in memory.
func Join[K, A, B, KO, VO any](a *Pairs[K, A], b *Pairs[K, B], f func(t *Task, key K, as iter.Seq[A], bs iter.Seq[B], emit func(KO, VO)) error) *Result[KO, VO] {
	a = requirePairs(a, f == nil, "Join")
	from, prefix := joinedSides(a, b, "Join")
	return newResult(from, prefix, func(x *reduction[KO, VO]) error {
		j := &joined{values: values{t: x.t, g: x.g}}
		key, kd := must(a.key), &decoder{keep: true}
		as, bs := sideOf(j, must(a.value), leftSide), sideOf(j, must(b.value), rightSide)
		return x.each(&j.values, func() error {
			k, _, err := readNested(key, kd, x.g.key)
			if err != nil {
				return err
			}
			n := j.begin()
			return f(x.t, k, as(n), bs(n), x.emit)
		})
	})
}

// joinedSides checks the sides of a join, and describes its map output. prefix finds the author's key in a key.
func joinedSides[K, A, B any](a *Pairs[K, A], b *Pairs[K, B], join string) (s sides[K, A, B], prefix func() func([]byte) (int, error)) {
	b = requirePairs(b, false, join)
	if (a.partition == nil) != (b.partition == nil) {
		a = a.withError(join + " needs Partition on both sides or on neither")
	}
	if a.key != b.key {
		a = a.withError(join + " needs one Codec of the key on both sides")
	}
	left, right := joinShape(a.key, leftSide), joinShape(a.key, rightSide)
	if a.totalOrder != b.totalOrder {
		orderedA, orderedB := *a, *b
		orderedA.totalOrder, orderedB.totalOrder = true, true
		a, b = &orderedA, &orderedB
	}
	return sides[K, A, B]{shaped[K, A]{a, left}, shaped[K, B]{b, right}}, left.prefix
}

// sides describes the map output of a join.
type sides[K, A, B any] struct {
	left  shaped[K, A]
	right shaped[K, B]
}

func (s sides[K, A, B]) inputs() []*inputSpec { return append(s.left.inputs(), s.right.inputs()...) }
func (s sides[K, A, B]) smallSides() []*broadcast {
	return slices.Concat(s.left.smallSides(), s.right.smallSides())
}
func (s sides[K, A, B]) checkPairs() error {
	return errors.Join(s.left.checkPairs(), s.right.checkPairs())
}
func (s sides[K, A, B]) combines() bool        { return s.left.combines() || s.right.combines() }
func (s sides[K, A, B]) ordered() bool         { return s.left.totalOrder }
func (s sides[K, A, B]) withoutReduces() stage { return nil }

func (s sides[K, A, B]) ranges() *mrruntime.Ranges { return s.left.ranges() }

func (s sides[K, A, B]) pairTypes() (key, value string) {
	return typeName(s.left.key), typeName(s.left.value) + " or " + typeName(s.right.value)
}

func (s sides[K, A, B]) maps(job *jobSpec) []mapFunc {
	return append(s.left.maps(job), s.right.maps(job)...)
}

func (s sides[K, A, B]) texts() []func(key, value []byte) string {
	return append(s.left.texts(), s.right.texts()...)
}

func (s sides[K, A, B]) recordText() func(key, value []byte) string {
	left, right := s.left.recordText(), s.right.recordText()
	return func(key, value []byte) string {
		if len(key) > 0 && key[len(key)-1] >= rightSide {
			return right(key, value)
		}
		return left(key, value)
	}
}

func (s sides[K, A, B]) groupText() func(group []byte) (string, error) { return s.left.groupText() }

func (s sides[K, A, B]) combiner(job *jobSpec) func(*mrruntime.Task) mrruntime.CombineFunc {
	return joinCombiner(s.left.combiner(job), s.right.combiner(job))
}

// The key of a join is the nested form of the author's key plus a byte for its side. So the
// left values of a key come before the right ones. A note follows the values of its side; see [sharing].
const (
	leftSide  = 0
	leftNote  = leftSide + noteOf
	rightSide = 2
	rightNote = rightSide + noteOf
	noteOf    = 1
)

// joinShape appends the byte of a side to the author's keys. The group ignores it.
func joinShape[K any](custom *Codec[K], side byte) shape[K] {
	return shape[K]{
		key: func() *codec[K] {
			c := *must(custom)
			c.view = nil
			c.append = func(dst []byte, v K) []byte { return append(c.appendNested(dst, v), side) }
			c.decode = func(d *decoder, src []byte) K {
				v, rest := c.decodeNested(d, src)
				if d.err == nil && len(rest) != 1 {
					d.fail(wrongSize(len(rest), 1))
				}
				return v
			}
			return &c
		},
		prefix: func() func([]byte) (int, error) {
			return func(key []byte) (int, error) {
				if len(key) == 0 {
					return 0, errTruncated
				}
				return len(key) - 1, nil
			}
		},
		group: func() func([]byte) (string, error) { return nestedText(must(custom)) },
	}
}

// joined guards the values of one key of a join.
type joined struct {
	values
	ended        [rightNote + 1]bool // by side: a range has seen its end
	noted        [rightNote + 1]bool // by side: it has a note
	rightPending bool                // the current record of g is the first right one, not yet returned
	rightStarted bool                // the left side can no longer be read
}

func (j *joined) begin() (group int64) {
	*j = joined{values: j.values}
	return j.values.begin()
}

var errJoinOrder = misuse("the left values of a join were ranged over after the right ones had begun")

// next goes to the next record of a side.
func (j *joined) next(side byte) bool {
	if j.rightPending {
		j.rightPending = side == leftSide
		return side == rightSide
	}
	for j.g.next() {
		rest := j.g.rest()
		if len(rest) != 1 || rest[0] > rightNote {
			j.fail(fmt.Errorf("the key's last byte, the side of the join: %w", errInvalid))
			return false
		}
		switch {
		case rest[0] == side:
			return true
		case rest[0] == leftNote || rest[0] == rightNote:
			j.noted[rest[0]-noteOf] = true
		case side == leftSide:
			j.rightPending = true
			return false
		}
	}
	return false
}

// sideOf returns a function that makes the sequence of a group's values on one side.
func sideOf[V any](j *joined, c *codec[V], side byte) func(group int64) iter.Seq[V] {
	d := &decoder{keep: true}
	each := func(group int64, yield func(V) bool) {
		if !j.current(group) {
			return
		}
		if j.ended[side] {
			j.t.fail(errRangeEnded)
			return
		}
		if side == rightSide {
			j.rightStarted = true
		} else if j.rightStarted {
			j.t.fail(errJoinOrder)
			return
		}
		for j.next(side) {
			v, err := read(c, d, j.g.in.Value())
			if err != nil {
				j.fail(err)
				return
			}
			if !yield(v) || !j.current(group) {
				return
			}
		}
		j.ended[side] = true
	}
	return func(group int64) iter.Seq[V] {
		return func(yield func(V) bool) { each(group, yield) }
	}
}

// joinCombiner combines each side with its own combiner. Records of a side without one
// pass unchanged.
func joinCombiner(left, right func(*mrruntime.Task) mrruntime.CombineFunc) func(*mrruntime.Task) mrruntime.CombineFunc {
	if left == nil && right == nil {
		return nil
	}
	return func(rt *mrruntime.Task) mrruntime.CombineFunc {
		sides := map[byte]mrruntime.CombineFunc{leftSide: passRecords, rightSide: passRecords}
		for side, combiner := range map[byte]func(*mrruntime.Task) mrruntime.CombineFunc{leftSide: left, rightSide: right} {
			if combiner != nil {
				sides[side] = combiner(rt)
			}
		}
		return func(rt *mrruntime.Task, in mrruntime.Records, emit func(key, value []byte) error) error {
			run := &sideRun{in: in, more: in.Next()}
			for run.more {
				side, ok := run.currentSide()
				if !ok {
					return fmt.Errorf("combine the values of %s: the last byte, the side of the join: %w", keyBytes(in.Key()), errInvalid)
				}
				run.side, run.first, run.ended = side, true, false
				if err := sides[side](rt, run, emit); err != nil {
					return err
				}
				for run.Next() { // skip the records that the combiner did not read
				}
			}
			return in.Err()
		}
	}
}

func passRecords(_ *mrruntime.Task, in mrruntime.Records, emit func(key, value []byte) error) error {
	for in.Next() {
		if err := emit(in.Key(), in.Value()); err != nil {
			return err
		}
	}
	return in.Err()
}

// sideRun is a run of records of one side of a join.
type sideRun struct {
	in    mrruntime.Records
	side  byte
	first bool // Next has not returned the current record
	ended bool
	more  bool // in has a current record
}

func (r *sideRun) currentSide() (side byte, ok bool) {
	key := r.in.Key()
	if len(key) == 0 || key[len(key)-1] != leftSide && key[len(key)-1] != rightSide {
		return 0, false
	}
	return key[len(key)-1], true
}

func (r *sideRun) Next() bool {
	switch {
	case r.ended:
		return false
	case r.first:
		r.first = false
		return true
	}
	r.more = r.in.Next()
	if r.more {
		if side, ok := r.currentSide(); ok && side == r.side {
			return true
		}
	}
	r.ended = true
	return false
}

func (r *sideRun) Key() []byte   { return r.in.Key() }
func (r *sideRun) Value() []byte { return r.in.Value() }
func (r *sideRun) Err() error    { return r.in.Err() }
