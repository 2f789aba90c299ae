// Package parquet is the input and output format of Parquet files for jobs. A record is a struct of the program. Its
// fields are columns; only these columns are read:
//
//	type item struct {
//		Price    int64        `parquet:"l_extendedprice,decimal(2:15)"` // in hundredths
//		Discount *int64       `parquet:"l_discount,decimal(2:15)"`      // nil: null
//		Shipped  parquet.Date `parquet:"l_shipdate"`
//	}
//
//	in := parquet.Input[item]()                                                          // records of item
//	in := parquet.Select[item](parquet.Where("l_shipdate", parquet.Less, day))           // only some of them
//	job.Format = parquet.Output(func(word string, n int64) row { return row{word, n} })  // for a result of string and int64
//
// Without a tag a field's own name is that of the column. Columns in groups have dots in their names. The tag "-" leaves
// a field out. A column's type must be one that its field can hold:
//
//	column                              field
//	BOOLEAN                             bool
//	INT32, INT64, signed                a signed integer with as many bits or more
//	INT32, INT64, unsigned              an unsigned integer with as many bits or more
//	DECIMAL of INT32 or INT64           int32 or int64 with decimal(scale:precision) in its tag; the scales must be equal
//	DATE                                Date, time.Time, or int32 with date in its tag
//	TIMESTAMP                           time.Time, or int64 with timestamp(millisecond), (microsecond) or (nanosecond) in its tag
//	INT96                               time.Time
//	FLOAT, DOUBLE                       float64; for FLOAT also float32
//	BYTE_ARRAY, FIXED_LEN_BYTE_ARRAY    string or []byte, if the column is text or has no logical type
//	LIST, repeated column or group      a slice of these types
//	MAP                                 a map of these types
//	group                               a struct with some of its columns
//
// A null needs a pointer, which becomes nil, or a field with optional in its tag, which becomes zero. A list or map that
// is null becomes nil, and without elements it is empty. For other fields a null is an error. Everything in a row may be
// kept.
//
// The annotations LIST and MAP are also understood as older writers use them, by the rules of the specification. Rows are
// put together one by one if a field is a list, map or struct, which takes more time than for other columns. A filter's
// columns have one value in each row.
//
// Maps of a job share a file by its row groups: a row group belongs to the split with its middle. Encrypted files and the
// codecs LZO and LZ4 (Hadoop's, not LZ4_RAW) are refused.
//
// Properties of Output:
//
//	parquet.compression    codec: UNCOMPRESSED, SNAPPY, GZIP, BROTLI, ZSTD or LZ4_RAW
//	parquet.block.size     bytes with which a row group ends, as estimated from its rows
package parquet

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"time"

	"github.com/andybalholm/brotli"

	"github.com/quernmr/quern/formats/internal/setting"
	"github.com/quernmr/quern/mapreduce"
	"github.com/quernmr/quern/parquetfile"
)

// Name is the name of both formats in a job's description.
const Name = "parquet"

// Properties that this package reads.
const (
	compressionName = "parquet.compression"
	blockSize       = "parquet.block.size"
	maxRatio        = "quern.decompressed.ratio.max"
)

// Date is a day, as the number of days since 1970-01-01.
type Date int32

// DateOf returns a day of the Gregorian calendar.
func DateOf(year int, month time.Month, day int) Date {
	return Date(time.Date(year, month, day, 0, 0, 0, 0, time.UTC).Unix() / (24 * 60 * 60))
}

// Time returns the day's beginning in UTC.
func (d Date) Time() time.Time { return time.Unix(int64(d)*24*60*60, 0).UTC() }

func (d Date) String() string { return d.Time().Format(time.DateOnly) }

// Input reads Parquet files. Paths are as for [mapreduce.Lines].
func Input[T any](paths ...string) mapreduce.Input[T] { return Select[T](Filter{}, paths...) }

// Select reads the rows of Parquet files that a filter accepts. Row groups without such rows, as their statistics
// tell, are not read. The filter's columns need no fields in T.
func Select[T any](filter Filter, paths ...string) mapreduce.Input[T] {
	return mapreduce.NewInput(Name, func(s mapreduce.Split, file io.ReaderAt) iter.Seq2[T, error] {
		return func(yield func(T, error) bool) {
			l, err := limits(s.Property)
			var f *parquetfile.File
			if err == nil {
				f, err = open(file, s.Size, l)
			}
			if err == nil {
				_, err = scan(f, filter, s.Offset, s.Offset+s.Length, func(row T) bool { return yield(row, nil) })
			}
			if err != nil {
				yield(*new(T), bad(err))
			}
		}
	}, paths...)
}

// open opens a file with pages of any codec.
func open(file io.ReaderAt, size int64, l parquetfile.Limits) (*parquetfile.File, error) {
	f, err := parquetfile.Open(file, size, l)
	if err == nil {
		f.Brotli = func(packed io.Reader) io.Reader { return brotli.NewReader(packed) }
	}
	return f, err
}

// limits returns the limits of a job; its ratio 0 means none.
func limits(property func(name string) string) (parquetfile.Limits, error) {
	n, err := setting.Number(property, maxRatio)
	if err == nil && n == 0 && property(maxRatio) != "" {
		n = math.MaxInt64
	}
	return parquetfile.Limits{MaxRatio: n}, err
}

// bad marks errors of a file's content, but not those of reading it.
func bad(err error) error {
	_, content := errors.AsType[*parquetfile.Error](err)
	if _, mismatch := errors.AsType[*mismatch](err); content || mismatch {
		return mapreduce.BadInput(err)
	}
	return err
}

// mismatch is an error of a file with other columns than the program needs.
type mismatch struct{ text string }

func (e *mismatch) Error() string { return e.text }

func mismatched(format string, args ...any) error { return &mismatch{fmt.Sprintf(format, args...)} }
