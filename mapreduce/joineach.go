package mapreduce

import (
	"bufio"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/quernmr/quern/mapreduce/internal/property"
	"github.com/quernmr/quern/wire"
)

// JoinKind tells which values [JoinEach] returns without a value of the other side.
type JoinKind uint8

const (
	InnerJoin JoinKind = iota // none
	LeftJoin                  // those of the left side, a
	RightJoin                 // those of the right side, b
	FullJoin                  // those of both sides
)

// JoinEach calls f for every pair of a value of a and a value of b with the same key. In an outer join, f also gets a
// value without a partner, and nil for the other one. Both pointers are valid during the call. Keys come in their
// order; the order of the pairs of a key is not defined.
//
// If one side has very many values of a key, several reduces may get parts of them, and each the few values of the
// other side. So no reduce has all the pairs of this key. This is not done with Partition, TotalOrder or Combine, nor if
// quern.join.divide.keys is false.
//
// It takes little memory however many values a key has: if those of a take more than quern.join.buffer.bytes,
// they go to a file in the attempt's directory, which is read once for each such buffer of values of b. So it is
// fastest if a has fewer values of a key than b.
func JoinEach[K, A, B, KO, VO any](a *Pairs[K, A], b *Pairs[K, B], kind JoinKind, f func(t *Task, key K, a *A, b *B, emit func(KO, VO)) error) *Result[KO, VO] {
	a = requirePairs(a, f == nil, "JoinEach")
	if kind > FullJoin {
		a = a.withError(fmt.Sprintf("JoinEach: there is no kind %d of joins", kind))
	}
	both, prefix := joinedSides(a, b, "JoinEach")
	from := sharedSides[K, A, B]{both}
	r := newResult(from, prefix, func(x *reduction[KO, VO]) (err error) {
		j := &joined{values: values{t: x.t, g: x.g}}
		key, kd := must(a.key), &decoder{keep: true}
		p := &pairing[A, B]{j: j, kind: kind, left: must(a.value), right: must(b.value), limit: joinBuffer(x.t),
			ld: decoder{keep: true}, rd: decoder{keep: true}, spill: joinSpill{task: x.t}}
		defer func() { err = errors.Join(err, p.spill.close()) }()
		return x.each(&j.values, func() error {
			k, _, err := readNested(key, kd, x.g.key)
			if err != nil {
				return err
			}
			j.begin()
			return p.run(func(a *A, b *B) error { return f(x.t, k, a, b, x.emit) })
		})
	})
	r.stage.(*reduced[KO, VO]).spreads = from.spreads()
	return r
}

// joinBuffer returns the bytes of the values of a side that are kept in memory.
func joinBuffer(t *Task) int {
	n, err := strconv.Atoi(t.Property(property.JoinBuffer))
	if err != nil {
		return property.DefaultJoinBuffer // a task without properties, in a test
	}
	return n
}

// pairing pairs the values of one key: each left one, from memory or a file, with each buffer of right ones.
type pairing[A, B any] struct {
	j             *joined
	kind          JoinKind
	left          *codec[A]
	right         *codec[B]
	limit         int // bytes of a buffer
	lefts, rights []byte
	spill         joinSpill
	ld, rd        decoder
	a             A // as the job's code gets it
	b             B
}

// cachedRights is the bytes of right values that are paired at a time while the left ones are in memory: they fit into the
// processor's cache.
const cachedRights = 256 << 10

// run calls f for the pairs of the current key.
func (p *pairing[A, B]) run(f func(a *A, b *B) error) error {
	if err := cmp.Or(p.readLeft(), p.failed()); err != nil {
		return err
	}
	some := len(p.lefts) > 0 || p.spill.values > 0
	paired, limit := false, p.limit
	if p.spill.values == 0 {
		limit = min(limit, cachedRights) // no file is read again for each buffer
	}
	for more := p.j.next(rightSide); more; paired = true {
		p.rights = p.rights[:0]
		for ; more && len(p.rights) < limit; more = p.j.next(rightSide) {
			p.rights = appendSized(p.rights, p.j.g.in.Value())
		}
		var err error
		switch {
		case some:
			err = p.eachLeft(func(a A) error {
				return p.eachRight(func(b B) error { p.a, p.b = a, b; return f(&p.a, &p.b) })
			})
		case (p.kind == RightJoin || p.kind == FullJoin) && !p.j.noted[leftSide]:
			err = p.eachRight(func(b B) error { p.b = b; return f(nil, &p.b) })
		}
		if err != nil {
			return err
		}
	}
	if paired || p.j.noted[rightSide] || p.kind == InnerJoin || p.kind == RightJoin {
		return nil
	}
	return p.eachLeft(func(a A) error {
		p.a = a
		return cmp.Or(f(&p.a, nil), p.j.t.err)
	})
}

