package shuffle

import (
	"errors"
	"fmt"
	"os"
)

// Config configures a [Collector].
type Config struct {
	Partitions int     // 1 to [MaxPartitions]
	Memory     int64   // bytes for records, index and sorting; above 4 GiB counts as 4 GiB
	Dir        string  // existing directory for spilled runs
	File       string  // the segment file to write
	MaxRecord  int64   // key and value together, in bytes; 0: [DefaultMaxRecord]
	Codec      string  // one of [CodecNames]: the codec that packs blocks; or [AutoCodec]
	Network    Network // for AutoCodec
	OnProgress func()  // if not nil, called repeatedly while runs are written and merged
	Kept       *Memory // of earlier collectors, for this one and later ones; nil: none is kept

	// Combine, if not nil, reads all records of a part of a partition and emits fewer. It
	// must not change keys and must emit them in order. It also gets its own output, merged,
	// and is never called without records.
	Combine func(in Records, emit func(key, value []byte) error) error
}

// Stats counts the records of a collector.
type Stats struct {
	Records    int64 // collected
	Bytes      int64 // of keys and values collected
	Spills     int   // runs spilled, without the segment file
	Spilled    int64 // records written to spilled runs and to the segment file
	CombineIn  int64 // records read by Combine
	CombineOut int64 // records emitted by Combine
}

// Output describes a finished segment file.
type Output struct {
	Bytes      int64  // of the file
	Partitions int64  // bytes of all partitions, without the index
	Digest     uint64 // [Index.Digest]
	Stats      Stats
	Choice     Choice // with [AutoCodec]: the last choice
}

// Collector takes records in any order and writes them as a segment file. Records fill one
// memory area from the front, index entries fill it from the back. When both meet, Collect
// sorts all records and spills them as a run. Of neighbors among the records of a key that are equal, most
// take memory only once (see repeats). It does not spill in the background, because
// with a task per core no core is idle. Close merges the runs and the records in memory,
// with at most 128 block buffers of 64 KiB. Without spills every byte is written once.
type Collector struct {
	cfg        Config
	codec      *namedCodec
	arena      arena
	mem        []byte  // the arena's
	index      []entry // the same memory, as entries
	used       int     // bytes of mem that hold records
	firstEntry int     // position of the first used entry in index
	repeats    repeats // in the memory after the index
	distinct   bool    // no two records have the same key

	sorter     *sorter
	spills     []string // files, ordered by arrival of their records
	spillCount int      // spilled runs so far, for names
	stats      Stats
	err        error // every later call returns it
}

// fanIn is the number of runs that Close merges at once.
const fanIn = 128

var errClosed = errors.New("collector is closed")

// NewCollector makes a collector. Its memory is outside the Go heap: call Close or Discard.
func NewCollector(cfg Config) (*Collector, error) {
	if cfg.MaxRecord == 0 {
		cfg.MaxRecord = DefaultMaxRecord
	}
	switch {
	case cfg.Partitions < 1 || cfg.Partitions > MaxPartitions:
		return nil, fmt.Errorf("the number of partitions must be 1 to %d, got %d", MaxPartitions, cfg.Partitions)
	case cfg.Memory < 1:
		return nil, fmt.Errorf("the memory of a collector must be positive, got %d bytes", cfg.Memory)
	case cfg.MaxRecord < 1 || cfg.MaxRecord > MaxMaxRecord:
		return nil, fmt.Errorf("the record limit must be 1 to %d bytes, got %d", MaxMaxRecord, cfg.MaxRecord)
	}
	var codec *namedCodec
	if cfg.Codec != AutoCodec {
		var err error
		if codec, err = codecNamed(cfg.Codec); err != nil {
			return nil, err
		}
	}
	arena, used, err := cfg.Kept.take(cfg.Memory &^ (entrySize - 1))
	if err != nil {
		return nil, fmt.Errorf("new collector: %w", err)
	}
	c := &Collector{cfg: cfg, codec: codec, arena: arena, mem: arena.mem, index: viewAs[entry](arena.mem)}
	n := len(c.index) - repeatSlots(len(c.mem))
	if used {
		clear(c.index[n:])
	}
	c.repeats.start(c.index[n:])
	c.index, c.firstEntry = c.index[:n], n
	c.sorter = newSorter(c.mem, cfg.Partitions)
	return c, nil
}

// Collect takes one record and copies key and value. The first error is final: every later
// call returns it too.
func (c *Collector) Collect(partition int, key, value []byte) error {
	if c.err != nil || uint(partition) >= uint(c.cfg.Partitions) || int64(len(key)+len(value)) > c.cfg.MaxRecord {
		return c.refuse(partition, key, value)
	}
	c.stats.Records++
	c.stats.Bytes += int64(len(key) + len(value))
	return c.put(partition, key, value)
}

// Distinct says that no two records that are ever collected have the same key, and that Combine keeps a key's
// only record as it is. So Combine is not called from now on, but its records count.
func (c *Collector) Distinct() { c.distinct = true }

// combines reports whether Combine must be called.
func (c *Collector) combines() bool { return c.cfg.Combine != nil && !c.distinct }

// countKept counts records that Combine would have kept.
func (c *Collector) countKept(n int) {
	if c.cfg.Combine != nil {
		c.stats.CombineIn += int64(n)
		c.stats.CombineOut += int64(n)
	}
}

