package shuffle

import "io"

// memoryRun is a sorted run in an arena.
type memoryRun struct {
	mem     []byte
	entries []entry // not yet taken
	sizes   [batchSize]int
	buf     []byte
}

// batchSize is the number of records taken from an arena at once. Sorted records are
// scattered in memory, so each is a cache miss. Reading the lengths of a batch first lets
// these misses overlap.
const batchSize = 32

// take returns the next few entries and their records' encoded sizes.
func (r *memoryRun) take() ([]entry, []int) {
	batch := r.entries[:min(batchSize, len(r.entries))]
	for i := range batch {
		_, _, r.sizes[i], _ = lengths(r.mem[batch[i].offset:])
	}
	r.entries = r.entries[len(batch):]
	return batch, r.sizes[:len(batch)]
}

// record returns the encoded record of an entry, given its size.
func (r *memoryRun) record(e *entry, size int) []byte {
	return r.mem[e.offset:][:size:size]
}

// next copies a few records into one block. It returns a large record without a copy.
func (r *memoryRun) next() ([]byte, bool, error) {
	if len(r.entries) == 0 {
		return nil, false, io.EOF
	}
	before := r.entries
	r.buf = r.buf[:0]
	batch, sizes := r.take()
	for i := range batch {
		if len(r.buf)+sizes[i] > blockTarget {
			if i == 0 {
				r.entries = before[1:]
				return r.record(&batch[0], sizes[0]), true, nil
			}
			r.entries = before[i:]
			break
		}
		r.buf = append(r.buf, r.record(&batch[i], sizes[i])...)
	}
	return r.buf, true, nil
}

func (r *memoryRun) load([]byte) ([]byte, error) { panic("shuffle: a run in memory is whole") }

func (r *memoryRun) part([]byte, int, int) ([]byte, error) {
	panic("shuffle: a run in memory is whole")
}