// failed returns the error that ended the left values too early. After the last one, the first right one has been read:
// so without an error a left value without a partner has none.
func (p *pairing[A, B]) failed() error { return cmp.Or(p.j.t.err, p.j.g.readErr()) }

// readLeft reads the left values. If there are too many, all go to the file.
func (p *pairing[A, B]) readLeft() error {
	p.lefts, p.spill.values = p.lefts[:0], 0
	for p.j.next(leftSide) {
		if p.lefts = appendSized(p.lefts, p.j.g.in.Value()); len(p.lefts) < p.limit {
			continue
		}
		if err := p.spillLeft(); err != nil {
			return err
		}
	}
	if p.spill.values == 0 || len(p.lefts) == 0 {
		return nil
	}
	return p.spillLeft()
}

func (p *pairing[A, B]) spillLeft() error {
	err := p.spill.write(p.lefts)
	p.lefts = p.lefts[:0]
	return err
}

// eachLeft calls f for all left values.
func (p *pairing[A, B]) eachLeft(f func(A) error) error {
	each := func(value []byte) error {
		a, err := read(p.left, &p.ld, value)
		if err != nil {
			return err
		}
		if err := p.j.t.ended(); err != nil {
			return err
		}
		return f(a)
	}
	if p.spill.values > 0 {
		return p.spill.each(each)
	}
	return eachSized(p.lefts, each)
}

// eachRight calls f for the right values in the buffer.
func (p *pairing[A, B]) eachRight(f func(B) error) error {
	return eachSized(p.rights, func(value []byte) error {
		b, err := read(p.right, &p.rd, value)
		if err != nil {
			return err
		}
		return cmp.Or(f(b), p.j.t.err)
	})
}

// ended returns the reason why the attempt must end, or nil.
func (t *Task) ended() error {
	if t.Context == nil {
		return nil
	}
	select {
	case <-t.Context.Done():
		return context.Cause(t.Context)
	default:
		return nil
	}
}

// appendSized appends a value after its size, a varint.
func appendSized(to, value []byte) []byte {
	return append(binary.AppendUvarint(to, uint64(len(value))), value...)
}

// eachSized calls f for values that appendSized has appended.
func eachSized(values []byte, f func([]byte) error) error {
	for len(values) > 0 {
		size, n := binary.Uvarint(values)
		if n <= 0 || size > uint64(len(values)-n) {
			return errTruncated
		}
		if err := f(values[n : n+int(size)]); err != nil {
			return err
		}
		values = values[n+int(size):]
	}
	return nil
}

// joinSpill is the file with the left values of a key, as appendSized appends them. It is in the attempt's directory,
// which has a limited size and is removed with the attempt.
type joinSpill struct {
	task    *Task
	file    *os.File // nil: no key needed it yet
	in      *bufio.Reader
	value   []byte
	values  int64 // of the current key
	size    int64
	spilled *Counter
}

// write appends values of the current key.
func (s *joinSpill) write(values []byte) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("spill the left values of a join: %w", err)
		}
	}()
	if s.file == nil {
		dir := s.task.host.Dir()
		if err := os.MkdirAll(dir, 0o777); err != nil {
			return err
		}
		if s.file, err = os.CreateTemp(dir, "join-"); err != nil {
			return err
		}
		s.in = bufio.NewReaderSize(nil, 64<<10)
		s.spilled = s.task.Counter(wire.TaskCounters, wire.SpilledRecords)
	}
	if s.values == 0 {
		if err := s.file.Truncate(0); err != nil {
			return err
		}
		s.size = 0
	}
	var added int64
	if err := eachSized(values, func([]byte) error { added++; return nil }); err != nil {
		return err
	}
	n, err := s.file.WriteAt(values, s.size)
	s.size += int64(n)
	s.values += added
	s.spilled.Add(added)
	return err
}

// each calls f for all values of the current key.
func (s *joinSpill) each(f func([]byte) error) error {
	s.in.Reset(io.NewSectionReader(s.file, 0, s.size))
	for range s.values {
		size, err := binary.ReadUvarint(s.in)
		if size > uint64(s.size) {
			err = errInvalid
		}
		if err == nil {
			if uint64(cap(s.value)) < size {
				s.value = make([]byte, size)
			}
			s.value = s.value[:size]
			_, err = io.ReadFull(s.in, s.value)
		}
		if err != nil {
			return fmt.Errorf("read the spilled left values of a join from %s: %w", s.file.Name(), err)
		}
		s.spilled.Add(0) // counts as activity
		if err := f(s.value); err != nil {
			return err
		}
	}
	return nil
}

func (s *joinSpill) close() error {
	if s.file == nil {
		return nil
	}
	return errors.Join(s.file.Close(), os.Remove(s.file.Name()))
}
