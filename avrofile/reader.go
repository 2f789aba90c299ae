package avrofile

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/twmb/avro"
	"github.com/twmb/avro/ocf"
)

const (
	readSize    = 64 << 10
	firstRead   = 4 << 10  // of a header
	maxHeader   = 16 << 20 // bytes
	freeContent = 64 << 20 // that a block may have in any ratio
	blockExtra  = 256 << 20
	emptyExtra  = 4096 // records without bytes that a block may have
)

// Limits of what a reader takes. Zero values mean 64 MiB for a record, and no limit of the ratio.
type Limits struct {
	MaxRecord int   // encoded bytes
	MaxRatio  int64 // maximum content for each stored byte of a block, after 64 MiB
}

// Reader reads the blocks of a file.
type Reader struct {
	Schema   *avro.Schema // with which the file was written
	Codec    string
	Metadata map[string][]byte
	Sync     [syncSize]byte

	file         io.ReaderAt
	size, header int64 // bytes
	limits       Limits
	codec        ocf.Codec // nil: null
	stored       []byte    // the last block
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
	r := &Reader{file: file, size: size, limits: l}
	if err := r.readHeader(); err != nil {
		return nil, err
	}
	return r, nil
}

// damaged returns an error of the file's content.
func damaged(offset int64, format string, args ...any) error {
	return &Error{offset, fmt.Errorf(format, args...)}
}

// failed returns an error of reading at an offset, which is the content's if the file is shorter than its size.
func failed(offset int64, err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return damaged(offset, "it ends too early")
	}
	return err
}

// headerSchema describes the header, as Avro's specification does.
var headerSchema = avro.MustParse(`{"type": "record", "name": "org.apache.avro.file.Header", "fields": [
	{"name": "magic", "type": {"type": "fixed", "name": "Magic", "size": 4}},
	{"name": "meta", "type": {"type": "map", "values": "bytes"}},
	{"name": "sync", "type": {"type": "fixed", "name": "Sync", "size": 16}}]}`)

type header struct {
	Magic [len(magic)]byte  `avro:"magic"`
	Meta  map[string][]byte `avro:"meta"`
	Sync  [syncSize]byte    `avro:"sync"`
}

func (r *Reader) readHeader() error {
	var h header
	for length := min(r.size, firstRead); ; length = min(2*length, r.size, maxHeader) {
		head := make([]byte, length)
		if n, err := r.file.ReadAt(head, 0); n < len(head) {
			return failed(int64(n), err)
		}
		switch {
		case len(head) == 0:
			return damaged(0, "not an Avro file: it is empty")
		case !bytes.HasPrefix(head, []byte(magic)):
			return damaged(0, "not an Avro file: it begins with %q, not with %q", head[:min(len(head), len(magic))], magic)
		}
		rest, err := headerSchema.Decode(head, &h)
		if err == nil {
			r.header, r.Metadata, r.Sync = length-int64(len(rest)), h.Meta, h.Sync
			break
		}
		if length == min(r.size, maxHeader) {
			return damaged(0, "header in the first %d bytes: %w", length, err)
		}
	}
	var err error
	if r.Schema, err = avro.Parse(string(h.Meta["avro.schema"])); err != nil {
		return damaged(0, "schema of the file: %w", err)
	}
	r.Codec = "null"
	if name, ok := h.Meta["avro.codec"]; ok {
		r.Codec = string(name)
	}
	if r.codec, err = decompressor(r.Codec); err != nil {
		return damaged(0, "%w", err)
	}
	return nil
}

// Close frees the reader's memory. It does not close the file.
func (r *Reader) Close() {
	if r.codec != nil {
		r.codec.Close()
	}
}

