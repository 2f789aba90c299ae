package streaming

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/quernmr/quern/runtime"
	"github.com/quernmr/quern/wire"
)

// job returns the functions of the attempts.
func (c *compiled) job() runtime.Job {
	job := runtime.Job{Maps: []runtime.MapFunc{c.runMap}, CopiesDirectories: true}
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
func (c *compiled) mapSink(t *runtime.Task, out runtime.Collector, of classes) (sink, error) {
	if out == nil {
		return c.outputSink(t, of)
	}
	n := t.Partitions
	var sorted, stored []byte
	return func(key, value []byte) error {
		partition, err := c.partition(key, n)
		if err != nil {
			return fmt.Errorf("partition of a key: %w", err)
		}
		if c.keys == nil {
			return out.Collect(partition, key, value)
		}
		sorted, stored = c.stored(sorted[:0], stored[:0], key, value)
		return out.Collect(partition, sorted, stored)
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

// runMap is the map of every job.
func (c *compiled) runMap(t *runtime.Task, in *runtime.Split, out runtime.Collector) error {
	if chunks := in.Chunks(); len(chunks) > 0 {
		c.input = &chunks[0]
	}
	from, err := c.source(in)
	if err != nil {
		return err
	}
	if c.mapClass() == identityMapper {
		if err := c.checkPassed(from.classes); err != nil {
			return runtime.Fatal(err)
		}
		put, err := c.mapSink(t, out, from.classes)
		if err != nil {
			return err
		}
		return from.each(put)
	}
	put, err := c.mapSink(t, out, written(c.forms.mapOut))
	if err != nil {
		return err
	}
	if err := c.link(t); err != nil {
		return err
	}
	child, err := c.start(t, "mapper", c.Mapper, true)
	if err != nil {
		return err
	}
	var records atomic.Int64
	each := put
	if c.enough < math.MaxInt {
		each = func(key, value []byte) error {
			records.Add(1)
			return put(key, value)
		}
	}
	return kept(t, c.debug(t, mapDebug, child, child.run(
		func(to *input) error { return c.feedSplit(from, &records, to) },
		c.newReader(c.forms.mapOut, c.mapCut), each)))
}

// kept keeps the files that a command has put into the output directory, if it has not failed.
func kept(t *runtime.Task, failure error) error {
	if failure != nil {
		return failure
	}
	return t.KeepFiles()
}

// feedSplit writes the records of a split to a command that has written some already. The records that the command need
// not read are counted all the same.
func (c *compiled) feedSplit(from source, written *atomic.Int64, to *input) error {
	feed := newFeeder(c.forms.mapIn, from.classes, c.get("stream.map.input.field.separator", "\t"), c.ignoresKey())
	skipping := false
	return from.each(func(key, value []byte) error {
		if skipping {
			return nil
		}
		err := feed(to, key, value, 1)
		if broken := new(brokenPipe); errors.As(err, broken) && written.Load() >= int64(c.enough) {
			skipping = true
			return nil
		}
		return err
	})
}

// ignoresKey reports whether a line that a mapper reads has no key.
func (c *compiled) ignoresKey() bool {
	return c.forms.mapIn == textForm && c.ignoreKey
}

// runReduce is the reduce of every job.
func (c *compiled) runReduce(t *runtime.Task, records runtime.Records) error {
	in := &grouped{Records: records, keyOf: c.loaded}
	defer func() { t.Counter(wire.TaskCounters, wire.ReduceInputGroups).Add(in.n) }()
	of := c.mapped
	if c.reduceClass() == "" {
		of = written(c.forms.reduceOut)
	}
	put, err := c.outputSink(t, of)
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
	feed := func(to *input) error { return c.feedGroup(in, true, to) }
	return kept(t, c.debug(t, reduceDebug, child, child.run(feed, c.newReader(c.forms.reduceOut, c.reduceCut), put)))
}

// grouped counts groups: runs of records with equal keys. As in Hadoop, keys that KeyFieldBasedComparator takes for equal are
// not, unless their bytes are.
type grouped struct {
	runtime.Records
	keyOf func(sorted, stored []byte) (key, value []byte, err error)
	key   []byte
	n     int64
}

func (g *grouped) Next() bool {
	if !g.Records.Next() {
		return false
	}
	key, _, _ := g.keyOf(g.Key(), g.Value()) // the reader of the record gets the error
	if g.n == 0 || !bytes.Equal(key, g.key) {
		g.key = append(g.key[:0], key...)
		g.n++
	}
	return true
}

// reduceNothing runs the reducer without input. Hadoop discards what it writes and counts.
func (c *compiled) reduceNothing(t *runtime.Task) error {
	child, err := c.start(t, "reducer", c.Reducer, false)
	if err != nil {
		return err
	}
	return kept(t, child.run(func(*input) error { return nil }, c.newReader(c.forms.reduceOut, c.reduceCut), func(_, _ []byte) error { return nil }))
}

// feedGroup writes sorted records to a command. With begun, in is at its first record.
func (c *compiled) feedGroup(in runtime.Records, begun bool, to *input) error {
	feed := newFeeder(c.forms.reduceIn, c.mapped, c.get("stream.reduce.input.field.separator", "\t"), false)
	repeats := repeatsOf(in)
	for begun || in.Next() {
		begun = false
		key, value, err := c.loaded(in.Key(), in.Value())
		if err == nil {
			err = feed(to, key, value, 1+repeats())
		}
		if err != nil {
			return err
		}
	}
	return in.Err()
}

// repeatsOf returns the method of records that skips those that equal the current one, and returns their number.
func repeatsOf(in runtime.Records) func() int {
	if g, ok := in.(*grouped); ok {
		in = g.Records
	}
	if r, ok := in.(interface{ Repeats() int }); ok {
		return r.Repeats
	}
	return func() int { return 0 }
}

// combine runs the combiner over sorted records, and sorts what it writes: commands often write groups in another order.
func (c *compiled) combine(t *runtime.Task, in runtime.Records, emit func(key, value []byte) error) error {
	all := combined{dir: t.Dir(), max: c.sortMiB << 20}
	defer all.close()
	var storedKey, storedValue []byte
	keep := func(key, value []byte) error {
		storedKey, storedValue = c.stored(storedKey[:0], storedValue[:0], key, value)
		return all.add(storedKey, storedValue)
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
	feed := func(to *input) error { return c.feedGroup(in, false, to) }
	if err := child.run(feed, c.newReader(c.forms.reduceOut, c.reduceCut), keep); err != nil {
		return err
	}
	return all.emit(emit)
}

// link puts the side files into the attempt's directory. The directory that the attempt's commands get as TMPDIR is there, too.
func (c *compiled) link(t *runtime.Task) error {
	if err := os.MkdirAll(filepath.Join(t.Dir(), temporary), 0o777); err != nil {
		return fmt.Errorf("make the attempt's temporary directory: %w", err)
	}
	for name := range c.plan.Files {
		if runtime.IsDirectory(name) {
			if err := t.LinkDirectory(strings.TrimSuffix(name, "/")); err != nil {
				return err
			}
			continue
		}
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
