package streaming

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"github.com/quernmr/quern/mapreduce/internal/property"
	"github.com/quernmr/quern/runtime"
)

// job returns the functions of the attempts.
func (c *compiled) job() runtime.Job {
	job := runtime.Job{Maps: []runtime.MapFunc{c.runMap}}
	if c.plan.Reduces > 0 {
		job.Reduce = c.runReduce
	}
	if c.plan.Combine {
		job.Combine = c.combine
	}
	return job
}

// sink takes the records that a map or reduce writes.
type sink func(key, value []byte) error

// mapSink returns the sink of a map.
func (c *compiled) mapSink(t *runtime.Task, out runtime.Collector) (sink, error) {
	if out == nil {
		return c.outputSink(t)
	}
	n := t.Partitions
	if c.keys == nil {
		return func(key, value []byte) error { return out.Collect(c.partition(key, n), key, value) }, nil
	}
	var sorted, stored []byte
	return func(key, value []byte) error {
		sorted, stored = c.stored(sorted[:0], stored[:0], key, value)
		return out.Collect(c.partition(key, n), sorted, stored)
	}, nil
}

// stored returns a record of map output; see the package comment.
func (c *compiled) stored(dstKey, dstValue, key, value []byte) (sorted, stored []byte) {
	if c.keys == nil {
		return append(dstKey, key...), append(dstValue, value...)
	}
	dstValue = append(binary.AppendUvarint(dstValue, uint64(len(key))), key...)
	return c.keys.append(dstKey, key), append(dstValue, value...)
}

// loaded is the inverse of stored.
func (c *compiled) loaded(sorted, stored []byte) (key, value []byte, err error) {
	if c.keys == nil {
		return sorted, stored, nil
	}
	n, size := binary.Uvarint(stored)
	if size <= 0 || n > uint64(len(stored)-size) {
		return nil, nil, errors.New("damaged map output: the length of a key is wrong")
	}
	return stored[size : size+int(n)], stored[size+int(n):], nil
}

// outputSink writes lines to the attempt's output.
func (c *compiled) outputSink(t *runtime.Task) (sink, error) {
	separator := []byte(c.plan.Properties[property.TextSeparator])
	var out *runtime.Output
	if !c.truth(lazyProperty, false) {
		var err error
		if out, err = t.Output(""); err != nil {
			return nil, err
		}
	}
	var line []byte
	return func(key, value []byte) (err error) {
		if out == nil {
			if out, err = t.Output(""); err != nil {
				return err
			}
		}
		line = append(append(append(append(line[:0], key...), separator...), value...), '\n')
		return out.Write(line)
	}, nil
}

// runMap is the map of every job.
func (c *compiled) runMap(t *runtime.Task, in *runtime.Split, out runtime.Collector) error {
	if chunks := in.Chunks(); len(chunks) > 0 {
		c.input = &chunks[0]
	}
	put, err := c.mapSink(t, out)
	if err != nil {
		return err
	}
	if c.mapClass() == identityMapper {
		for key, value := range c.records(in) {
			if err := put(key, value); err != nil {
				return err
			}
		}
		return in.Err()
	}
	if err := c.link(t); err != nil {
		return err
	}
	child, err := c.start(t, "mapper", c.Mapper, true)
	if err != nil {
		return err
	}
	var written atomic.Int64
	return c.judge(child.run(func(to *input) error { return c.feedSplit(in, &written, to) }, func(line []byte) error {
		written.Add(1)
		return put(c.mapCut.cut(line))
	}))
}

// feedSplit writes the records of a split to a command that has written some already. The records that the command need
// not read are counted all the same.
func (c *compiled) feedSplit(in *runtime.Split, written *atomic.Int64, to *input) error {
	separator, ignoreKey, skipping := []byte(c.get("stream.map.input.field.separator", "\t")), c.ignoresKey(), false
	for key, value := range c.records(in) {
		var err error
		switch {
		case skipping:
		case ignoreKey:
			err = to.line(value)
		default:
			err = to.line(key, separator, value)
		}
		if err != nil && written.Load() < int64(c.enough) {
			return err
		}
		skipping = skipping || err != nil
	}
	return in.Err()
}

// judge accepts an exit code if stream.non.zero.exit.is.failure says so.
func (c *compiled) judge(err error) error {
	if exit := new(exitError); errors.As(err, &exit) && !c.truth("stream.non.zero.exit.is.failure", true) {
		return nil
	}
	return err
}

func (c *compiled) ignoresKey() bool {
	return c.truth("stream.map.input.ignoreKey", c.InputFormat == "" || c.InputFormat == textInput)
}

// records returns the records of the input format. The key of a line is its offset. They are valid until the next one.
func (c *compiled) records(in *runtime.Split) iter.Seq2[[]byte, []byte] {
	separator := c.plan.Properties[property.KeyValueSeparator]
	_, size := utf8.DecodeRuneInString(separator)
	separator = separator[:size]
	needsKey := c.mapClass() == identityMapper || !c.ignoresKey()
	return func(yield func(key, value []byte) bool) {
		var key, value []byte // used again for each record
		for line, offset := range c.textLines(in) {
			switch {
			case c.InputFormat == keyValueInput:
				first, rest, _ := strings.Cut(line, separator)
				key, value = append(key[:0], first...), append(value[:0], rest...)
			case needsKey:
				key, value = strconv.AppendInt(key[:0], offset, 10), append(value[:0], line...)
			default:
				value = append(value[:0], line...)
			}
			if !yield(key, value) {
				return
			}
		}
	}
}

