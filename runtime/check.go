package runtime

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"github.com/quernmr/quern/wire"
)

// The property quern.check=true lets setup run the beginning of the first split twice, each time with a job that
// is built again, and compare what the map emits. The order of records does not matter, because the shuffle sorts
// them.
const (
	checkedBytes  = 1 << 20   // of records
	checkedPlaces = 8         // of these bytes
	checkedOutput = 256 << 20 // bytes of map output, in memory
)

// checkedRecord is a record that a map emits.
type checkedRecord struct {
	partition  int // ofFile: key is a file's name, value a line of it
	key, value string
}

// ofFile stands for the partition of a line of a file.
const ofFile = -1

func (r checkedRecord) compare(other checkedRecord) int {
	return cmp.Or(cmp.Compare(r.key, other.key), cmp.Compare(r.value, other.value), cmp.Compare(r.partition, other.partition))
}

// checkedRecords collects the output of a map.
type checkedRecords struct {
	records []checkedRecord
	bytes   int
}

func (c *checkedRecords) Collect(partition int, key, value []byte) error {
	if c.bytes += len(key) + len(value); c.bytes > checkedOutput {
		return Fatal(fmt.Errorf("the map emits more than %d MiB of output for %d MiB of input, too much to compare; leave %s out", checkedOutput>>20, checkedBytes>>20, CheckTwice))
	}
	c.records = append(c.records, checkedRecord{partition, string(key), string(value)})
	return nil
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
	if difference := differs(first, second, text); difference != "" {
		c := split.chunks[0]
		return Fatal(fmt.Errorf("%w: %s=true: job %s, map of %s from offset %d emits something else when it is run a second time: %s; "+
			"its output must follow from its input alone, without the time, random numbers or the order of a Go map",
			ErrPlanDiffers, CheckTwice, a.plan().Name, c.Path, c.Offset, difference))
	}
	return nil
}

// checkRun builds the job and runs the beginning of the first split.
func (a *attempt) checkRun(n int) ([]checkedRecord, *Split, error) {
	program, err := a.worker.load(a.sub)
	if err != nil {
		return nil, nil, err
	}
	split, err := a.openSplit(0)
	if err != nil {
		return nil, nil, err
	}
	defer split.close()
	places := make([]int64, checkedPlaces)
	for i := range places {
		places[i] = split.length() * int64(i) / checkedPlaces
	}
	split.limit(a.job.format(split.Input, &a.plan().Inputs[split.Input]), places, checkedBytes/checkedPlaces)
	out := &checkedRecords{}
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
	slices.SortFunc(out.records, checkedRecord.compare)
	return out.records, split, err
}

// checkFiles runs a map that writes files. Their lines are records too.
func (a *attempt) checkFiles(n int, lines *checkedRecords, run func() error) error {
	return a.scratchFiles(fmt.Sprintf("check%d", n), run, func(file, url string) error {
		content, err := readAll(a.staging, url, checkedOutput)
		if err != nil {
			return err
		}
		for line := range bytes.Lines(content) {
			if err := lines.Collect(ofFile, []byte(file), line); err != nil {
				return err
			}
		}
		return nil
	})
}

// differs describes the first record in which two sorted outputs differ; "": there is none. Without text the
// records are lines of files.
func differs(first, second []checkedRecord, text func(key, value []byte) string) string {
	i := 0
	for i < min(len(first), len(second)) && first[i] == second[i] {
		i++
	}
	if i == len(first) && i == len(second) {
		return ""
	}
	at := func(records []checkedRecord) string {
		switch {
		case i == len(records):
			return "no more records"
		case text == nil || records[i].partition == ofFile:
			return fmt.Sprintf("%q in file %s", wire.Truncate(records[i].value, 200), records[i].key)
		}
		r := records[i]
		return fmt.Sprintf("%q for reduce %d", wire.Truncate(text([]byte(r.key), []byte(r.value)), 200), r.partition)
	}
	return "in sorted order, " + at(second) + " instead of " + at(first)
}
