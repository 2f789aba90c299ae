package shuffle

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/quernmr/quern/wire"
)

// spill writes the records in memory as a run.
func (c *Collector) spill() error {
	c.sorter.sort(c.index[c.firstEntry:])
	name := c.spillName()
	_, err := c.write(name, func(w *segmentWriter, p int) error { return c.writeRun(w, c.run(p)) })
	if err != nil {
		return fmt.Errorf("spill: %w", err)
	}
	c.addSpill(name)
	return nil
}

// spillRecord writes a run of one record.
func (c *Collector) spillRecord(partition int, key, value []byte) error {
	name := c.spillName()
	_, err := c.write(name, func(w *segmentWriter, p int) error {
		if p != partition {
			return nil
		}
		return w.add(key, value)
	})
	if err != nil {
		return fmt.Errorf("spill a record of %d bytes: %w", len(key)+len(value), err)
	}
	c.addSpill(name)
	return nil
}

func (c *Collector) spillName() string {
	c.spillCount++
	return filepath.Join(c.cfg.Dir, fmt.Sprintf("spill-%06d", c.spillCount-1))
}

func (c *Collector) addSpill(name string) {
	c.spills = append(c.spills, name)
	c.stats.Spills++
	c.used, c.firstEntry = 0, len(c.index)
	c.repeats.reset()
}

// finish writes the segment file from the records in memory and the spilled runs.
func (c *Collector) finish() (*segmentWriter, error) {
	c.settle()
	c.sorter.sort(c.index[c.firstEntry:])
	if len(c.spills) == 0 {
		return c.write(c.cfg.File, func(w *segmentWriter, p int) error { return c.writeRun(w, c.run(p)) })
	}
	for len(c.spills) >= fanIn { // the run in memory is an input too
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

// mergeRound merges neighboring runs into larger ones.
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
		c.spills = append(merged[:len(merged):len(merged)], rest...) // the files that Discard must remove
	}
	return nil
}

// mergeSpills merges and combines spilled runs into one segment file. The last merge
// includes the records in memory.
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
			if s := r.partition(p, c.cfg.OnProgress); s != nil {
				sources = append(sources, s)
			}
		}
		if last {
			sources = append(sources, c.run(p))
		}
		return c.writeMerged(w, sources)
	})
}

// writeMerged merges, combines and writes one partition of several runs.
func (c *Collector) writeMerged(w *segmentWriter, sources []source) error {
	m := newMerge(sources)
	if m.err == nil && m.empty() {
		return nil
	}
	if c.combines() {
		return c.combine(w, m)
	}
	n := 0
	for ; m.Next(); n++ {
		if err := w.addEncoded(m.record); err != nil {
			return err
		}
	}
	c.countKept(n)
	return m.Err()
}

// spilledRun is an open run.
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

// partition returns a source for a partition; nil: it is empty. It reuses the buffer of the
// previous one.
func (r *spilledRun) partition(p int, onProgress func()) source {
	part := r.index.Partitions[p]
	if part.Length == 0 {
		return nil
	}
	r.reader = blockReader{
		ctx:  context.Background(),
		seg:  wire.Segment{Map: -1, File: r.file.Name(), Offset: part.Offset, Length: part.Length},
		in:   &fileInput{file: r.file, base: part.Offset},
		size: part.Length,
		buf:  r.reader.buf,
		// A combiner may leave little to write, so reads report progress too.
		onProgress: onProgress,
	}
	return &r.reader
}

// removeSpills removes files that are no longer needed. It ignores errors: the attempt's
// directory is removed later.
func (c *Collector) removeSpills(files []string) {
	for _, file := range files {
		_ = os.Remove(file)
	}
}
