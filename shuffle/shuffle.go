// Package shuffle moves records from maps to reduces. It collects them in bounded memory,
// sorts, combines and spills them, writes one segment file per map attempt, serves and
// fetches its partitions, and merges sorted runs. Jobs of a flow pass unsorted records to
// each other in the same file format. The package knows bytes, partitions and byte order. It
// does not know types, the job's code, or the plan of fetches. It does not sync files: if a
// machine loses them, another attempt recomputes them.
//
// # Invariants
//
//	I1  Memory is bounded: a [Collector] or [Table] by its budget, a [Merger] by
//	    its fan-in, each plus at most a few times the largest record. Lengths from
//	    files and peers are checked before use.
//	I2  Only verified blocks are delivered: each block's checksum is checked first.
//	I3  Equal records in an equal order of arrival give equal output. A partition
//	    is ordered by key, equal keys by arrival, and equal keys of several
//	    segments by the order of the segments.
//	I4  Every file is written once from beginning to end and never changed.
//
// Only [Handler] and [Merger.BytesRead] are safe for concurrent use.
//
// # Records
//
// A record has one encoding in memory, in a block, and for its digest. Lengths are unsigned
// varints (encoding/binary's) in the shortest form:
//
//	+------------+--------------+-----+-------+
//	| key length | value length | key | value |
//	+------------+--------------+-----+-------+
//
// A partition's digest is the sum, modulo 2^64, of the 64-bit xxHash (seed 0) of each
// encoded record. It does not depend on their order.
//
// # Segment file
//
// Map outputs, spilled runs, fetched partitions and merged runs are segment files. Fetched
// partitions and merged runs have one partition. The output of a job for a later job of its
// flow is a segment file too, made by a [Writer]. It is unsorted, with one partition per
// block, and a split of the later job can begin at any partition. Integers are big-endian.
//
//	+----------------------+ 0
//	| "QSEG"   version u32 |
//	+----------------------+ 8
//	| blocks, partition 0  |
//	| blocks, partition 1  |   back to back, in order; a partition may be empty
//	| ...                  |
//	+----------------------+
//	| index entry 0        |   offset u64, length u64 (bytes of its blocks, their
//	| index entry 1        |   headers included), records u64, digest u64
//	| ...                  |
//	+----------------------+ size - 16
//	| partitions u32       |
//	| CRC u32              |   of all index entries and the field before
//	| "QSEG"   version u32 |
//	+----------------------+ size
//
// A block holds 1 byte to 64 KiB of whole records, or a single larger record:
//
//	+----------------+---------------------+--------------------------------+---------+
//	| length L u32   | CRC u32 of payload  | CRC u32 of the 8 bytes before  | payload |
//	+----------------+---------------------+--------------------------------+---------+
//	0                4                     8                                12     12+L
//
// Every CRC is CRC-32C. The header has its own CRC, so that a reader never uses a damaged
// length. The highest bit of the length means that a [Codec] packed the block. Then the
// payload is the codec's number, u8, and the packed records.
//
// # Batch
//
// Partitions of many maps may be so small that a request and a file for each would cost more
// than their bytes. [FetchBatch] requests many partitions of many map outputs together:
//
//	GET /shuffle/<job>/batch?maps=3.1000,5.1001&partitions=3,7-9
//
// A map has its attempt after the point. Partitions ascend; a range has both ends. The answer
// has a section for each map output, in the order of the request:
//
//	+----------+--------------------+-------------------------------------+------+--------+
//	| state u8 | length of body u32 | CRC u32 of the 5 bytes and the body | body | blocks |
//	+----------+--------------------+-------------------------------------+------+--------+
//	0          1                    5                                     9
//
//	state  body
//	0      the table: an entry for each requested partition that is not empty, ascending
//	1      an error text: there is no such map output
//	2      an error text: its index is damaged
//	3      an error text: it cannot be read
//	4      empty. The answer is full and ends here: request the other map outputs again
//
//	entry: partition uvarint, 2 × length + follows uvarint, records uvarint, digest u64
//
// The blocks of the entries with follows = 1 come after the table, those of each partition after
// a zero byte. If the server cannot read on, a section of state 2 or 3 for the same map output comes
// in place of that byte, and the receiver drops the partitions before it. An answer has at most
// 8 MiB of blocks. Those of a partition above 1 MiB are not in it, nor those
// beyond 8 MiB of one map output: they must be requested alone. All others must follow.
//
// The receiver verifies each block and each partition's digest. Then it merges the map
// outputs of each partition in memory and writes all runs into one segment file.
package shuffle

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/quernmr/quern/wire"
)

const (
	// DefaultMaxRecord is the limit on a record if [Config.MaxRecord] is 0.
	DefaultMaxRecord = 64 << 20

	// MaxMaxRecord is the highest value of [Config.MaxRecord].
	MaxMaxRecord = 1 << 30

	// MaxPartitions is the maximum number of partitions in a segment file.
	MaxPartitions = 1 << 20
)

// ErrRecordTooLarge reports a record above [Config.MaxRecord] or [Range.MaxRecord].
var ErrRecordTooLarge = errors.New("record too large")

// TooLargeError is the [ErrRecordTooLarge] of a [Reader].
type TooLargeError struct {
	Offset      int64 // of the record in the file
	Size, Limit int   // bytes; if a block has only this record, Size is the size of the block
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("%v: %d bytes at offset %d, the limit is %d", ErrRecordTooLarge, e.Size, e.Offset, e.Limit)
}

func (e *TooLargeError) Unwrap() error { return ErrRecordTooLarge }

// Records is a cursor over records sorted by key. Key and Value are valid until
// the next call of Next.
type Records interface {
	Next() bool
	Key() []byte
	Value() []byte
	Err() error // why Next returned false; nil at the end
}

// CorruptError reports damaged data: a checksum failed, or a file ends early. If the segment
// is a map output, its map must rerun.
type CorruptError struct {
	Segment wire.Segment
	Offset  int64 // of the damage, in the file or in the URL's content
	Reason  string
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("%s is corrupt at offset %d: %s", describe(e.Segment), e.Offset, e.Reason)
}

// UnreadableError reports a segment that cannot be read: its file is missing, or the disk
// or network fails. A missing file, here or on the server, matches fs.ErrNotExist. If this
// machine is [Exhausted], the error is another one, since the segment may be good.
type UnreadableError struct {
	Segment wire.Segment
	Err     error
}

func (e *UnreadableError) Error() string {
	return fmt.Sprintf("read %s: %v", describe(e.Segment), e.Err)
}

func (e *UnreadableError) Unwrap() error { return e.Err }

// notReadable returns the error of a segment that cannot be read.
func notReadable(s wire.Segment, err error) error {
	if Exhausted(err) {
		return fmt.Errorf("read %s: %w; this process needs more open files (ulimit -n), or its machine more of them or more memory", describe(s), err)
	}
	return &UnreadableError{Segment: s, Err: err}
}

// Exhausted reports whether the cause of an error is neither a file nor another machine: this process or machine has no
// file descriptor left, or no memory.
func Exhausted(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ENOMEM)
}

// describe names a segment with its location.
func describe(s wire.Segment) string {
	where := s.File
	if where == "" {
		where = s.URL
	}
	if s.Map < 0 {
		return "segment " + where
	}
	return fmt.Sprintf("segment %s of map %d attempt %d", where, s.Map, s.Attempt)
}
