package runtime

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"

	"github.com/quernmr/quern/shuffle"
	"github.com/quernmr/quern/wire"
)

// The property quern.check=true lets setup run the first split twice, each time with a job that is built again, and
// compare what the map emits. The order of records does not matter, because the shuffle sorts them.

// checkedPiece is the maximum size of a record that is compared of a file: a line, or a piece of a longer one.
const checkedPiece = 1 << 20

// ofFile stands for the partition of a line of a file. Its key is the name of the file.
const ofFile = math.MaxUint32

// checkedRun collects the output of a map in a segment file with one partition, sorted. A record there is a key
// without value:
//
//	partition       4 bytes, big-endian
//	key, value
//	length of key   4 bytes, big-endian
type checkedRun struct {
	*shuffle.Collector
	scratch []byte
}

// Collect implements [Collector].
func (c *checkedRun) Collect(partition int, key, value []byte) error {
	c.scratch = binary.BigEndian.AppendUint32(c.scratch[:0], uint32(partition))
	c.scratch = append(append(c.scratch, key...), value...)
	c.scratch = binary.BigEndian.AppendUint32(c.scratch, uint32(len(key)))
	return c.Collector.Collect(0, c.scratch, nil)
}

// parseChecked returns the parts of a record of a checkedRun.
func parseChecked(record []byte) (partition uint32, key, value []byte) {
	end := len(record) - 4
	n := 4 + int(binary.BigEndian.Uint32(record[end:]))
	return binary.BigEndian.Uint32(record), record[4:n], record[n:end]
}

// checkTwice compares two runs of the first split.
func (a *attempt) checkTwice() error {
	if a.plan().Properties[CheckTwice] != "true" || a.result.Splits.Maps == 0 {
		return nil
	}
	first, split, err := a.checkRun(0)
	if err != nil {
		return fmt.Errorf("%s=true: %w", CheckTwice, err)
	}
	second, _, err := a.checkRun(1)
	if err != nil {
		return fmt.Errorf("%s=true: second run of a map: %w", CheckTwice, err)
	}
	var text func(key, value []byte) string
	if split.Input < len(a.job.Texts) {
		text = a.job.Texts[split.Input]
	}
	difference, err := a.compareRuns(first, second, text)
	if err != nil {
		return fmt.Errorf("%s=true: compare two runs of a map: %w", CheckTwice, err)
	}
	if difference != "" {
		c := split.chunks[0]
		return Fatal(fmt.Errorf("%w: %s=true: job %s, map of %s from offset %d emits something else when it is run a second time: %s; "+
			"its output must follow from its input alone, without the time, random numbers or the order of a Go map",
			ErrPlanDiffers, CheckTwice, a.plan().Name, c.Path, c.Offset, difference))
	}
	return nil
}

// checkRun builds the job, runs the first split, and returns the file with its sorted output.
func (a *attempt) checkRun(n int) (file string, _ *Split, err error) {
	program, err := a.worker.load(a.sub)
	if err != nil {
		return "", nil, err
	}
	split, err := a.openSplit(0)
	if err != nil {
		return "", nil, err
	}
	defer split.close()
	file = filepath.Join(a.cmd.Dir, fmt.Sprintf("check%d", n))
	collector, err := shuffle.NewCollector(shuffle.Config{Partitions: 1, Memory: a.settings.sortBytes, Dir: a.cmd.Dir, File: file,
		MaxRecord: min(int64(max(a.settings.recordMax, 2*checkedPiece))+8, shuffle.MaxMaxRecord), OnProgress: func() { a.task.pulse.beat() }, Kept: a.worker.sortMemory})
	if err != nil {
		return "", nil, err
	}
	defer collector.Discard() // keeps the file of a successful Close
	out := &checkedRun{Collector: collector}
	run := func(to Collector) error {
		err := protect(func() error { return program.Jobs[a.cmd.Index].Maps[split.Input](a.task, split, to) }, split.Where)
		return cmp.Or(split.err, err)
	}
	switch {
	case a.plan().Reduces == 0:
		err = a.checkFiles(n, out, func() error { return run(nil) })
	case a.writesMapFiles():
		err = a.checkFiles(n, out, func() error { return run(out) })
	default:
		err = run(out)
	}
	if err == nil {
		_, err = collector.Close()
	}
	return file, split, err
}

// checkFiles runs a map that writes files. Their lines are records too.
func (a *attempt) checkFiles(n int, lines *checkedRun, run func() error) error {
	return a.scratchFiles(fmt.Sprintf("check%d", n), run, func(file, url string) error {
		f, err := a.staging.Open(url)
		if err != nil {
			return err
		}
		defer f.Close()
		in := bufio.NewReaderSize(f, checkedPiece)
		for {
			line, err := in.ReadSlice('\n')
			if err != nil && !errors.Is(err, bufio.ErrBufferFull) && !errors.Is(err, io.EOF) {
				return err
			}
			if len(line) > 0 {
				if err := lines.Collect(ofFile, []byte(file), line); err != nil {
					return err
				}
			}
			if errors.Is(err, io.EOF) {
				return nil
			}
		}
	})
}

// compareRuns describes the first record in which two outputs differ; "": there is none. Without text the records
// are lines of files.
func (a *attempt) compareRuns(first, second string, text func(key, value []byte) string) (difference string, err error) {
	var runs [2]*shuffle.Merger
	for i, file := range []string{first, second} {
		index, err := shuffle.ReadIndex(file)
		if err != nil {
			return "", err
		}
		part := index.Partitions[0]
		runs[i], err = shuffle.Merge(a.task.Ctx, []wire.Segment{{File: file, Offset: part.Offset, Length: part.Length}},
			shuffle.MergeOptions{OnProgress: func() { a.task.pulse.beat() }})
		if err != nil {
			return "", err
		}
		defer runs[i].Close()
	}
	more := [2]bool{true, true}
	for more[0] && more[1] && difference == "" {
		for i, run := range runs {
			more[i] = run.Next()
		}
		if more[0] != more[1] || more[0] && !bytes.Equal(runs[0].Key(), runs[1].Key()) {
			difference = "in sorted order, " + checkedText(more[1], runs[1], text) + " instead of " + checkedText(more[0], runs[0], text)
		}
	}
	return difference, cmp.Or(runs[0].Err(), runs[1].Err())
}

func checkedText(more bool, run *shuffle.Merger, text func(key, value []byte) string) string {
	if !more {
		return "no more records"
	}
	partition, key, value := parseChecked(run.Key())
	if partition == ofFile || text == nil {
		return fmt.Sprintf("%q in file %s", wire.Truncate(string(value), 200), key)
	}
	return fmt.Sprintf("%q for reduce %d", wire.Truncate(text(key, value), 200), partition)
}
