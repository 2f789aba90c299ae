package runtime

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/quernmr/quern/shuffle"
)

// binaryUnit is about the size of what a split of a binary file is made of: the blocks
// of the segment file, of which it has those that begin in it.
const binaryUnit = 64 << 10

// BinaryRecord appends one record of the binary format to dst, as [Output.Write] takes it.
func BinaryRecord(dst, key, value []byte) []byte { return shuffle.AppendRecord(dst, key, value) }

// Binary gives the records of files in the binary format, which are segment files;
// package shuffle draws them. Key and value are valid until the next record.
func (s *Split) Binary() iter.Seq2[[]byte, []byte] {
	return func(yield func(key, value []byte) bool) {
		s.each(atOffset, func(c Chunk, in *stream, _ int64) (bool, error) {
			s.path = "" // for [Split.Where]
			records, err := s.stored(c, in)
			if err != nil {
				return false, storedError(c, s.recordMax, err)
			}
			for records.Next() {
				s.records++
				s.pulse.beat()
				if !yield(records.Key(), records.Value()) {
					return false, nil
				}
			}
			s.consumed += c.Length
			return true, storedError(c, s.recordMax, records.Err())
		})
	}
}

// stored begins to read a chunk. The index of the file is no part of it: what reading
// that took, from wherever the file's end is, says nothing of what the chunk takes. A
// file of one block is read at once.
func (s *Split) stored(c Chunk, in *stream) (*shuffle.Reader, error) {
	var file io.ReaderAt = &openChunk{File: in.file, split: s}
	small := c.Size <= binaryUnit
	if small {
		content := make([]byte, c.Size)
		n, err := file.ReadAt(content, 0)
		if n < len(content) && !errors.Is(err, io.EOF) {
			return nil, err
		}
		file = bytes.NewReader(content[:n])
	}
	records, err := shuffle.NewReader(s.ctx, shuffle.Range{Name: c.Path, File: file,
		Size: c.Size, From: c.Offset, To: in.end, MaxRecord: s.recordMax})
	if !small {
		in.file.forget()
	}
	return records, err
}

// storedError says it in terms of the file: it is input, not an output of this job's
// that could be made again.
func storedError(c Chunk, most int, err error) error {
	if large, ok := errors.AsType[*shuffle.TooLargeError](err); ok {
		return Fatal(fmt.Errorf("read %s: %w: %d bytes at offset %d, with %s=%d", c.Path, ErrRecordTooLarge, large.Size, large.Offset, RecordMaxBytes, most))
	}
	if damaged, ok := errors.AsType[*shuffle.CorruptError](err); ok {
		return fmt.Errorf("%w at offset %d: %s", ErrCorrupt, damaged.Offset, damaged.Reason)
	}
	if unread, ok := errors.AsType[*shuffle.UnreadableError](err); ok {
		return unread.Err
	}
	return err
}
