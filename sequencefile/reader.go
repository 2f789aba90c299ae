package sequencefile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"

	"github.com/quernmr/quern/compression"
)

// Limits of what a reader takes. Zero values mean 64 MiB for a record, and no limit of the ratio.
type Limits struct {
	MaxRecord int   // bytes of key and value together
	MaxRatio  int64 // as in [compression.Reader], for each compressed part
}

// Record is a record, encoded by the file's classes. Its memory never changes.
type Record struct {
	Key, Value []byte
	Offset     int64 // of the record in the file, or of its block
}

// Reader reads the records of a file.
type Reader struct {
	Header Header
	Sync   [syncSize]byte

	limits     Limits
	cursor     cursor
	headerSize int64
	value      *stream // for Record
	block      blockReader
	slab       slab
}

// NewReader reads the header of a file with a size.
func NewReader(file io.ReaderAt, size int64, l Limits) (*Reader, error) {
	if l.MaxRecord == 0 {
		l.MaxRecord = 64 << 20
	}
	r := &Reader{limits: l, cursor: cursor{file: file, size: size}}
	if err := r.readHeader(); err != nil {
		return nil, r.located(r.cursor.offset(), err)
	}
	r.headerSize = r.cursor.offset()
	return r, nil
}

// located adds an offset to an error, unless reading the file has failed.
func (r *Reader) located(offset int64, err error) error {
	if r.cursor.failed != nil {
		return r.cursor.failed
	}
	for _, kind := range []error{ErrFormat, ErrTruncated, ErrDamaged, ErrTooLarge} {
		if errors.Is(err, kind) {
			return &Error{offset, err}
		}
	}
	return &Error{offset, fmt.Errorf("%w: %w", ErrDamaged, err)}
}

func (r *Reader) readHeader() error {
	c, h := &r.cursor, &r.Header
	head, err := c.take(len(magic) + 1)
	switch {
	case c.size == 0:
		return fmt.Errorf("%w: it is empty", ErrFormat)
	case err != nil:
		return err
	case string(head[:len(magic)]) != magic:
		c.seek(0)
		return fmt.Errorf("%w: it begins with %q, not with %q", ErrFormat, head, magic)
	case head[len(magic)] < oldVersion || head[len(magic)] > version:
		return fmt.Errorf("%w: its version is %d, not %d to %d", ErrFormat, head[len(magic)], oldVersion, version)
	}
	of := head[len(magic)]
	if h.KeyClass, err = c.text(); err != nil {
		return err
	}
	if h.ValueClass, err = c.text(); err != nil {
		return err
	}
	compressed, err := c.flag()
	if err != nil {
		return err
	}
	blocks, err := c.flag()
	if err != nil {
		return err
	}
	switch {
	case blocks && !compressed:
		return fmt.Errorf("%w: blocks without compression", ErrDamaged)
	case blocks:
		h.Compression = Block
	case compressed:
		h.Compression = PerRecord
	}
	if compressed {
		class := "DefaultCodec"
		if of >= 5 {
			if class, err = c.text(); err != nil {
				return err
			}
		}
		if h.Codec, err = compression.Named(class); err != nil {
			return fmt.Errorf("%w: %w", ErrFormat, err)
		}
	}
	if of >= 6 {
		if err := r.readMetadata(); err != nil {
			return err
		}
	}
	sync, err := c.take(syncSize)
	copy(r.Sync[:], sync)
	return err
}

func (r *Reader) readMetadata() error {
	c := &r.cursor
	n, err := c.int32()
	if err == nil && (n < 0 || int64(n) > (c.size-c.offset())/2) {
		err = fmt.Errorf("%w: %d metadata", ErrDamaged, n)
	}
	for i := int32(0); i < n && err == nil; i++ {
		var name, value string
		if name, err = c.text(); err == nil {
			value, err = c.text()
		}
		if r.Header.Metadata == nil {
			r.Header.Metadata = make(map[string]string)
		}
		r.Header.Metadata[name] = value
	}
	return err
}

// Records returns the records of the piece of the file from one offset to another. After an error there are
// no more.
func (r *Reader) Records(from, to int64) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		r.block = blockReader{streams: r.block.streams}
		if from > 0 {
			if found, err := r.findMark(from, to); !found {
				if err != nil {
					yield(Record{}, err)
				}
				return
			}
		} else {
			r.cursor.seek(r.headerSize)
		}
		for {
			record, err := r.next(to)
			if err == io.EOF || !yield(record, err) || err != nil {
				return
			}
		}
	}
}

