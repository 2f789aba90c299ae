// Command sort sorts text lines, or TeraSort's 100-byte records. The part files, in
// order, are sorted: part-r-00000 holds the smallest keys.
package main

import (
	"errors"
	"flag"
	"fmt"

	"github.com/quernmr/quern/mapreduce"
)

func main() {
	records := flag.Bool("records", false, "sort 100-byte records by their first 10 bytes instead of lines")
	hash := flag.Bool("hash", false, "partition lines by their hash: each part file is sorted, as with Hadoop's example sort")
	mapreduce.Main(func() (*mapreduce.Job, error) {
		switch {
		case *records && *hash:
			return nil, errors.New("-hash is for lines, not for -records")
		case *records:
			return sortRecords()
		}
		return sortLines(*hash)
	})
}

func sortLines(hash bool) (*mapreduce.Job, error) {
	lines := mapreduce.Map(mapreduce.Lines(), func(_ *mapreduce.Task, line string, emit func(string, struct{})) error {
		emit(line, struct{}{})
		return nil
	})
	if !hash {
		lines.TotalOrder()
	}
	return mapreduce.Sort(lines).Job("sort"), nil
}

const recordSize, keySize = 100, 10

func sortRecords() (*mapreduce.Job, error) {
	records := mapreduce.Map(mapreduce.Records(recordSize), func(_ *mapreduce.Task, rec []byte, emit func([]byte, []byte)) error {
		if len(rec) != recordSize {
			return fmt.Errorf("the last record has %d bytes, not %d", len(rec), recordSize)
		}
		emit(rec[:keySize], rec[keySize:])
		return nil
	})
	job := mapreduce.Sort(records.TotalOrder()).Job("terasort")
	job.Format = mapreduce.Raw{Keys: true}
	return job, nil
}
