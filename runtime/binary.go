package runtime

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
)

// A binary file is a stream of records laid over blocks of 64 KiB, of which the
// last may be shorter, so that a reader can start at any block:
//
//	file:  | block | block | … |          numbers little-endian
//	block: +-----------------+--------------------+-----------------+--------------+
//	       | "QBN1", 4 bytes | CRC32C u32 of what | first u32       | payload, at  |
//	       |                 | follows            |                 | most 65,524  |
//	       +-----------------+--------------------+-----------------+--------------+
//
// First is where in the payload the first record that begins in it begins,
// 0xFFFFFFFF when none does. The payloads together are the records:
//
//	record: | key length uvarint | key | value length uvarint | value |
//
// A split has the records that begin in a block which begins in the split. The
// bytes follow from the records alone, so equal records give equal files.
const (
	binaryBlock = 64 << 10
	binaryHead  = 12
	binaryMagic = "QBN1"
	noRecord    = 1<<32 - 1
)

// BinaryRecord appends one record of a binary file to dst.
func BinaryRecord(dst, key, value []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(key)))
	dst = append(dst, key...)
	dst = binary.AppendUvarint(dst, uint64(len(value)))
	return append(dst, value...)
}

// sealBlock completes the header of a block whose payload is in place.
func sealBlock(block []byte, first int) {
	copy(block, binaryMagic)
	binary.LittleEndian.PutUint32(block[8:], uint32(first))
	binary.LittleEndian.PutUint32(block[4:], castagnoli(block[8:]))
}

// openBlock checks a block; first is len(payload) or more when no record begins in it.
func openBlock(block []byte) (payload []byte, first int, err error) {
	if len(block) < binaryHead || string(block[:4]) != binaryMagic {
		return nil, 0, fmt.Errorf("%w: not a block of a binary file", ErrCorrupt)
	}
	if binary.LittleEndian.Uint32(block[4:]) != castagnoli(block[8:]) {
		return nil, 0, fmt.Errorf("%w: wrong checksum", ErrCorrupt)
	}
	at := binary.LittleEndian.Uint32(block[8:])
	payload = block[binaryHead:]
	if at != noRecord && int64(at) >= int64(len(payload)) {
		return nil, 0, fmt.Errorf("%w: first record at %d of %d", ErrCorrupt, at, len(payload))
	}
	return payload, int(min(int64(at), int64(len(payload)))), nil
}

// Binary gives the records of files in the binary output format. Key and value
// are valid until the next record.
func (s *Split) Binary() iter.Seq2[[]byte, []byte] {
	return func(yield func(key, value []byte) bool) {
		block := make([]byte, binaryBlock)
		var carry []byte
		firstBlock := func(c Chunk) int64 { return (c.Offset + binaryBlock - 1) / binaryBlock * binaryBlock }
		s.each(firstBlock, func(c Chunk, in *stream, at int64) (bool, error) {
			b := binaryReader{most: s.recordMax, block: block, carry: carry[:0], at: at - binaryBlock}
			b.more = func(p []byte, at int64) (int, error) {
				n, _, err := s.readFull(c, in, p, at)
				return n, err
			}
			more, err := b.run(in.end, func(key, value []byte) bool {
				s.records++
				s.pulse.beat()
				return yield(key, value)
			})
			carry = b.carry
			s.consumed += c.Length
			if errors.Is(err, ErrRecordTooLarge) {
				err = tooLarge(c.Path, b.at, s.recordMax)
			} else if err != nil {
				err = fmt.Errorf("block at offset %d: %w", b.at, err)
			}
			return more, err
		})
	}
}

// binaryReader reads the records of one chunk. Those within a block are given in
// place, those across blocks are put together in carry.
type binaryReader struct {
	more  func(p []byte, at int64) (int, error)
	most  int
	block []byte
	rest  []byte // of the block's payload
	carry []byte
	at    int64 // offset of the block
	ended bool
}

// next reads a block and returns where its first record begins; io.EOF at the end.
func (b *binaryReader) next() (first int, err error) {
	b.at += binaryBlock
	if b.ended {
		return 0, io.EOF
	}
	n, err := b.more(b.block, b.at)
	if err != nil {
		return 0, err
	}
	if n == 0 {
		return 0, io.EOF
	}
	b.ended = n < len(b.block)
	b.rest, first, err = openBlock(b.block[:n])
	return first, err
}

func (b *binaryReader) run(end int64, yield func(key, value []byte) bool) (bool, error) {
	for b.at+binaryBlock < end {
		first, err := b.next()
		if err == io.EOF {
			return true, nil
		}
		if err != nil {
			return false, err
		}
		b.rest = b.rest[first:] // what is before it belongs to a record of an earlier block
		for len(b.rest) > 0 {
			key, value, size, err := parseRecord(b.rest, b.most)
			if err == errShort {
				key, value, err = b.across()
			} else if err == nil {
				b.rest = b.rest[size:]
			}
			if err != nil {
				return false, err
			}
			if !yield(key, value) {
				return false, nil
			}
			if b.at >= end {
				return true, nil // that one reached into the next split
			}
		}
	}
	return true, nil
}

// across puts a record together that the block's rest begins.
func (b *binaryReader) across() (key, value []byte, err error) {
	b.carry = append(b.carry[:0], b.rest...)
	for {
		first, err := b.next()
		if err == io.EOF {
			return nil, nil, Fatal(fmt.Errorf("%w: it ends within a record", ErrTruncated))
		}
		if err != nil {
			return nil, nil, err
		}
		b.carry = append(b.carry, b.rest[:first]...)
		key, value, size, err := parseRecord(b.carry, b.most)
		switch {
		case err == nil && size == len(b.carry):
			b.rest = b.rest[first:]
			return key, value, nil
		case err == nil, err == errShort && first < len(b.rest):
			return nil, nil, fmt.Errorf("%w: a record ends elsewhere than the next begins", ErrCorrupt)
		case err != errShort:
			return nil, nil, err
		}
	}
}

// errShort says that a record goes on behind the bytes at hand.
var errShort = errors.New("record goes on")

func parseRecord(data []byte, most int) (key, value []byte, size int, err error) {
	key, n, err := parseBytes(data, most)
	if err != nil {
		return nil, nil, 0, err
	}
	value, m, err := parseBytes(data[n:], most-len(key))
	return key, value, n + m, err
}

func parseBytes(data []byte, most int) ([]byte, int, error) {
	length, n := binary.Uvarint(data)
	switch {
	case n < 0:
		return nil, 0, fmt.Errorf("%w: length of a record", ErrCorrupt)
	case n == 0:
		return nil, 0, errShort
	case length > uint64(most):
		return nil, 0, ErrRecordTooLarge
	case length > uint64(len(data)-n):
		return nil, 0, errShort
	}
	size := n + int(length)
	return data[n:size:size], size, nil
}
