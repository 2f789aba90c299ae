package shuffle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/quernmr/quern/wire"
)

// Writer writes records in their given order as a segment file for a [Reader]. Every block
// is a partition, because a Reader begins at an offset in the index. If a file has more than
// [MaxPartitions] blocks, which takes over 64 GiB, the last partition has the rest. Each
// Reader reads the whole index, 1/2048 of a file of full blocks.
type Writer struct{ s *segmentWriter }

// NewWriter begins a segment file in a writer that the caller closes.
func NewWriter(to io.Writer) *Writer { return &Writer{newSegment(to)} }

// Write appends a record encoded by [AppendRecord].
func (w *Writer) Write(record []byte) error {
	if len(record) > MaxMaxRecord {
		return fmt.Errorf("%w: %d bytes, the limit is %d", ErrRecordTooLarge, len(record), MaxMaxRecord)
	}
	if !w.s.fits(len(record)) && len(w.s.index.Partitions) < MaxPartitions-1 {
		if err := w.endBlock(); err != nil {
			return err
		}
	}
	return w.s.addEncoded(record)
}

// endBlock ends the partition unless it is empty.
func (w *Writer) endBlock() error {
	if w.s.current.Records == 0 {
		return nil
	}
	return w.s.endPartition()
}

// Close writes the remaining bytes and the index. After an error the file is unusable.
func (w *Writer) Close() error {
	if err := w.endBlock(); err != nil {
		return err
	}
	return w.s.finish()
}

// Range selects the partitions of a segment file that begin between two offsets.
type Range struct {
	Name      string // of the file, for errors
	File      io.ReaderAt
	Size      int64 // of the file
	From, To  int64 // offsets; a partition belongs to the range when From <= its offset < To
	MaxRecord int   // bytes of key and value; 0: [DefaultMaxRecord]
}

// Reader is [Records] in stored order, which may be unsorted. It has the errors of a
// [Merger], and [TooLargeError].
type Reader struct {
	blocks     blockReader
	rest       []byte // the block after the record
	big        []byte // holds a large block
	key, value []byte
	err        error // io.EOF at the end
}

var _ Records = (*Reader)(nil)

// NewReader reads the index of the file, and checks the beginning of the file if the range
// begins there. The caller closes the file.
func NewReader(ctx context.Context, r Range) (*Reader, error) {
	seg := wire.Segment{Map: -1, File: r.Name}
	index, err := decodeIndex(r.File, r.Size, int(min(r.Size/blockTarget, 1<<15)+2)*entryBytes+footerBytes, r.From <= 0)
	if damage, ok := errors.AsType[*damageError](err); ok {
		return nil, damage.in(seg)
	}
	if err != nil {
		return nil, notReadable(seg, err)
	}
	in := slices.DeleteFunc(index.Partitions, func(p Partition) bool { return p.Offset < r.From || p.Offset >= r.To })
	if len(in) > 0 {
		last := in[len(in)-1]
		seg.Offset, seg.Length = in[0].Offset, last.Offset+last.Length-in[0].Offset
	}
	return &Reader{blocks: blockReader{ctx: ctx, seg: seg, in: &fileInput{file: r.File, base: seg.Offset},
		size: seg.Length, limit: cmp.Or(r.MaxRecord, DefaultMaxRecord)}}, nil
}

// Next moves to the next record.
func (r *Reader) Next() bool {
	if len(r.rest) == 0 && r.err == nil {
		r.rest, r.err = r.blocks.wholeBlock(&r.big)
	}
	if r.err != nil {
		return false
	}
	start, mid, end, ok := lengths(r.rest)
	switch {
	case !ok || end > len(r.rest):
		r.err = badRecord(&r.blocks)
		return false
	case end-start > r.blocks.limit:
		r.err = tooLarge(r.blocks.seg.Offset+r.blocks.at-int64(len(r.rest)), end-start, r.blocks.limit)
		return false
	}
	r.key, r.value, r.rest = r.rest[start:mid:mid], r.rest[mid:end:end], r.rest[end:]
	return true
}

func tooLarge(offset int64, size, limit int) error {
	return &TooLargeError{Offset: offset, Size: size, Limit: limit}
}

// Key returns the current record's key, valid until the next call of Next.
func (r *Reader) Key() []byte { return r.key }

// Value returns the current record's value, valid until the next call of Next.
func (r *Reader) Value() []byte { return r.value }

// Err returns the reason why Next returned false; nil at the end.
func (r *Reader) Err() error {
	if r.err == io.EOF {
		return nil
	}
	return r.err
}