func (c *Collector) put(partition int, key, value []byte) error {
	if c.repeats.on {
		return c.putWaiting(partition, key, value)
	}
	size := recordSize(len(key), len(value))
	if c.used+size > (c.firstEntry-1)*entrySize {
		if stored, err := c.makeRoom(partition, key, value); stored || err != nil {
			return err
		}
		return c.put(partition, key, value)
	}
	putRecord(c.mem[c.used:], key, value)
	c.firstEntry--
	c.index[c.firstEntry] = entry{prefixOf(key), uint32(c.used), tagOf(partition, len(key))}
	c.used += size
	return nil
}

// putWaiting adds a record to the batch of the cache.
func (c *Collector) putWaiting(partition int, key, value []byte) error {
	r, size := &c.repeats, countSize+recordSize(len(key), len(value))
	if c.used+size > (c.firstEntry-1-r.waiting)*entrySize {
		if r.waiting > 0 {
			c.settle()
		} else if stored, err := c.makeRoom(partition, key, value); stored || err != nil {
			return err
		}
		return c.put(partition, key, value)
	}
	c.used += countSize
	putRecord(c.mem[c.used:], key, value)
	e := entry{prefixOf(key), uint32(c.used), tagOf(partition, len(key))}
	r.batch[r.waiting], r.at[r.waiting] = e, r.slot(&e, key)
	c.used += size - countSize
	if r.waiting++; r.waiting == len(r.batch) {
		c.settle()
	}
	return nil
}

// refuse returns the error for a record that cannot be taken.
func (c *Collector) refuse(partition int, key, value []byte) error {
	switch {
	case c.err != nil:
	case uint(partition) >= uint(c.cfg.Partitions):
		c.err = fmt.Errorf("record for partition %d of %d", partition, c.cfg.Partitions)
	default:
		c.err = fmt.Errorf("%w: %d bytes (key %d, value %d), the limit is %d",
			ErrRecordTooLarge, len(key)+len(value), len(key), len(value), c.cfg.MaxRecord)
	}
	return c.err
}

// makeRoom empties the memory. A record larger than the memory then becomes a run of its
// own.
func (c *Collector) makeRoom(partition int, key, value []byte) (stored bool, err error) {
	if c.firstEntry < len(c.index) {
		c.err = c.spill()
	}
	if c.err == nil && countSize+recordSize(len(key), len(value)) > (len(c.index)-1)*entrySize {
		stored = true
		c.err = c.spillRecord(partition, key, value)
	}
	return stored, c.err
}

// run returns a partition's records in memory. The index must be sorted.
func (c *Collector) run(partition int) *memoryRun {
	start, all := uint32(0), c.index[c.firstEntry:]
	if partition > 0 {
		start = c.sorter.ends[partition-1]
	}
	return &memoryRun{mem: c.mem, entries: all[start:c.sorter.ends[partition]], counted: c.repeats.end}
}

// writeRun combines and writes a partition's records from memory.
func (c *Collector) writeRun(w *segmentWriter, run *memoryRun) error {
	if c.combines() && len(run.entries) > 0 {
		return c.combine(w, newMerge([]source{run}))
	}
	c.countKept(len(run.entries))
	for len(run.entries) > 0 {
		batch, sizes := run.take()
		for i := range batch {
			if err := w.addRepeated(run.record(&batch[i], sizes[i]), run.count(&batch[i])); err != nil {
				return err
			}
		}
	}
	return nil
}

// write writes a segment file. It calls each to write a partition.
func (c *Collector) write(name string, each func(w *segmentWriter, partition int) error) (*segmentWriter, error) {
	w, err := createSegment(name, os.Create)
	if err != nil {
		return nil, err
	}
	defer w.abort()
	w.onProgress, w.codec, w.temporary = c.cfg.OnProgress, c.codec, name != c.cfg.File
	if c.cfg.Codec == AutoCodec && !w.temporary { // runs do not cross the network
		w.chooser = newChooser(c.cfg.Network, c.stats.Bytes)
	}
	for p := range c.cfg.Partitions {
		if err := each(w, p); err != nil {
			return nil, err
		}
		if err := w.endPartition(); err != nil {
			return nil, err
		}
		c.stats.Spilled += w.index.Partitions[p].Records
	}
	return w, w.close()
}

// Close writes the segment file and frees the memory. After an error, call Discard.
func (c *Collector) Close() (Output, error) {
	if c.err != nil {
		return Output{}, c.err
	}
	w, err := c.finish()
	if err != nil {
		c.err = fmt.Errorf("write map output: %w", err)
		return Output{}, c.err
	}
	c.err = errClosed
	c.cfg.Kept.put(&c.arena)
	out := Output{Bytes: w.written, Partitions: w.index.bytes(), Digest: w.index.Digest(), Stats: c.stats}
	if w.chooser != nil {
		out.Choice = w.chooser.choice
	}
	return out, nil
}

// Discard frees the memory and removes all files, except the segment file of a successful
// Close.
func (c *Collector) Discard() {
	c.cfg.Kept.put(&c.arena)
	c.removeSpills(c.spills)
	c.spills = nil
	if c.err == nil {
		c.err = errClosed
	}
}
