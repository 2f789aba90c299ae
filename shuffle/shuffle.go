// Package shuffle moves records from maps to reduces: it collects them in a
// bounded piece of memory, sorts, combines and spills them, writes one segment
// file for each map attempt, serves and fetches partitions of it, and merges
// sorted runs. From job to job of a flow records travel in the same files, as they
// come. It knows bytes, partitions and byte order; it knows nothing of
// types, of the job's code, of who should fetch what, or of durability: its own
// files are lost with their machine and are made again by another attempt; what a
// [Writer] writes lives where its caller puts it.
//
// # Invariants
//
//	I1  Memory is bounded: a [Collector] or [Table] by the budget it was given, a
//	    [Merger] by its fan-in, each plus at most a few times the largest record.
//	    No length from a file or a peer is believed before it is checked.
//	I2  No byte is delivered before its block's checksum was verified.
//	I3  The output is a function of the records in their order of arrival:
//	    records of a partition are ordered by key, equal keys by arrival, and
//	    equal keys of several segments by the order in which these are given.
//	I4  Every file is written once from beginning to end and never changed.
//
// Nothing here may be used by two goroutines at once, except [Handler] and
// [Merger.BytesRead].
//
// # Records
//
// A record is encoded alike in memory, in a block, and for its digest. Lengths
// are unsigned varints (encoding/binary's) of the fewest bytes:
//
//	+------------+--------------+-----+-------+
//	| key length | value length | key | value |
//	+------------+--------------+-----+-------+
//
// A partition's digest is the sum, modulo 2^64, of the 64-bit xxHash (seed 0)
// of each encoded record, so that it does not depend on their order.
//
// # Segment file
//
// Map outputs, spilled runs, fetched partitions and merged runs are all segment
// files, the latter two with one partition. So is what a job of a flow writes for a
// later one, by a [Writer]: not sorted, and with a partition for each block, where a
// map of the later job can begin. Integers are big-endian.
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
// A block holds whole records, 1 byte to 64 KiB of them, or a single larger one:
//
//	+----------------+---------------------+--------------------------------+---------+
//	| length L u32   | CRC u32 of payload  | CRC u32 of the 8 bytes before  | payload |
//	+----------------+---------------------+--------------------------------+---------+
//	0                4                     8                                12     12+L
//
// Every CRC is CRC-32C. The header has its own, so that a damaged length is
// never acted on. The highest bit of the length says that a [Codec] has packed the
// block: the payload is its number, u8, and what it made of the records.
package shuffle

import (
	"errors"
	"fmt"

	"github.com/quernmr/quern/wire"
)

const (
	// DefaultMaxRecord is the limit on a record when [Config.MaxRecord] is 0.
	DefaultMaxRecord = 64 << 20

	// MaxMaxRecord is the largest limit on a record that can be asked for.
	MaxMaxRecord = 1 << 30

	// MaxPartitions is the most partitions a segment file can have.
	MaxPartitions = 1 << 20
)

// ErrRecordTooLarge reports a record above [Config.MaxRecord] or [Range.MaxRecord].
var ErrRecordTooLarge = errors.New("record too large")

// TooLargeError is the [ErrRecordTooLarge] of a [Reader].
type TooLargeError struct {
	Offset     int64 // of the record in the file
	Size, Most int   // bytes; of a record in a block of its own Size is that of the block
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("%v: at offset %d one of %d bytes, the limit is %d", ErrRecordTooLarge, e.Offset, e.Size, e.Most)
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

// CorruptError reports bytes that are not what was written: a checksum failed,
// or a file ends early. A map's output has to be made again.
type CorruptError struct {
	Segment wire.Segment
	Offset  int64 // of the damage, in the file or in what the URL names
	Reason  string
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("%s is corrupt at offset %d: %s", describe(e.Segment), e.Offset, e.Reason)
}

// UnreadableError reports a segment that cannot be read for another reason than
// corruption: its file is missing, the disk or the network fails. Of a file that
// is missing, here or on the server, errors.Is knows it as fs.ErrNotExist.
type UnreadableError struct {
	Segment wire.Segment
	Err     error
}

func (e *UnreadableError) Error() string {
	return fmt.Sprintf("read %s: %v", describe(e.Segment), e.Err)
}

func (e *UnreadableError) Unwrap() error { return e.Err }

// describe names a segment by what it is and where it is.
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
