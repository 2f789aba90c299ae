package shuffle

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync/atomic"
	"time"

	"github.com/quernmr/quern/wire"
)

// input is a range of bytes with blocks. readAt fills p from an offset within the range. It
// returns io.ErrUnexpectedEOF if the range is shorter than expected.
type input interface {
	readAt(p []byte, at int64) error
	close() error
}

// blockReader delivers the verified payloads of a range of blocks.
//
// For a block with one large record, next delivers only the unverified beginning, which may
// end within the key. So a merge of many such blocks need not hold them all. It compares keys
// with equal beginnings in parts. When it reaches the record, load reads and verifies the
// whole block. Before that, no code outside the merge sees the key.
type blockReader struct {
	ctx        context.Context
	seg        wire.Segment
	in         input
	size       int64         // of the range
	limit      int           // maximum size of a record in bytes; 0: MaxMaxRecord
	tries      int           // number of reads of an unreadable or damaged block
	bytes      *atomic.Int64 // counts the delivered bytes; may be nil
	onProgress func()        // called for every block; may be nil

	clock func() time.Time // nil: reads are not measured
	took  *time.Duration   // of the reads

	at         int64             // offset of the next block
	header     [blockHeader]byte // of the next block, if haveHeader
	haveHeader bool
	buf        []byte
	unpacked   []byte // records of the current block, if it was packed
	large      largeBlock
}

// largeBlock is the current block, if next delivered only its beginning.
type largeBlock struct {
	at     int64 // of its payload
	length int
	sum    uint32
}

// next delivers the next block, or io.EOF. The payload is valid until the next call. If
// whole is false, it is only the beginning of a large block.
func (r *blockReader) next() (payload []byte, whole bool, err error) {
	if r.clock == nil {
		return r.nextBlock()
	}
	began := r.clock()
	payload, whole, err = r.nextBlock()
	*r.took += r.clock().Sub(began)
	return payload, whole, err
}

func (r *blockReader) nextBlock() (payload []byte, whole bool, err error) {
	r.large = largeBlock{}
	if r.at == r.size {
		return nil, false, io.EOF
	}
	for try := 1; ; try++ {
		if payload, whole, err = r.read(); err == nil {
			return payload, whole, nil
		}
		if try >= r.tries || errors.Is(err, ErrStalled) {
			return nil, false, r.explain(err)
		}
		r.haveHeader = false
	}
}

// wholeBlock delivers the next block, completed by load if it is large. It reuses big.
func (r *blockReader) wholeBlock(big *[]byte) (payload []byte, err error) {
	payload, whole, err := r.next()
	if err != nil || whole {
		return payload, err
	}
	*big, err = r.load(*big)
	return *big, err
}

// load reads the rest of the large block that next began, and verifies the whole block. It
// reuses buf.
func (r *blockReader) load(buf []byte) ([]byte, error) {
	b := r.large
	buf = append(buf[:0], r.buf...)
	for try := 1; ; try++ {
		whole, err := r.fill(buf, b.length, b.at)
		if err == nil {
			err = verify(whole, b.sum, b.at)
		}
		if err == nil {
			return whole, nil
		}
		if try >= r.tries {
			return nil, r.explain(err)
		}
		buf = buf[:0] // The beginning may be the damaged part.
	}
}

// part reads n bytes from offset at in the payload of the large block. It reuses buf.
func (r *blockReader) part(buf []byte, at, n int) ([]byte, error) {
	for try := 1; ; try++ {
		part, err := r.fill(buf[:0], n, r.large.at+int64(at))
		if err == nil {
			return part, nil
		}
		if try >= r.tries {
			return nil, r.explain(err)
		}
	}
}

// explain adds the segment to an error.
func (r *blockReader) explain(err error) error {
	if r.ctx.Err() != nil {
		return context.Cause(r.ctx)
	}
	var damage *damageError
	var corrupt *CorruptError
	switch {
	case errors.As(err, &damage):
		corrupt = damage.in(r.seg)
		corrupt.Offset += r.seg.Offset
		return corrupt
	case errors.As(err, &corrupt):
		return corrupt
	case errors.Is(err, ErrRecordTooLarge):
		return err
	}
	return notReadable(r.seg, err)
}

// read reads the block at r.at, together with the header after it.
func (r *blockReader) read() (payload []byte, whole bool, err error) {
	if err := r.ctx.Err(); err != nil {
		return nil, false, err
	}
	length, sum, packed, err := r.readHeader()
	if err != nil {
		return nil, false, err
	}
	start := r.at + blockHeader
	end := start + int64(length)
	if length > blockTarget {
		r.large = largeBlock{at: start, length: length, sum: sum}
		if payload, err = r.beginning(length, start); err != nil {
			return nil, false, err
		}
		r.moveTo(end)
		return payload, false, nil
	}
	n := length
	if r.size-end >= blockHeader {
		n += blockHeader
	}
	if r.buf, err = r.fill(r.buf[:0], n, start); err != nil {
		return nil, false, err
	}
	payload = r.buf[:length]
	if err := verify(payload, sum, start); err != nil {
		return nil, false, err
	}
	if packed {
		if r.unpacked, err = unpack(r.unpacked, payload, start); err != nil {
			return nil, false, err
		}
		payload = r.unpacked
	}
	r.moveTo(end)
	r.haveHeader = copy(r.header[:], r.buf[length:]) == blockHeader
	return payload, true, nil
}

