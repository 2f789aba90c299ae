// Package container reads the blocks of Avro's object container files, and prints their records as Avro's JSON. It needs no
// library of Avro, so that commands stay small.
//
// A file, numbers as in Avro's type long (zigzag, variable length):
//
//	+-------------------+---------------------------------------+-----------------------+
//	| "Obj" and 1       | metadata: a map of bytes, with        | sync: 16 random bytes |
//	|                   | avro.schema and perhaps avro.codec    |                       |
//	+-------------------+---------------------------------------+-----------------------+
//	| block: count of records | size of the content | content, by the codec | sync      |
//	+-------------------------+---------------------+-----------------------+-----------+
//	| more blocks ...                                                                   |
//	+-----------------------------------------------------------------------------------+
//
// Codecs: null (also if the file names none), deflate (without checksum), snappy (with a CRC-32 of the content),
// zstandard and bzip2. Files with xz are refused.
//
// A block belongs to the piece of the file in which the sync mark before it begins. The mark of the header
// counts, too. So pieces of any size have each record once. This is the rule of Avro's DataFileReader.
//
// Only snappy, bzip2 and most zstandard blocks have checksums. A reader notices other damage only if the records do
// not fill their block, or if a sync mark differs. It cannot notice that a file ends after a block. HDFS has its
// own checksums.
//
// Memory follows the bytes that a file has, never a length that it claims. A block may have 256 MiB more than
// a record. A block with more than 4096 records of no bytes, as of the schema "null", is refused.
//
// A Reader is for one goroutine at a time.
package container

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
)

const (
	magic       = "Obj\x01"
	SyncSize    = 16       // bytes of a sync mark
	ReadSize    = 64 << 10 // bytes of a read
	FirstRead   = 4 << 10  // bytes of the first read, of a header
	maxHeader   = 16 << 20 // bytes
	freeContent = 64 << 20 // that a block may have in any ratio
	blockExtra  = 256 << 20
	emptyExtra  = 4096 // records without bytes that a block may have
)

// Error is an error in a file, with the offset of the header or block that has it.
type Error struct {
	Offset int64
	Err    error
}

func (e *Error) Error() string { return fmt.Sprintf("Avro file at offset %d: %v", e.Offset, e.Err) }

func (e *Error) Unwrap() error { return e.Err }

// Limits of what a reader takes. Zero values mean 64 MiB for a record, and no limit of the ratio.
type Limits struct {
	MaxRecord int   // encoded bytes
	MaxRatio  int64 // maximum content for each stored byte of a block, after 64 MiB
}

// Reader reads the blocks of a file.
type Reader struct {
	Codec    string
	Metadata map[string][]byte
	Sync     [SyncSize]byte
	Size     int64 // of the file
	Limits   Limits

	file   io.ReaderAt
	header int64 // bytes
	codec  codec
	stored []byte // the last block
}

// Block has records, one after the other, encoded by the file's schema. Content is valid until the next block.
type Block struct {
	Offset  int64 // in the file
	Count   int64 // of records
	Content []byte
}

// NewReader reads the header of a file with a size.
func NewReader(file io.ReaderAt, size int64, l Limits) (*Reader, error) {
	if l.MaxRecord == 0 {
		l.MaxRecord = 64 << 20
	}
	r := &Reader{file: file, Size: size, Limits: l}
	if err := r.readHeader(); err != nil {
		return nil, err
	}
	return r, nil
}

// Damaged returns an error of the file's content.
func Damaged(offset int64, format string, args ...any) error {
	return &Error{offset, fmt.Errorf(format, args...)}
}

// failed returns an error of reading at an offset, which is the content's if the file is shorter than its size.
func failed(offset int64, err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return Damaged(offset, "it ends too early")
	}
	return err
}

func (r *Reader) readHeader() error {
	for length := min(r.Size, FirstRead); ; length = min(2*length, r.Size, maxHeader) {
		head := make([]byte, length)
		if n, err := r.file.ReadAt(head, 0); n < len(head) {
			return failed(int64(n), err)
		}
		switch {
		case len(head) == 0:
			return Damaged(0, "not an Avro file: it is empty")
		case !bytes.HasPrefix(head, []byte(magic)):
			return Damaged(0, "not an Avro file: it begins with %q, not with %q", head[:min(len(head), len(magic))], magic)
		}
		err := r.decodeHeader(head)
		if err == nil {
			break
		}
		if length == min(r.Size, maxHeader) {
			return Damaged(0, "header in the first %d bytes: %w", length, err)
		}
	}
	r.Codec = "null"
	if name, ok := r.Metadata["avro.codec"]; ok {
		r.Codec = string(name)
	}
	var err error
	if r.codec, err = codecOf(r.Codec); err != nil {
		return Damaged(0, "%w", err)
	}
	return nil
}

// decodeHeader decodes magic, a map of bytes, and the sync mark.
func (r *Reader) decodeHeader(head []byte) error {
	d := decoder{data: head[len(magic):]}
	r.Metadata = make(map[string][]byte)
	d.blocks(func() {
		name := d.bytes()
		r.Metadata[string(name)] = d.bytes()
	})
	copy(r.Sync[:], d.take(SyncSize))
	r.header = int64(len(head) - len(d.data))
	return d.err
}

// Close frees the reader's memory. It does not close the file.
func (r *Reader) Close() { r.codec.close() }

