package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"iter"
	"path"

	"github.com/quernmr/quern/mapreduce"
)

// checksum writes the sum of the CRC-32 of all rows.
func checksum() (*mapreduce.Job, error) {
	sums := mapreduce.MapSplit(mapreduce.Records(rowSize), func(_ *mapreduce.Task, rows iter.Seq[[]byte], emit func(struct{}, uint64)) error {
		sum := uint64(0)
		for row := range rows {
			sum += uint64(crc32.ChecksumIEEE(row))
		}
		emit(struct{}{}, sum)
		return nil
	})
	job := mapreduce.ReduceAll(sums, func(_ *mapreduce.Task, groups iter.Seq2[struct{}, iter.Seq[uint64]], emit func(struct{}, string)) error {
		total := uint128{}
		for _, sums := range groups {
			for sum := range sums {
				total = total.add(uint128{lo: sum})
			}
		}
		emit(struct{}{}, total.String())
		return nil
	}).Job("terasum")
	job.FixedReduces = 1
	return job, nil
}

// validate reports rows that are not in order, within a file and from file to file, and the sum of
// CRC-32. Its records are those of Hadoop's TeraValidate: what was found, by file and place.
func validate() (*mapreduce.Job, error) {
	found := mapreduce.MapSplit(mapreduce.InputOf(wholeFiles{}), func(t *mapreduce.Task, rows iter.Seq[[]byte], emit func(string, []byte)) error {
		file, last, sum := path.Base(t.Splits()[0].Path), []byte(nil), uint64(0)
		for row := range rows {
			key := row[:keySize]
			switch {
			case last == nil:
				emit(file+":begin", key)
			case bytes.Compare(key, last) < 0:
				emit("error", fmt.Appendf(nil, "misorder in %s between % x and % x", file, last, key))
			}
			last = append(last[:0], key...)
			sum += uint64(crc32.ChecksumIEEE(row))
		}
		if last != nil {
			emit(file+":end", last)
			emit("checksum", fmt.Appendf(nil, "%x", sum))
		}
		return nil
	})
	job := mapreduce.ReduceAll(found, report).Job("teravalidate")
	job.FixedReduces = 1
	return job, nil
}

// report compares the first and last keys of the files, in the order of their names.
func report(_ *mapreduce.Task, found iter.Seq2[string, iter.Seq[[]byte]], emit func(string, string)) error {
	var place string
	var key []byte
	for what, values := range found {
		total, first := uint128{}, true
		for v := range values {
			switch {
			case what == "error":
				emit(what, string(v))
			case what == "checksum":
				var sum uint64
				if _, err := fmt.Sscanf(string(v), "%x", &sum); err != nil {
					return err
				}
				total = total.add(uint128{lo: sum})
			case !first:
				return fmt.Errorf("two files are named %s: validate one directory", what[:len(what)-len(path.Ext(what))])
			default:
				if bytes.Compare(v, key) < 0 {
					emit("error", fmt.Sprintf("bad key partitioning:\n  file %s key % x\n  file %s key % x", place, key, what, v))
				}
				place, key = what, bytes.Clone(v)
			}
			first = false
		}
		if what == "checksum" {
			emit(what, total.String())
		}
	}
	return nil
}

// wholeFiles is the input format of rows with one map for each file.
type wholeFiles struct{}

func (wholeFiles) Name() string { return "tera" }

func (wholeFiles) Splits(files []mapreduce.File) (splits [][]mapreduce.Split, err error) {
	for _, f := range files {
		splits = append(splits, []mapreduce.Split{{Path: f.Path, Length: f.Size}})
	}
	return splits, nil
}

func (wholeFiles) Read(s mapreduce.Split, file io.ReaderAt) iter.Seq2[[]byte, error] {
	r, row := bufio.NewReaderSize(io.NewSectionReader(file, s.Offset, s.Length), 1<<18), make([]byte, rowSize)
	return func(yield func([]byte, error) bool) {
		for {
			n, err := io.ReadFull(r, row)
			if errors.Is(err, io.ErrUnexpectedEOF) {
				err = mapreduce.BadInput(fmt.Errorf("the last row has %d bytes, not %d", n, rowSize))
			}
			if err == io.EOF || !yield(row, err) || err != nil {
				return
			}
		}
	}
}