// findMark goes to the first sync mark of a piece.
func (r *Reader) findMark(from, to int64) (bool, error) {
	c := &r.cursor
	mark := append([]byte{0xff, 0xff, 0xff, 0xff}, r.Sync[:]...)
	for c.seek(max(from, r.headerSize)); c.offset() < to && c.size-c.offset() >= markSize; {
		if err := c.fill(markSize); err != nil {
			return false, r.located(c.offset(), err)
		}
		if i := bytes.Index(c.part[c.next:], mark); i >= 0 {
			c.next += i
			return c.offset() < to, nil
		}
		c.next = len(c.part) - markSize + 1
	}
	return false, nil
}

// next returns the next record of the piece that ends at to, or io.EOF after the last one.
func (r *Reader) next(to int64) (Record, error) {
	if r.Header.Compression == Block {
		return r.nextOfBlock(to)
	}
	c := &r.cursor
	for {
		at := c.offset()
		n, err := r.lengthOrMark(to)
		switch {
		case err == io.EOF:
			return Record{}, io.EOF
		case err != nil:
			return Record{}, r.located(at, err)
		case n == syncEscape:
			continue
		}
		record, err := r.record(at, n)
		if err != nil {
			return Record{}, r.located(at, err)
		}
		return record, nil
	}
}

// lengthOrMark reads the length of a record, or a mark. It returns io.EOF at the end of the piece.
func (r *Reader) lengthOrMark(to int64) (int32, error) {
	c := &r.cursor
	at := c.offset()
	if at == c.size {
		return 0, io.EOF
	}
	n, err := c.int32()
	switch {
	case err != nil || n != syncEscape:
		return n, err
	case at >= to:
		return 0, io.EOF
	}
	sync, err := c.take(syncSize)
	if err == nil && !bytes.Equal(sync, r.Sync[:]) {
		err = fmt.Errorf("%w: a sync mark is not that of the file", ErrDamaged)
	}
	return n, err
}

// record reads a record after its length.
func (r *Reader) record(at int64, n int32) (Record, error) {
	keySize, err := r.cursor.int32()
	switch {
	case err != nil:
		return Record{}, err
	case n < 0 || keySize < 0 || keySize > n:
		return Record{}, fmt.Errorf("%w: a record of %d bytes with a key of %d bytes", ErrDamaged, n, keySize)
	case int64(n) > r.cursor.size-r.cursor.offset():
		return Record{}, ErrTruncated
	case int(n) > r.limits.MaxRecord:
		return Record{}, r.tooLarge(int64(n))
	}
	data, err := r.cursor.take(int(n))
	if err != nil {
		return Record{}, err
	}
	record := Record{Key: data[:keySize:keySize], Value: data[keySize:], Offset: at}
	if r.Header.Compression == PerRecord {
		record.Value, err = r.unpackValue(record.Value)
	}
	return record, err
}

func (r *Reader) tooLarge(n int64) error {
	return fmt.Errorf("%w: it has %d bytes, at most %d are allowed", ErrTooLarge, n, r.limits.MaxRecord)
}

// unpackValue decompresses a value.
func (r *Reader) unpackValue(packed []byte) ([]byte, error) {
	if r.value == nil {
		r.value = newStream(r.Header.Codec, r.limits.MaxRatio)
	}
	r.value.reset(packed)
	var b bytes.Buffer
	n, err := b.ReadFrom(io.LimitReader(r.value, int64(r.limits.MaxRecord)+1))
	switch {
	case err != nil:
		return nil, err
	case n > int64(r.limits.MaxRecord):
		return nil, r.tooLarge(n)
	}
	return b.Bytes(), nil
}

// Close frees the reader's memory. It does not close the file.
func (r *Reader) Close() {
	for _, s := range append(r.block.streams[:], r.value) {
		if s != nil {
			s.packed.Close()
		}
	}
}

// maxStream limits the compressed parts of a block.
func (r *Reader) maxStream() int64 {
	return min(r.cursor.size-r.cursor.offset(), int64(r.limits.MaxRecord)+256<<20, math.MaxInt32)
}