// Blocks returns the blocks of the piece of the file from one offset to another. After an error there are no more.
func (r *Reader) Blocks(from, to int64) iter.Seq2[Block, error] {
	return func(yield func(Block, error) bool) {
		at, err := r.firstBlock(from, to)
		if err != nil {
			yield(Block{}, err)
			return
		}
		if at == r.Size {
			return
		}
		file := bufio.NewReaderSize(io.NewSectionReader(r.file, at, r.Size-at), ReadSize)
		for at < r.Size && at-SyncSize < to {
			b, next, err := r.block(file, at)
			if !yield(b, err) || err != nil {
				return
			}
			at = next
		}
	}
}

// firstBlock returns the offset after the first sync mark of a piece, or the file's size if there is none.
func (r *Reader) firstBlock(from, to int64) (int64, error) {
	if from <= r.header-SyncSize {
		return r.header, nil
	}
	end := min(min(to, r.Size)+SyncSize-1, r.Size) // of the last mark that begins before to
	part := make([]byte, min(ReadSize, max(end-from, 0)))
	for from+SyncSize <= end {
		n := min(int64(len(part)), end-from)
		if got, err := r.file.ReadAt(part[:n], from); int64(got) < n {
			return 0, failed(from+int64(got), err)
		}
		if i := bytes.Index(part[:n], r.Sync[:]); i >= 0 {
			return from + int64(i) + SyncSize, nil
		}
		from += n - SyncSize + 1
	}
	return r.Size, nil
}

// block reads the block at an offset, and returns the offset of the next one.
func (r *Reader) block(file *bufio.Reader, at int64) (b Block, next int64, err error) {
	b.Offset = at
	count, countSize, err := number(file, 0)
	if err != nil {
		return b, 0, located(at, err)
	}
	size, sizeSize, err := number(file, countSize)
	if err != nil {
		return b, 0, located(at, err)
	}
	file.Discard(countSize + sizeSize)
	begin := at + int64(countSize+sizeSize)
	switch left := r.Size - begin - SyncSize; {
	case count < 0 || size < 0:
		return b, 0, Damaged(at, "a block of %d records in %d bytes", count, size)
	case size > left:
		return b, 0, Damaged(at, "a block of %d bytes, but the file has only %d more: it ends too early, or is damaged", size, max(left, 0))
	case size > r.maxBlock():
		return b, 0, Damaged(at, "a block of %d bytes, at most %d are allowed", size, r.maxBlock())
	}
	if int64(cap(r.stored)) < size+SyncSize {
		r.stored = make([]byte, size+SyncSize)
	}
	stored := r.stored[:size+SyncSize]
	if n, err := io.ReadFull(file, stored); err != nil {
		return b, 0, failed(begin+int64(n), err)
	}
	if !bytes.Equal(stored[size:], r.Sync[:]) {
		return b, 0, Damaged(at, "no sync mark of the file follows the block's %d bytes", size)
	}
	if count > 0 {
		if b.Content, err = r.content(stored[:size:size]); err != nil {
			return b, 0, Damaged(at, "%s block of %d bytes: %w", r.Codec, size, err)
		}
	}
	if b.Count = count; count > int64(len(b.Content))+emptyExtra {
		return b, 0, Damaged(at, "a block of %d records in %d bytes of content", count, len(b.Content))
	}
	return b, begin + size + SyncSize, nil
}

// errNumber reports damage to a number.
var errNumber = errors.New("a number of more than 10 bytes")

// number reads a number some bytes ahead, and returns it with its own size.
func number(file *bufio.Reader, ahead int) (value int64, size int, err error) {
	b, err := file.Peek(ahead + binary.MaxVarintLen64)
	if len(b) > ahead {
		if value, size = binary.Varint(b[ahead:]); size > 0 {
			return value, size, nil
		}
		if size < 0 || len(b) == ahead+binary.MaxVarintLen64 {
			err = errNumber
		}
	}
	return 0, 0, err
}

// located adds an offset to an error of number.
func located(at int64, err error) error {
	if err == errNumber {
		return &Error{at, err}
	}
	return failed(at, err)
}

func (r *Reader) maxBlock() int64 { return int64(r.Limits.MaxRecord) + blockExtra }

// content decompresses a block.
func (r *Reader) content(stored []byte) ([]byte, error) {
	limit, size := r.maxBlock(), int64(len(stored))
	if ratio := r.Limits.MaxRatio; ratio > 0 && size < limit/ratio {
		limit = min(limit, max(freeContent, ratio*size))
	}
	return r.codec.decompress(stored, limit)
}

// Records yields nil after each record of a piece of a file. decode gets the content from a record on, and returns what
// comes after the record. After an error there are no more.
func (r *Reader) Records(from, to int64, decode func(content []byte) (rest []byte, err error)) iter.Seq[error] {
	return func(yield func(error) bool) {
		for b, err := range r.Blocks(from, to) {
			for i := int64(0); i < b.Count && err == nil; i++ {
				var rest []byte
				if rest, err = decode(b.Content); err != nil {
					err = Damaged(b.Offset, "record %d of the block: %w", i, err)
				} else if n := len(b.Content) - len(rest); n > r.Limits.MaxRecord {
					err = Damaged(b.Offset, "record %d of the block has %d bytes, at most %d are allowed", i, n, r.Limits.MaxRecord)
				} else if b.Content = rest; !yield(nil) {
					return
				}
			}
			if err == nil && len(b.Content) > 0 {
				err = Damaged(b.Offset, "the block has %d bytes more than its %d records", len(b.Content), b.Count)
			}
			if err != nil {
				yield(err)
				return
			}
		}
	}
}
