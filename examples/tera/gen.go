package main

import (
	"errors"
	"fmt"
	"hash/crc32"
	"iter"
	"math"
	"strconv"
	"strings"

	"github.com/quernmr/quern/mapreduce"
)

// generate writes rows 0 to rows-1, an equal share of them in each map. The counter CHECKSUM is the sum of
// the rows' CRC-32, as in Hadoop's TeraGen.
func generate(rows int64, maps int) (*mapreduce.Job, error) {
	numbers := mapreduce.Generate(maps, func(n int) iter.Seq[int64] { return share(rows, n, maps) })
	made := mapreduce.MapSplit(numbers, func(t *mapreduce.Task, numbers iter.Seq[int64], emit func(struct{}, []byte)) error {
		checksum := t.Counter("org.apache.hadoop.examples.terasort.TeraGen$Counters", "CHECKSUM")
		row, next, random, sum := []byte(nil), int64(-1), uint128{}, uint64(0)
		for n := range numbers {
			if n != next {
				random = after(uint64(n))
			}
			next, random = n+1, one.from(random)
			row = appendRow(row[:0], random, uint64(n))
			sum += uint64(crc32.ChecksumIEEE(row))
			emit(struct{}{}, row)
		}
		checksum.Add(int64(sum))
		return nil
	})
	job := mapreduce.MapOnly(made).Job("teragen")
	job.Format = mapreduce.Raw{}
	return job, nil
}

// share yields the numbers of a map's rows. Hadoop divides with floating-point numbers.
func share(rows int64, n, maps int) iter.Seq[int64] {
	bound := func(n int) int64 { return int64(math.Ceil(float64(rows) * float64(n) / float64(maps))) }
	return func(yield func(int64) bool) {
		for row := bound(n); row < bound(n+1) && yield(row); row++ {
		}
	}
}

// maxRows is the limit up to which floating-point numbers divide rows exactly.
const maxRows = 1 << 53

var errRows = errors.New("want a number of 0 or more, if you like with k, m, b or t behind it for thousands, millions, billions or trillions")

// parseRows parses a number of rows as Hadoop's TeraGen does, but refuses negative and too large ones.
func parseRows(text string) (int64, error) {
	digits, unit := text, uint64(1)
	for suffix, value := range map[string]uint64{"k": 1e3, "m": 1e6, "b": 1e9, "t": 1e12} {
		if cut, ok := strings.CutSuffix(text, suffix); ok {
			digits, unit = cut, value
		}
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange) || err == nil && n > maxRows/unit:
		return 0, fmt.Errorf("-rows %s: at most %d rows are possible", text, int64(maxRows))
	case err != nil:
		return 0, fmt.Errorf("-rows %s: %w", text, errRows)
	}
	return int64(n * unit), nil
}
