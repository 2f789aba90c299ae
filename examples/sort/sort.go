// Command sort sorts text lines, or TeraSort's 100-byte records. The part files, in
// order, are sorted: part-r-00000 holds the smallest keys.
package main

import (
	"flag"
	"fmt"

	"github.com/quernmr/quern/mapreduce"
)

func main() {
	records := flag.Bool("records", false, "sort 100-byte records by their first 10 bytes instead of lines")
	mapreduce.Main(func() (*mapreduce.Job, error) {
		if *records {
			return sortRecords()
		}
		return sortLines()
	})
}

func sortLines() (*mapreduce.Job, error) {
	lines := mapreduce.Map(mapreduce.Lines(), func(_ *mapreduce.Task, line string, emit func(string, struct{})) error {
		emit(line, struct{}{})
		return nil
	})
	return mapreduce.Sort(lines.TotalOrder()).Job("sort"), nil
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
