package runtime

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/quernmr/quern/shuffle"
)

// binaryUnit is the typical size of a block of a binary file. A split consists of the
// blocks that begin in it.
const binaryUnit = 64 << 10

// BinaryRecord appends a record in the binary format to dst, for [Output.Write].
func BinaryRecord(dst, key, value []byte) []byte { return shuffle.AppendRecord(dst, key, value) }

// Binary yields the records of files in the binary format, which are segment files of
// package shuffle. Key and value are valid until the next record.
func (s *Split) Binary() iter.Seq2[[]byte, []byte] {
	return func(yield func(key, value []byte) bool) {
		s.each(atOffset, func(c Chunk, in *stream, _ int64) (bool, error) {
			records, err := s.binaryRecords(c, in)
			if err != nil {
				return false, binaryError(c, s.recordMax, err)
			}
			for records.Next() {
				if s.skip != nil && s.skip.begin() {
					s.skipRecord(fmt.Sprintf("%q\t%q", records.Key(), records.Value()))
					continue
				}
				s.records++
				if !s.pulse.beat() {
					return false, s.ctx.Err()
				}
				if !yield(records.Key(), records.Value()) {
					return false, nil
				}
			}
			s.recordBytes += c.Length
			return true, binaryError(c, s.recordMax, records.Err())
		})
	}
}

// binaryRecords opens a chunk. Reads of the index do not count as input, because the index
// may be on other machines than the chunk. A file of one block is read in one call.
func (s *Split) binaryRecords(c Chunk, in *stream) (*shuffle.Reader, error) {
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
		Size: c.Size, From: c.Offset, To: in.stop, MaxRecord: s.recordMax})
	if !small {
		in.file.forget()
	}
	return records, err
}

// binaryError converts an error of package shuffle to an input error. Otherwise it would
// count as a lost map output, which a rerun can recompute.
func binaryError(c Chunk, limit int, err error) error {
	if large, ok := errors.AsType[*shuffle.TooLargeError](err); ok {
		return fatalInput(fmt.Errorf("read %s: %w: %d bytes at offset %d, with %s=%d", c.Path, ErrRecordTooLarge, large.Size, large.Offset, RecordMaxBytes, limit))
	}
	if damaged, ok := errors.AsType[*shuffle.CorruptError](err); ok {
		return fmt.Errorf("%w at offset %d: %s", ErrCorrupt, damaged.Offset, damaged.Reason)
	}
	if unread, ok := errors.AsType[*shuffle.UnreadableError](err); ok {
		return unread.Err
	}
	return err
}
