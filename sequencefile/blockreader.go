package sequencefile

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/quernmr/quern/compression"
	"github.com/quernmr/quern/sequencefile/writable"
)

// The compressed parts of a block.
const (
	keyLengths = iota
	keys
	valueLengths
	values
	parts
)

var partNames = [parts]string{"lengths of keys", "keys", "lengths of values", "values"}

// blockReader reads the records of a block.
type blockReader struct {
	at      int64 // offset of the block
	left    int   // records
	open    bool
	streams [parts]*stream
}

// stream decompresses a part of a block, or a value.
type stream struct {
	*bufio.Reader
	packed *compression.Reader
	raw    bytes.Reader
}

func newStream(codec *compression.Codec, maxRatio int64) *stream {
	s := &stream{Reader: bufio.NewReaderSize(nil, 32<<10), packed: codec.NewReader()}
	s.packed.MaxRatio = maxRatio
	return s
}

func (s *stream) reset(packed []byte) {
	s.raw.Reset(packed)
	if len(packed) == 0 { // some codecs write nothing for nothing
		s.Reader.Reset(&s.raw)
		return
	}
	s.packed.Reset(&s.raw, compression.Whole)
	s.Reader.Reset(s.packed)
}

// length reads a vint.
func (s *stream) length() (int64, error) {
	first, err := s.Peek(1)
	if err != nil {
		return 0, err
	}
	size := writable.VLongSize(first[0])
	b, err := s.Peek(size)
	if err != nil {
		return 0, err
	}
	n, err := writable.VLong.Value(b)
	if err != nil {
		return 0, err
	}
	_, err = s.Discard(size)
	return n, err
}

// nextOfBlock returns the next record of blocks that begin before to, or io.EOF.
func (r *Reader) nextOfBlock(to int64) (Record, error) {
	b := &r.block
	for b.left == 0 {
		if b.open {
			if err := r.endBlock(); err != nil {
				return Record{}, r.located(b.at, err)
			}
		}
		b.at = r.cursor.offset()
		switch err := r.beginBlock(to); {
		case err == io.EOF:
			return Record{}, io.EOF
		case err != nil:
			return Record{}, r.located(b.at, err)
		}
	}
	b.left--
	record := Record{Offset: b.at}
	var err error
	if record.Key, err = r.content(keys, 0); err == nil {
		record.Value, err = r.content(values, len(record.Key))
	}
	if err != nil {
		return Record{}, r.located(b.at, err)
	}
	return record, nil
}

func (r *Reader) beginBlock(to int64) error {
	b, c := &r.block, &r.cursor
	switch n, err := r.lengthOrMark(to); {
	case err != nil:
		return err
	case n != syncEscape:
		return fmt.Errorf("%w: no sync mark begins the block", ErrDamaged)
	}
	n, err := c.length(1<<31 - 1)
	if err != nil {
		return err
	}
	for i := range b.streams {
		size, err := c.length(r.maxStream())
		if err != nil {
			return err
		}
		packed, err := c.take(size)
		if err != nil {
			return err
		}
		if b.streams[i] == nil {
			b.streams[i] = newStream(r.Header.Codec, r.limits.MaxRatio)
		}
		b.streams[i].reset(packed)
	}
	b.left, b.open = n, true
	return nil
}

// endBlock checks that the parts have no more than the records.
func (r *Reader) endBlock() error {
	r.block.open = false
	for i, s := range r.block.streams {
		switch _, err := s.ReadByte(); {
		case err == nil:
			return fmt.Errorf("%w: a block has more %s than records", ErrDamaged, partNames[i])
		case err != io.EOF:
			return fmt.Errorf("%s: %w", partNames[i], err)
		}
	}
	return nil
}

// content reads the next key or value. used is the size of the rest of the record.
func (r *Reader) content(part, used int) ([]byte, error) {
	n, err := r.block.streams[part-1].length()
	if err != nil {
		return nil, inPart(part-1, err)
	}
	if n < 0 {
		return nil, fmt.Errorf("%w: %s have %d", ErrDamaged, partNames[part-1], n)
	}
	if n > int64(r.limits.MaxRecord-used) {
		return nil, r.tooLarge(n + int64(used))
	}
	b, err := r.slab.read(r.block.streams[part], int(n))
	if err != nil {
		return nil, inPart(part, err)
	}
	return b, nil
}

// inPart names the part of a block in which an error is.
func inPart(part int, err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		err = errors.New("they end before the records")
	}
	return fmt.Errorf("%s: %w", partNames[part], err)
}

// slab hands out memory that is never written again.
type slab struct{ free []byte }

const slabSize = 128 << 10

// read reads n bytes. It takes memory only for bytes that are there.
func (s *slab) read(r io.Reader, n int) ([]byte, error) {
	if n > slabSize/4 {
		var b bytes.Buffer
		b.Grow(slabSize)
		_, err := io.CopyN(&b, r, int64(n))
		return b.Bytes(), err
	}
	if n > len(s.free) {
		s.free = make([]byte, slabSize)
	}
	b := s.free[:n:n]
	s.free = s.free[n:]
	_, err := io.ReadFull(r, b)
	return b, err
}
