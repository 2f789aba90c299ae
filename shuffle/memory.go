package shuffle

import "io"

// memoryRun is a sorted run in an arena.
type memoryRun struct {
	mem     []byte
	entries []entry // not yet taken
	sizes   [batchMost]int
	buf     []byte
}

// batchMost is how many records are taken from an arena at once: their order is
// not that of memory, so each is a cache miss, and these overlap when all of a
// batch are touched before the first is used.
const batchMost = 32

// take takes the next few entries, with their records' encoded sizes.
func (r *memoryRun) take() ([]entry, []int) {
	batch := r.entries[:min(batchMost, len(r.entries))]
	for i := range batch {
		_, _, r.sizes[i], _ = lengths(r.mem[batch[i].offset:])
	}
	r.entries = r.entries[len(batch):]
	return batch, r.sizes[:len(batch)]
}

// record is an entry's encoded record, given its size.
func (r *memoryRun) record(e *entry, size int) []byte {
	return r.mem[e.offset:][:size:size]
}

// next gathers a few records. A large one is delivered from where it is.
func (r *memoryRun) next() ([]byte, bool, error) {
	if len(r.entries) == 0 {
		return nil, false, io.EOF
	}
	left := r.entries
	r.buf = r.buf[:0]
	batch, sizes := r.take()
	for i := range batch {
		if len(r.buf)+sizes[i] > blockTarget {
			if i == 0 {
				r.entries = left[1:]
				return r.record(&batch[0], sizes[0]), true, nil
			}
			r.entries = left[i:]
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
