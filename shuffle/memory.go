package shuffle

import "io"

// memoryRun is a sorted run in an arena.
type memoryRun struct {
	mem     []byte
	entries []entry // not yet taken
	counted uint32  // records before this offset have counts
	taken   int     // of the first entry's record, so often
	sizes   [batchSize]int
	buf     []byte
	touched byte // keeps the compiler from removing the loads
}

// batchSize is the number of records taken from an arena at once. Sorted records are
// scattered in memory, so each is a few cache misses. Reading the lengths of a batch first, the
// byte a cache line further on, and then the last bytes, lets these misses overlap.
const batchSize = 32

const cacheLine = 64

// take returns the next few entries and their records' encoded sizes.
func (r *memoryRun) take() ([]entry, []int) {
	batch := r.entries[:min(batchSize, len(r.entries))]
	touched := byte(0)
	for i := range batch {
		record := r.mem[batch[i].offset:]
		touched += record[min(cacheLine, len(record)-1)]
		_, _, r.sizes[i], _ = lengths(record)
	}
	for i := range batch {
		touched += r.mem[int(batch[i].offset)+r.sizes[i]-1]
	}
	r.touched = touched
	r.entries = r.entries[len(batch):]
	return batch, r.sizes[:len(batch)]
}

// record returns the encoded record of an entry, given its size.
func (r *memoryRun) record(e *entry, size int) []byte {
	return r.mem[e.offset:][:size:size]
}

// count returns how often the record of an entry was collected.
func (r *memoryRun) count(e *entry) int { return countOf(r.mem, e.offset, r.counted) }

// next copies a few records into one block. It returns a large record without a copy.
func (r *memoryRun) next() ([]byte, bool, error) {
	if len(r.entries) == 0 {
		return nil, false, io.EOF
	}
	before := r.entries
	r.buf = r.buf[:0]
	batch, sizes := r.take()
	for i := range batch {
		left := r.count(&batch[i]) - r.taken
		n := min(left, (blockTarget-len(r.buf))/sizes[i])
		if n == 0 && len(r.buf) == 0 { // a large record
			n = 1
		}
		if n < left { // the block is full
			r.entries = before[i:]
			r.taken += n
		} else {
			r.taken = 0
		}
		switch {
		case sizes[i] > blockTarget && len(r.buf) == 0:
			if n == left {
				r.entries = before[i+1:]
			}
			return r.record(&batch[i], sizes[i]), true, nil
		case n > 0:
			r.buf = appendRepeated(r.buf, r.record(&batch[i], sizes[i]), n)
		}
		if n < left {
			break
		}
	}
	return r.buf, true, nil
}

func (r *memoryRun) load([]byte) ([]byte, error) { panic("shuffle: a run in memory is whole") }

func (r *memoryRun) part([]byte, int, int) ([]byte, error) {
	panic("shuffle: a run in memory is whole")
}
