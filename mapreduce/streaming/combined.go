package streaming

import (
	"bufio"
	"bytes"
	"cmp"
	"container/heap"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
)

// combined sorts the records of a combiner's output. Beyond max bytes it writes sorted runs into a file without a name: a
// record is the lengths of key and value as varints, and both.
type combined struct {
	dir       string // for the file
	max, size int    // bytes in memory
	block     []byte
	records   []combinedRecord

	file *os.File
	ends []int64 // of the runs
}

// combinedRecord is a record in a block.
type combinedRecord struct {
	data       []byte // the key and the value
	key, order int    // length of the key, number of the record in memory
}

const (
	combinedBlock    = 1 << 20
	combinedOverhead = 48 // bytes of memory beside a record
)

// add takes a record, which may change later.
func (c *combined) add(key, value []byte) error {
	n := len(key) + len(value)
	if c.size += n + combinedOverhead; c.size > c.max && len(c.records) > 0 {
		if err := c.spill(); err != nil {
			return fmt.Errorf("sort the output of the combiner: %w", err)
		}
		c.size = n + combinedOverhead
	}
	if n > cap(c.block)-len(c.block) {
		c.block = make([]byte, 0, max(n, min(c.max, combinedBlock)))
	}
	at := len(c.block)
	c.block = append(append(c.block, key...), value...)
	c.records = append(c.records, combinedRecord{c.block[at : at+n : at+n], len(key), len(c.records)})
	return nil
}

// inMemory passes on the records in memory in the order of their keys.
func (c *combined) inMemory(put sink) error {
	slices.SortFunc(c.records, func(a, b combinedRecord) int {
		return cmp.Or(bytes.Compare(a.data[:a.key], b.data[:b.key]), a.order-b.order)
	})
	for _, r := range c.records {
		if err := put(r.data[:r.key], r.data[r.key:]); err != nil {
			return err
		}
	}
	return nil
}

// spill writes the records in memory as a run.
func (c *combined) spill() (err error) {
	if c.file == nil {
		if c.file, err = os.CreateTemp(c.dir, "combined-"); err != nil {
			return err
		}
		if err = os.Remove(c.file.Name()); err != nil {
			return err
		}
	}
	w, size, head := bufio.NewWriterSize(c.file, 64<<10), int64(0), []byte(nil)
	err = c.inMemory(func(key, value []byte) error {
		head = binary.AppendUvarint(binary.AppendUvarint(head[:0], uint64(len(key))), uint64(len(value)))
		size += int64(len(head) + len(key) + len(value))
		w.Write(head) // the first error is final
		w.Write(key)
		_, err := w.Write(value)
		return err
	})
	begin := int64(0)
	if len(c.ends) > 0 {
		begin = c.ends[len(c.ends)-1]
	}
	c.ends = append(c.ends, begin+size)
	c.block, c.records = c.block[:0], c.records[:0]
	return errors.Join(err, w.Flush())
}

// emit passes on all records in the order of their keys; equal ones in the order of add.
func (c *combined) emit(put sink) error {
	if c.file == nil {
		return c.inMemory(put)
	}
	if err := c.spill(); err != nil {
		return fmt.Errorf("sort the output of the combiner: %w", err)
	}
	c.block, c.records = nil, nil
	var all runs
	begin, buffer := int64(0), max(4<<10, min(64<<10, c.max/len(c.ends)))
	for i, end := range c.ends {
		r := &run{order: i, in: bufio.NewReaderSize(io.NewSectionReader(c.file, begin, end-begin), buffer)}
		if more, err := r.next(); err != nil {
			return err
		} else if more {
			all = append(all, r)
		}
		begin = end
	}
	heap.Init(&all)
	for len(all) > 0 {
		first := all[0]
		if err := put(first.record[:first.key], first.record[first.key:]); err != nil {
			return err
		}
		if more, err := first.next(); err != nil {
			return err
		} else if more {
			heap.Fix(&all, 0)
		} else {
			heap.Pop(&all)
		}
	}
	return nil
}

func (c *combined) close() {
	if c.file != nil {
		c.file.Close()
	}
}

// run is a sorted run in the file.
type run struct {
	order  int
	in     *bufio.Reader
	record []byte
	key    int // bytes
}

// next reads a record; more is false at the end.
func (r *run) next() (more bool, err error) {
	key, err := binary.ReadUvarint(r.in)
	if err == io.EOF {
		return false, nil
	}
	value := uint64(0)
	if err == nil {
		value, err = binary.ReadUvarint(r.in)
	}
	if err == nil {
		if n := int(key + value); n > cap(r.record) {
			r.record = make([]byte, n)
		}
		r.key, r.record = int(key), r.record[:key+value]
		_, err = io.ReadFull(r.in, r.record)
	}
	if err != nil {
		return false, fmt.Errorf("sort the output of the combiner: %w", err)
	}
	return true, nil
}

// runs is a heap by the current keys.
type runs []*run

func (r runs) Len() int { return len(r) }

func (r runs) Less(i, j int) bool {
	order := bytes.Compare(r[i].record[:r[i].key], r[j].record[:r[j].key])
	return order < 0 || order == 0 && r[i].order < r[j].order
}

func (r runs) Swap(i, j int) { r[i], r[j] = r[j], r[i] }
func (r *runs) Push(x any)   { *r = append(*r, x.(*run)) }

func (r *runs) Pop() any {
	last := (*r)[len(*r)-1]
	*r = (*r)[:len(*r)-1]
	return last
}