// moveTo moves to the block that begins at end.
func (r *blockReader) moveTo(end int64) {
	if r.bytes != nil {
		r.bytes.Add(end - r.at)
	}
	if r.onProgress != nil {
		r.onProgress()
	}
	r.at = end
	r.haveHeader = false
}

// readHeader reads the header at r.at, unless it is known already.
func (r *blockReader) readHeader() (length int, sum uint32, packed bool, err error) {
	remaining := r.size - r.at - blockHeader
	if remaining < 1 {
		return 0, 0, false, damaged(r.at, "%d bytes are too few for a block", remaining+blockHeader)
	}
	if !r.haveHeader {
		if err := r.in.readAt(r.header[:], r.at); err != nil {
			return 0, 0, false, err
		}
	}
	length, sum, packed, ok := parseBlockHeader(&r.header)
	if !ok {
		return 0, 0, false, damaged(r.at, "block header %x is damaged", r.header)
	}
	if length == 0 || length > MaxMaxRecord+maxLengths || packed && length > blockTarget || int64(length) > remaining {
		return 0, 0, false, damaged(r.at, "block of %d bytes, with %d remaining", length, remaining)
	}
	return length, sum, packed, nil
}

func parseBlockHeader(header *[blockHeader]byte) (length int, sum uint32, packed, ok bool) {
	n := binary.BigEndian.Uint32(header[:])
	sum = binary.BigEndian.Uint32(header[4:])
	return int(n &^ packedBlock), sum, n&packedBlock != 0, checksum(header[:8]) == binary.BigEndian.Uint32(header[8:])
}

// keyGuess is the number of bytes first read of a large block, which usually include the
// whole key.
const keyGuess = 4 << 10

// beginning reads the beginning of a large block.
func (r *blockReader) beginning(length int, at int64) ([]byte, error) {
	if r.limit > 0 && length > r.limit+maxLengths {
		return nil, tooLarge(r.seg.Offset+at, length, r.limit)
	}
	var err error
	if r.buf, err = r.fill(r.buf[:0], min(length, keyGuess), at); err != nil {
		return nil, err
	}
	if _, _, end, ok := lengths(r.buf); !ok || end != length {
		return nil, damaged(at, "large block of %d bytes does not hold one record", length)
	}
	return r.buf, nil
}

// fill extends buf, which has the bytes from offset at, to at least n bytes. It allocates
// while bytes arrive, because n may be wrong. In a file that has the first bytes, it trusts
// n: to grow step by step would take half as much memory again.
func (r *blockReader) fill(buf []byte, n int, at int64) ([]byte, error) {
	const step = 1 << 20
	if len(buf) == 0 && cap(buf) > step && n < step {
		buf = nil // it was for a large record
	}
	for len(buf) < n {
		start := len(buf)
		end := min(n, start+max(start, step))
		if _, isFile := r.in.(*fileInput); isFile && start >= step {
			end = n
		}
		buf = slices.Grow(buf, end-start)[:end]
		if err := r.in.readAt(buf[start:], at+int64(start)); err != nil {
			return nil, err
		}
	}
	return buf, nil
}

func verify(payload []byte, want uint32, at int64) error {
	if got := checksum(payload); got != want {
		return damaged(at, "block of %d bytes has checksum %08x, should have %08x", len(payload), got, want)
	}
	return nil
}

// fileInput reads a range of a file.
type fileInput struct {
	file  io.ReaderAt
	base  int64
	owned io.Closer // the file; nil if the caller closes it
}

func (f *fileInput) readAt(p []byte, at int64) error {
	n, err := f.file.ReadAt(p, f.base+at)
	switch {
	case n == len(p):
		return nil
	case errors.Is(err, io.EOF): // The range existed when the file was written.
		return damaged(at+int64(n), "the file ends here")
	}
	return err
}

func (f *fileInput) close() error {
	if f.owned == nil {
		return nil
	}
	return f.owned.Close()
}

// openFile opens a segment in a local file.
func openFile(ctx context.Context, s wire.Segment) (*blockReader, error) {
	f, err := OpenFile(s.File)
	if err != nil {
		return nil, notReadable(s, err)
	}
	if s.Offset < 0 || s.Length < 0 {
		f.Close()
		return nil, &UnreadableError{Segment: s, Err: fmt.Errorf("its offset and length must not be negative, got %d and %d", s.Offset, s.Length)}
	}
	return &blockReader{ctx: ctx, seg: s, in: &fileInput{file: f, base: s.Offset, owned: f}, size: s.Length}, nil
}
