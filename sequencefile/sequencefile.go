// Package sequencefile reads and writes Hadoop's SequenceFiles: records of a key and a value, both encoded
// by Writable classes that the file names. Package writable has the classes.
//
// A file, numbers big-endian, vint as in package writable, text as a vint length and bytes:
//
//	+-------------+-------------------+---------------------+--------------------------+
//	| "SEQ" and 6 | key class, text   | value class, text   | compressed, in blocks:   |
//	|             |                   |                     | a byte each              |
//	+-------------+-------------------+---------------------+--------------------------+
//	| if compressed: codec class, text | metadata: count u32, then texts key and value  |
//	+----------------------------------+-----------------------------------------------+
//	| sync: 16 random bytes | records, or blocks ...                                   |
//	+-----------------------+----------------------------------------------------------+
//
// A record: length of key and value i32, length of the key i32, key, value. With the compression PerRecord the
// value is a stream of the codec. Before a record may be a sync mark: i32 -1 and the sync bytes.
//
// A block: a sync mark, the count of records as a vint, then four streams of the codec, each after its
// length as a vint: the keys' lengths as vints, the keys, the values' lengths, the values.
//
// Files of the versions 4 and 5 differ only in the header; older ones are refused.
//
// A sync mark belongs to the piece of the file in which it begins, and so do the records up to the next
// mark. Records before the first mark belong to the piece that begins at 0. So pieces of any size have each
// record once. This is Hadoop's rule, except for pieces that begin within the header.
//
// Only compressed parts have checksums, if their codec has any (see package compression). Readers cannot
// notice other damage that leaves the lengths right; HDFS has its own checksums.
//
// A Reader or Writer is for one goroutine at a time.
package sequencefile

import (
	"errors"
	"fmt"

	"github.com/quernmr/quern/compression"
)

// Compression says what a file compresses.
type Compression uint8

// The kinds of compression, by Hadoop's names.
const (
	None      Compression = iota
	PerRecord             // RECORD: each value
	Block                 // BLOCK: the keys and values of many records together
)

func (c Compression) String() string { return [...]string{"NONE", "RECORD", "BLOCK"}[c] }

// ParseCompression returns the compression with one of Hadoop's names.
func ParseCompression(name string) (Compression, error) {
	for c := None; c <= Block; c++ {
		if c.String() == name {
			return c, nil
		}
	}
	return None, fmt.Errorf("compression %q: want NONE, RECORD or BLOCK", name)
}

// Header describes a file.
type Header struct {
	KeyClass, ValueClass string
	Compression          Compression
	Codec                *compression.Codec // nil with None
	Metadata             map[string]string
}

const (
	magic      = "SEQ"
	version    = 6
	oldVersion = 4 // the oldest one that is read
	syncEscape = -1
	syncSize   = 16
	markSize   = 4 + syncSize

	// DefaultSyncInterval is the distance of sync marks in bytes.
	DefaultSyncInterval = 5 * 1024 * markSize
	// DefaultBlockSize is the size of keys and values with which a block ends.
	DefaultBlockSize = 1_000_000
)

// Errors of files; see [Error].
var (
	ErrFormat    = errors.New("not a SequenceFile that can be read")
	ErrTruncated = errors.New("it ends too early")
	ErrDamaged   = errors.New("damaged")
	ErrTooLarge  = errors.New("record too large")
)

// Error is an error in a file. It wraps one of the errors above.
type Error struct {
	Offset int64
	Err    error
}

func (e *Error) Error() string { return fmt.Sprintf("SequenceFile at offset %d: %v", e.Offset, e.Err) }

func (e *Error) Unwrap() error { return e.Err }