// textLines cuts lines also at a CR that no LF follows, unless the job has a delimiter of its own.
func (c *compiled) textLines(in *runtime.Split) iter.Seq2[string, int64] {
	whole := c.plan.Properties["textinputformat.record.delimiter"] != ""
	return func(yield func(string, int64) bool) {
		for line := range in.Lines() {
			offset := in.Offset()
			for !whole {
				at := strings.IndexByte(line, '\r')
				if at < 0 {
					break
				}
				if !yield(line[:at], offset) {
					return
				}
				line, offset = line[at+1:], offset+int64(at)+1
				if more, _ := in.CountRecord(); !more {
					return
				}
			}
			if !yield(line, offset) {
				return
			}
		}
	}
}

// runReduce is the reduce of every job.
func (c *compiled) runReduce(t *runtime.Task, in runtime.Records) error {
	put, err := c.outputSink(t)
	if err != nil {
		return err
	}
	switch c.reduceClass() {
	case identityReducer:
		for in.Next() {
			key, value, err := c.loaded(in.Key(), in.Value())
			if err == nil {
				err = put(key, value)
			}
			if err != nil {
				return err
			}
		}
		return in.Err()
	case aggregate:
		return c.aggregate(in, false, put)
	}
	if err := c.link(t); err != nil {
		return err
	}
	if !in.Next() {
		if err := in.Err(); err != nil {
			return err
		}
		return c.reduceNothing(t)
	}
	child, err := c.start(t, "reducer", c.Reducer, true)
	if err != nil {
		return err
	}
	return c.judge(child.run(func(to *input) error { return c.feedGroup(in, true, to) }, func(line []byte) error {
		return put(c.reduceCut.cut(line))
	}))
}

// reduceNothing runs the reducer without input. Hadoop discards what it writes and counts.
func (c *compiled) reduceNothing(t *runtime.Task) error {
	child, err := c.start(t, "reducer", c.Reducer, false)
	if err != nil {
		return err
	}
	return c.judge(child.run(func(*input) error { return nil }, func([]byte) error { return nil }))
}

// feedGroup writes sorted records to a command. With begun, in is at its first record.
func (c *compiled) feedGroup(in runtime.Records, begun bool, to *input) error {
	separator := []byte(c.get("stream.reduce.input.field.separator", "\t"))
	for begun || in.Next() {
		begun = false
		key, value, err := c.loaded(in.Key(), in.Value())
		if err == nil {
			err = to.line(key, separator, value)
		}
		if err != nil {
			return err
		}
	}
	return in.Err()
}

// combine runs the combiner over sorted records, and sorts what it writes: commands often write groups in another order.
func (c *compiled) combine(t *runtime.Task, in runtime.Records, emit func(key, value []byte) error) error {
	var all pairs
	keep := func(key, value []byte) error {
		all.add(c.stored(nil, nil, key, value))
		return nil
	}
	switch c.combineClass() {
	case identityReducer:
		for in.Next() {
			if err := emit(in.Key(), in.Value()); err != nil {
				return err
			}
		}
		return in.Err()
	case aggregate:
		if err := c.aggregate(in, true, keep); err != nil {
			return err
		}
		return all.emit(emit)
	}
	if err := c.link(t); err != nil {
		return err
	}
	child, err := c.start(t, "combiner", c.Combiner, true)
	if err != nil {
		return err
	}
	err = c.judge(child.run(func(to *input) error { return c.feedGroup(in, false, to) }, func(line []byte) error {
		return keep(c.reduceCut.cut(line))
	}))
	if err != nil {
		return err
	}
	return all.emit(emit)
}

// pairs are records of a combiner's output.
type pairs [][2][]byte

func (p *pairs) add(key, value []byte) { *p = append(*p, [2][]byte{key, value}) }

func (p pairs) emit(emit func(key, value []byte) error) error {
	slices.SortStableFunc(p, func(a, b [2][]byte) int { return bytes.Compare(a[0], b[0]) })
	for _, pair := range p {
		if err := emit(pair[0], pair[1]); err != nil {
			return err
		}
	}
	return nil
}

// link puts the side files into the attempt's directory. The directory that the attempt's commands get as TMPDIR is there, too.
func (c *compiled) link(t *runtime.Task) error {
	if err := os.MkdirAll(filepath.Join(t.Dir(), "tmp"), 0o777); err != nil {
		return fmt.Errorf("make the attempt's temporary directory: %w", err)
	}
	for name := range c.plan.Files {
		path, err := t.File(name)
		if err != nil {
			return err
		}
		if err := place(path, filepath.Join(t.Dir(), name)); err != nil {
			return fmt.Errorf("side file %q: %w", name, err)
		}
	}
	return nil
}
