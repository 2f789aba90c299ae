// Command parquetrows writes Parquet files with a row for each number in its input. DuckDB reads them, see
// integration/compat.
package main

import (
	"fmt"
	"strconv"
	"time"

	"github.com/quernmr/quern/formats/parquet"
	"github.com/quernmr/quern/mapreduce"
)

func main() { mapreduce.Main(rows) }

func rows() (*mapreduce.Job, error) {
	numbers := mapreduce.Map(mapreduce.Lines(), func(_ *mapreduce.Task, line string, emit func(int64, struct{})) error {
		n, err := strconv.ParseInt(line, 10, 64)
		emit(n, struct{}{})
		return err
	})
	job := mapreduce.Sort(numbers).Job("parquetrows")
	job.Format = parquet.Output(rowOf)
	return job, nil
}

// row has a column of each type that Quern writes.
type row struct {
	N     int64        `parquet:"n"`
	B     bool         `parquet:"b"`
	I8    int8         `parquet:"i8"`
	I16   int16        `parquet:"i16"`
	I32   int32        `parquet:"i32"`
	U8    uint8        `parquet:"u8"`
	U16   uint16       `parquet:"u16"`
	U32   uint32       `parquet:"u32"`
	U64   uint64       `parquet:"u64"`
	F     float32      `parquet:"f"`
	D     float64      `parquet:"d"`
	S     string       `parquet:"s"`
	X     []byte       `parquet:"x"`
	Day   parquet.Date `parquet:"day"`
	Micro time.Time    `parquet:"us,timestamp(microsecond)"`
	Milli time.Time    `parquet:"ms,timestamp(millisecond)"`
	Nano  time.Time    `parquet:"ns,timestamp(nanosecond)"`
	Dec9  int32        `parquet:"dec9,decimal(3:9)"`
	Dec15 int64        `parquet:"dec15,decimal(2:15)"`
	NI    *int64       `parquet:"ni"`
	NS    *string      `parquet:"nss"`
	ND    int64        `parquet:"nd,optional,decimal(2:15)"`
}

func rowOf(n int64, _ struct{}) row {
	s := fmt.Sprintf("word %d", n%7)
	r := row{N: n, B: n%2 == 0, I8: int8(n%100 - 50), I16: int16(n * 10), I32: int32(n * -1000), U8: uint8(n % 200), U16: uint16(n * 60), U32: uint32(n * 4_000_000), U64: uint64(n) << 54,
		F: float32(n) / 4, D: float64(n) / -8, S: s, X: []byte(s), Day: parquet.Date(n*37 - 1000), Micro: time.UnixMicro(n * 1_000_003), Milli: time.UnixMilli(n * 1003), Nano: time.Unix(0, n*1_000_000_007),
		Dec9: int32(n*n - 99), Dec15: n * n * n}
	if n%5 > 0 {
		r.NI, r.NS, r.ND = &n, &s, n
	}
	return r
}
