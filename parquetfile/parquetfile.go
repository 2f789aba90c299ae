// Package parquetfile reads the columns of Parquet files. Nothing in a file is trusted: each size, count and offset is
// checked before memory is allocated for it, and the checksums of pages are verified where a file has them.
//
// [Open] reads the footer. [ReadColumn] then reads one column of one row group, some rows at a time:
//
//	f, err := parquetfile.Open(r, size, parquetfile.Limits{})
//	c, err := parquetfile.ReadColumn[int64](f, group, column)
//	err = c.Next(values, nulls)
//
// The layout of a file, and the parts with checksums (§):
//
//	+--------+-----------------------------+-----+--------+-------------------+--------+
//	| "PAR1" | row group: column chunks,   | ... | footer | its length        | "PAR1" |
//	|        | each a sequence of pages §  |     |        | u32 little-endian |        |
//	+--------+-----------------------------+-----+--------+-------------------+--------+
//
// The footer has no checksum, so a damaged one is refused only if it contradicts itself or the pages. The footer must
// tell where the chunks of all columns are; the order of row groups and chunks in the file is free.
//
// [File.ReadRows] reads rows with lists, maps and groups, one at a time; ReadColumn refuses columns below them. Encrypted
// files are refused. A File may be used by several goroutines, a [Column] by one at a time.
package parquetfile

import (
	"errors"
	"fmt"
)

// Limits bound what a file may demand.
type Limits struct {
	MaxRatio int64 // how many times its stored size a page may become, after the first FreeBytes; 0: 10,000
	Free     int64 // bytes that a page may always have; 0: 64 MiB
}

func (l Limits) orDefault() Limits {
	if l.MaxRatio <= 0 {
		l.MaxRatio = 10_000
	}
	if l.Free <= 0 {
		l.Free = 64 << 20
	}
	return l
}

// Errors of files; see [Error].
var (
	ErrFormat      = errors.New("not a Parquet file that can be read")
	ErrTruncated   = errors.New("it ends too early")
	ErrDamaged     = errors.New("damaged")
	ErrUnsupported = errors.New("not supported")
)

// Error is an error in a file. It wraps one of the errors above.
type Error struct {
	Offset int64
	Group  int // row group; -1: the error is elsewhere
	Column string
	Err    error
}

func (e *Error) Error() string {
	if e.Group < 0 {
		return fmt.Sprintf("Parquet file at offset %d: %v", e.Offset, e.Err)
	}
	return fmt.Sprintf("Parquet file at offset %d, row group %d, column %s: %v", e.Offset, e.Group, e.Column, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrDamaged, fmt.Sprintf(format, args...))
}

func unsupported(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrUnsupported, fmt.Sprintf(format, args...))
}