// Blocks returns the blocks of the piece of the file from one offset to another. After an error there are no more.
func (r *Reader) Blocks(from, to int64) iter.Seq2[Block, error] {
	return func(yield func(Block, error) bool) {
		at, err := r.firstBlock(from, to)
		if err != nil {
			yield(Block{}, err)
			return
		}
		if at == r.size {
			return
		}
		file := bufio.NewReaderSize(io.NewSectionReader(r.file, at, r.size-at), readSize)
		for at < r.size && at-syncSize < to {
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
	if from <= r.header-syncSize {
		return r.header, nil
	}
	end := min(min(to, r.size)+syncSize-1, r.size) // of the last mark that begins before to
	part := make([]byte, min(readSize, max(end-from, 0)))
	for from+syncSize <= end {
		n := min(int64(len(part)), end-from)
		if got, err := r.file.ReadAt(part[:n], from); int64(got) < n {
			return 0, failed(from+int64(got), err)
		}
		if i := bytes.Index(part[:n], r.Sync[:]); i >= 0 {
			return from + int64(i) + syncSize, nil
		}
		from += n - syncSize + 1
	}
	return r.size, nil
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
	switch left := r.size - begin - syncSize; {
	case count < 0 || size < 0:
		return b, 0, damaged(at, "a block of %d records in %d bytes", count, size)
	case size > left:
		return b, 0, damaged(at, "a block of %d bytes, but the file has only %d more: it ends too early, or is damaged", size, max(left, 0))
	case size > r.maxBlock():
		return b, 0, damaged(at, "a block of %d bytes, at most %d are allowed", size, r.maxBlock())
	}
	if int64(cap(r.stored)) < size+syncSize {
		r.stored = make([]byte, size+syncSize)
	}
	stored := r.stored[:size+syncSize]
	if n, err := io.ReadFull(file, stored); err != nil {
		return b, 0, failed(begin+int64(n), err)
	}
	if !bytes.Equal(stored[size:], r.Sync[:]) {
		return b, 0, damaged(at, "no sync mark of the file follows the block's %d bytes", size)
	}
	if count > 0 {
		if b.Content, err = r.content(stored[:size:size]); err != nil {
			return b, 0, damaged(at, "%s block of %d bytes: %w", r.Codec, size, err)
		}
	}
	if b.Count = count; count > int64(len(b.Content))+emptyExtra {
		return b, 0, damaged(at, "a block of %d records in %d bytes of content", count, len(b.Content))
	}
	return b, begin + size + syncSize, nil
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

func (r *Reader) maxBlock() int64 { return int64(r.limits.MaxRecord) + blockExtra }

// content decompresses a block.
func (r *Reader) content(stored []byte) ([]byte, error) {
	if r.codec == nil {
		return stored, nil
	}
	limit, size := r.maxBlock(), int64(len(stored))
	if ratio := r.limits.MaxRatio; ratio > 0 && size < limit/ratio {
		limit = min(limit, max(freeContent, ratio*size))
	}
	if r.Codec == "snappy" { // it takes memory for the length that the block claims; 3 bytes become 64 at most
		limit = min(limit, 22*size+64)
	}
	return r.codec.(ocf.BoundedDecompressor).DecompressBounded(stored, limit)
}

// Records returns the records of a piece of a file. If schema is not nil, they are resolved to it. After an error
// there are no more.
func Records[T any](r *Reader, schema *avro.Schema, from, to int64) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var record, zero T
		resolved := r.Schema
		if schema != nil {
			var err error
			if resolved, err = avro.Resolve(r.Schema, schema); err != nil {
				yield(zero, damaged(0, "the file's schema does not match the program's: %w", err))
				return
			}
		}
		for b, err := range r.Blocks(from, to) {
			for i := int64(0); i < b.Count && err == nil; i++ {
				record = zero
				var rest []byte
				if rest, err = resolved.Decode(b.Content, &record); err != nil {
					err = damaged(b.Offset, "record %d of the block: %w", i, err)
				} else if n := len(b.Content) - len(rest); n > r.limits.MaxRecord {
					err = damaged(b.Offset, "record %d of the block has %d bytes, at most %d are allowed", i, n, r.limits.MaxRecord)
				} else if b.Content = rest; !yield(record, nil) {
					return
				}
			}
			if err == nil && len(b.Content) > 0 {
				err = damaged(b.Offset, "the block has %d bytes more than its %d records", len(b.Content), b.Count)
			}
			if err != nil {
				yield(zero, err)
				return
			}
		}
	}
}
