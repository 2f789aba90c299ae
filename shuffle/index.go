package shuffle

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"

	"github.com/cespare/xxhash/v2"

	"github.com/quernmr/quern/wire"
)

// Index is a segment file's table of contents.
type Index struct {
	Partitions []Partition
}

// Partition describes a partition's blocks.
type Partition struct {
	Offset  int64 // in the file
	Length  int64 // bytes, block headers included
	Records int64
	Digest  uint64 // equal for equal sets of records
}

const (
	magic       = "QSEG\x00\x00\x00\x01"
	entryBytes  = 32
	footerBytes = 8 + len(magic)
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// Digest returns a digest of all partitions. Equal digests mean equal records in each.
func (x *Index) Digest() uint64 {
	d := xxhash.New()
	var b [16]byte
	for _, p := range x.Partitions {
		binary.BigEndian.PutUint64(b[:], uint64(p.Records))
		binary.BigEndian.PutUint64(b[8:], p.Digest)
		d.Write(b[:])
	}
	return d.Sum64()
}

// bytes returns the length of all partitions.
func (x *Index) bytes() (n int64) {
	for _, p := range x.Partitions {
		n += p.Length
	}
	return n
}

// ReadIndex reads the index of a segment file. Damage is a [CorruptError].
func ReadIndex(file string) (*Index, error) {
	f, err := OpenFile(file)
	if err != nil {
		return nil, fmt.Errorf("read index: %w", err)
	}
	defer f.Close()
	return readIndex(f)
}

func readIndex(f *os.File) (*Index, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("read index: %w", err)
	}
	return readIndexOf(f, info.Size())
}

func readIndexOf(f *os.File, size int64) (*Index, error) {
	index, err := decodeIndex(f, size, tailGuess, true)
	var damage *damageError
	switch {
	case errors.As(err, &damage):
		return nil, damage.in(wire.Segment{Map: -1, File: f.Name()})
	case err != nil:
		return nil, fmt.Errorf("read index: %w", err)
	}
	return index, nil
}

// damageError is a CorruptError without its segment.
type damageError struct {
	offset int64
	reason string
}

func (e *damageError) Error() string { return e.reason }

func (e *damageError) in(s wire.Segment) *CorruptError {
	return &CorruptError{Segment: s, Offset: e.offset, Reason: e.reason}
}

func damaged(offset int64, format string, args ...any) error {
	return &damageError{offset, fmt.Sprintf(format, args...)}
}

// tailGuess is the size of the first read at the end of a file, enough for an index of 126
// partitions.
const tailGuess = 4 << 10

// decodeIndex reads the index of a segment file of size bytes. It first reads guess bytes
// at the end, then checks the beginning if head is set. Callers may skip this check: each
// place in a remote file costs a connection.
func decodeIndex(r io.ReaderAt, size int64, guess int, head bool) (*Index, error) {
	if size < int64(len(magic)+footerBytes) {
		return nil, damaged(0, "%d bytes are too few for a segment file", size)
	}
	tail, err := readTail(r, size, int64(guess))
	if err != nil {
		return nil, err
	}
	if head {
		if err := readHead(r); err != nil {
			return nil, err
		}
	}
	footer, end := tail[len(tail)-footerBytes:], size-int64(footerBytes)
	if string(footer[8:]) != magic {
		return nil, damaged(end+8, "ends with %q, not as a segment file", footer[8:])
	}
	partitions := int64(binary.BigEndian.Uint32(footer))
	start := end - partitions*entryBytes
	if partitions > MaxPartitions || start < int64(len(magic)) {
		return nil, damaged(end, "%d partitions in a file of %d bytes", partitions, size)
	}
	if size-start > int64(len(tail)) {
		if tail, err = readTail(r, size, size-start); err != nil {
			return nil, err
		}
	}
	table := tail[int64(len(tail))-(size-start) : len(tail)-footerBytes+4]
	if got, want := checksum(table), binary.BigEndian.Uint32(tail[len(tail)-footerBytes+4:]); got != want {
		return nil, damaged(start, "index has checksum %08x, should have %08x", got, want)
	}
	return parseIndex(table[:len(table)-4], start)
}

// readHead checks the beginning of a file.
func readHead(r io.ReaderAt) error {
	var head [len(magic)]byte
	if _, err := r.ReadAt(head[:], 0); err != nil {
		return err
	}
	if string(head[:]) != magic {
		return damaged(0, "begins with %q, not as a segment file", head)
	}
	return nil
}

// readTail reads the last bytes of a file, or all of it.
func readTail(r io.ReaderAt, size, limit int64) ([]byte, error) {
	tail := make([]byte, min(limit, size))
	n, err := r.ReadAt(tail, size-int64(len(tail)))
	switch {
	case n == len(tail):
		return tail, nil
	case errors.Is(err, io.EOF):
		return nil, damaged(size-int64(len(tail)-n), "the file ends here")
	}
	return nil, err
}

// parseIndex decodes the entries of an index that begins at offset end.
func parseIndex(table []byte, end int64) (*Index, error) {
	index := &Index{Partitions: make([]Partition, len(table)/entryBytes)}
	at := int64(len(magic))
	for i := range index.Partitions {
		b := table[i*entryBytes:]
		p := Partition{
			Offset:  int64(binary.BigEndian.Uint64(b)),
			Length:  int64(binary.BigEndian.Uint64(b[8:])),
			Records: int64(binary.BigEndian.Uint64(b[16:])),
			Digest:  binary.BigEndian.Uint64(b[24:]),
		}
		if p.Offset != at || p.Length < 0 || p.Length > end-at || p.Records < 0 || p.Records > maxRecords(p.Length) {
			return nil, damaged(end+int64(i)*entryBytes, "index entry %d is impossible: %+v", i, p)
		}
		at += p.Length
		index.Partitions[i] = p
	}
	if at != end {
		return nil, damaged(at, "%d bytes belong to no partition", end-at)
	}
	return index, nil
}

// appendIndex encodes the index and the end of the file.
func appendIndex(dst []byte, index *Index) []byte {
	start := len(dst)
	for _, p := range index.Partitions {
		dst = binary.BigEndian.AppendUint64(dst, uint64(p.Offset))
		dst = binary.BigEndian.AppendUint64(dst, uint64(p.Length))
		dst = binary.BigEndian.AppendUint64(dst, uint64(p.Records))
		dst = binary.BigEndian.AppendUint64(dst, p.Digest)
	}
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(index.Partitions)))
	dst = binary.BigEndian.AppendUint32(dst, checksum(dst[start:]))
	return append(dst, magic...)
}
