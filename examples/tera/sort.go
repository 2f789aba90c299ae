package main

import (
	"bytes"
	"fmt"
	"iter"
	"os"
	"sort"
	"strconv"

	"github.com/quernmr/quern/mapreduce"
)

// sortRows sorts rows by their keys. With simple, partitions have equal shares of the possible first three
// bytes of keys, as with Hadoop's mapreduce.terasort.simplepartitioner. Otherwise they are ranges of a sample.
func sortRows(simple bool) (*mapreduce.Job, error) {
	rows := mapreduce.Map(mapreduce.Records(rowSize), func(_ *mapreduce.Task, row []byte, emit func([]byte, []byte)) error {
		emit(row[:keySize], row[keySize:])
		return nil
	})
	if simple {
		rows.Partition(func(key []byte, n int) int {
			prefix := int(key[0])<<16 | int(key[1])<<8 | int(key[2])
			return prefix / ((1<<24 + n - 1) / n)
		})
	} else {
		rows.TotalOrder()
	}
	job := mapreduce.Sort(rows).Job("terasort")
	job.Format = mapreduce.Raw{Keys: true}
	return job, nil
}

type placed = mapreduce.Pair[int, []byte] // partition and key

// sortByFile sorts rows into the ranges of a file that Hadoop's TeraSort has written: _partition.lst.
func sortByFile(file string) (*mapreduce.Job, error) {
	rows := mapreduce.MapSplit(mapreduce.Records(rowSize), func(t *mapreduce.Task, rows iter.Seq[[]byte], emit func(placed, []byte)) error {
		cuts, err := readCuts(t)
		if err != nil {
			return err
		}
		for row := range rows {
			key := row[:keySize]
			n := sort.Search(len(cuts), func(i int) bool { return bytes.Compare(cuts[i], key) > 0 })
			emit(mapreduce.PairOf(n, key), row[keySize:])
		}
		return nil
	})
	rows.Partition(func(k placed, _ int) int { return k.A })
	job := mapreduce.Reduce(rows, func(_ *mapreduce.Task, k placed, values iter.Seq[[]byte], emit func(key, value []byte)) error {
		for v := range values {
			emit(k.B, v)
		}
		return nil
	}).Job("terasort")
	job.Format, job.Files = mapreduce.Raw{Keys: true}, map[string]string{"partitions": file}
	return job, nil
}

// readCuts reads the first keys of all partitions but the first. In the file, each follows its length.
func readCuts(t *mapreduce.Task) (cuts [][]byte, err error) {
	name, err := t.File("partitions")
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(name)
	for err == nil && len(data) > 0 {
		if data[0] != keySize || len(data) <= keySize {
			return nil, fmt.Errorf("-partitions: key %d of the file has not %d bytes", len(cuts), keySize)
		}
		cuts, data = append(cuts, data[1:1+keySize]), data[1+keySize:]
	}
	if reduces := t.Property("mapreduce.job.reduces"); err == nil && reduces != strconv.Itoa(len(cuts)+1) {
		return nil, fmt.Errorf("-partitions: the file has the ranges of %d reduces, but the job has %s", len(cuts)+1, reduces)
	}
	return cuts, err
}
