package shuffle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/quernmr/quern/wire"
)

var (
	errCombineOrder  = errors.New("combiner emitted a key that is smaller than the one before")
	errCombineUnread = errors.New("combiner did not read all records")
)

// combine writes what Combine makes of sorted records.
func (c *Collector) combine(w *segmentWriter, in *merge) error {
	counted := &countedRecords{merge: in}
	var last []byte
	emitted := int64(0)
	err := c.cfg.Combine(counted, func(key, value []byte) error {
		if bytes.Compare(key, last) < 0 {
			return fmt.Errorf("%w: %.64q after %.64q", errCombineOrder, key, last)
		}
		if size := int64(len(key) + len(value)); size > c.cfg.MaxRecord {
			return fmt.Errorf("%w: combiner emitted %d bytes, the limit is %d", ErrRecordTooLarge, size, c.cfg.MaxRecord)
		}
		last = append(last[:0], key...)
		emitted++
		return w.add(key, value)
	})
	// A combiner that forgets to look at Err must not lose the error, nor one
	// that returns early the records.
	if err == nil {
		err = in.Err()
	}
	if err == nil && counted.Next() {
		err = errCombineUnread
	}
	c.stats.CombineIn += counted.n
	c.stats.CombineOut += emitted
	return err
}

// countedRecords counts the records read.
type countedRecords struct {
	*merge
	n int64
}

func (r *countedRecords) Next() bool {
	if !r.merge.Next() {
		return false
	}
	r.n++
	return true
}

// finish writes the segment file from memory and spilled runs.
func (c *Collector) finish() (*segmentWriter, error) {
	c.sorter.sort(c.index[c.first:])
	if len(c.spills) == 0 {
		return c.write(c.cfg.File, func(w *segmentWriter, p int) error { return c.writeRun(w, c.run(p)) })
	}
	for len(c.spills) >= fanIn { // One place is for the run in memory.
		if err := c.mergeRound(); err != nil {
			return nil, err
		}
	}
	w, err := c.mergeSpills(c.cfg.File, c.spills, true)
	if err != nil {
		return nil, err
	}
	c.removeSpills(c.spills)
	c.spills = nil
	return w, nil
}

// mergeRound merges neighbours among the spilled runs into larger ones.
func (c *Collector) mergeRound() error {
	var merged []string
	rest := c.spills
	for _, size := range groups(len(c.spills), fanIn-1) {
		group := rest[:size]
		rest = rest[size:]
		name := group[0]
		if size > 1 {
			name = c.spillName()
			if _, err := c.mergeSpills(name, group, false); err != nil {
				return err
			}
			c.removeSpills(group)
		}
		merged = append(merged, name)
		c.spills = append(merged[:len(merged):len(merged)], rest...) // what Discard would remove
	}
	return nil
}

// mergeSpills merges spilled runs, combined, into one segment file. The last
// merge takes in what is in memory.
func (c *Collector) mergeSpills(name string, spills []string, last bool) (*segmentWriter, error) {
	runs := make([]*spilledRun, 0, len(spills))
	defer func() {
		for _, r := range runs {
			r.file.Close()
		}
	}()
	for _, s := range spills {
		r, err := openSpill(s)
		if err != nil {
			return nil, err
		}
		runs = append(runs, r)
	}
	return c.write(name, func(w *segmentWriter, p int) error {
		sources := make([]source, 0, len(runs)+1)
		for _, r := range runs {
			if s := r.partition(p); s != nil {
				sources = append(sources, s)
			}
		}
		if run := c.run(p); last && len(run.entries) > 0 {
			sources = append(sources, run)
		}
		return c.writeMerged(w, sources)
	})
}

// writeMerged writes one partition from several runs, combined.
func (c *Collector) writeMerged(w *segmentWriter, sources []source) error {
	m := newMerge(sources)
	if c.cfg.Combine != nil && len(sources) > 0 {
		return c.combine(w, m)
	}
	for m.Next() {
		if err := w.addEncoded(m.record); err != nil {
			return err
		}
	}
	return m.Err()
}

// spilledRun is a run being read.
type spilledRun struct {
	file   *os.File
	index  *Index
	reader blockReader // of the current partition
}

func openSpill(name string) (*spilledRun, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("merge spills: %w", err)
	}
	index, err := readIndex(f)
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("merge spills: %w", err)
	}
	return &spilledRun{file: f, index: index}, nil
}

// partition begins to read a partition, nil when it is empty. The buffer of the
// partition before is used again.
func (r *spilledRun) partition(p int) source {
	part := r.index.Partitions[p]
	if part.Length == 0 {
		return nil
	}
	r.reader = blockReader{
		ctx:  context.Background(),
		seg:  wire.Segment{Map: -1, File: r.file.Name(), Offset: part.Offset, Length: part.Length},
		in:   &fileInput{file: r.file, base: part.Offset, keep: true},
		size: part.Length,
		buf:  r.reader.buf,
	}
	return &r.reader
}
