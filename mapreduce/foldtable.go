package mapreduce

import (
	"fmt"
	"math"

	"github.com/quernmr/quern/shuffle"
	"github.com/quernmr/quern/wire"
)

// foldTable combines map output in a hash table of encoded keys, in batches: see [shuffle.Table].
// It copies keys and values before emit returns, and folds the values of a key in the order of
// emission. It passes keys to the collector only when the table is full or the split ends, once for
// each key.
//
// Its memory comes on top of the collector's, so it is bounded. It is disabled if keys
// rarely repeat.
type foldTable[K, V any] struct {
	*collect[K, V]
	f     func(a, b V) V
	table *shuffle.Table[V]
	view  *decoder

	emitted  int64 // records emitted since the last flush
	folded   int64 // records ever folded
	flushed  int64 // records that the table has emitted
	keyBytes int64 // bytes of the folded records' keys, minus those of the emitted keys
	disabled bool
	passed   bool // the collector has keys that the table may get again
}

// foldTableMemory is enough for 850,000 short keys with values of 8 bytes: for the distinct words of most splits.
const foldTableMemory = 40 << 20

// newFoldTable returns a table. A job that skips bad records has batches of one record: a panic of
// f must come while the map is at the record that causes it.
func newFoldTable[K, V any](c *collect[K, V], f func(a, b V) V, memory int64, skips bool) (*foldTable[K, V], error) {
	batch := math.MaxInt
	if skips {
		batch = 1
	}
	table, err := shuffle.NewTable[V](memory, batch)
	if err != nil {
		return nil, err
	}
	return &foldTable[K, V]{collect: c, f: f, table: table, view: &decoder{}}, nil
}

func (f *foldTable[K, V]) close() { f.table.Close() }

func (f *foldTable[K, V]) emit(k K, v V) {
	if !f.t.open {
		f.t.rejectLate(errLateEmit)
		return
	}
	key := f.key.encode(&f.kbuf, k)
	if f.disabled {
		f.put(k, key, v)
		return
	}
	f.emitted++
	f.keyBytes += int64(len(key))
	if f.table.Add(key, v) {
		f.fold()
	}
}

// fold empties the batch. A full table is flushed, also in the middle of the batch.
func (f *foldTable[K, V]) fold() {
	for !f.foldBatch() && f.t.err == nil {
		if f.table.Len() == 0 {
			f.passFirst() // the key is larger than the whole table
			continue
		}
		f.flushFull()
		for f.disabled && f.table.Pending() > 0 && f.t.err == nil {
			f.passFirst()
		}
	}
}

func (f *foldTable[K, V]) foldBatch() bool {
	defer f.namePanic()
	return f.table.Fold(f.f)
}

// namePanic adds the key to a panic of f: the map is at a later record. It drops the record, because a map can recover.
func (f *foldTable[K, V]) namePanic() {
	p := recover()
	if p == nil {
		return
	}
	if f.table.Pending() > 0 {
		encoded, _ := f.table.First()
		if k, err := read(f.key, f.view, encoded); err == nil {
			p = fmt.Sprintf("fold of key %q, of this record or one of the %d records emitted before: %v", f.key.text(nil, k), f.table.Pending(), p)
		}
		f.table.Drop()
	}
	panic(p)
}

// passFirst passes the first record of the batch to the collector.
func (f *foldTable[K, V]) passFirst() {
	f.passed = true
	key, v := f.table.First()
	f.pass(key, v)
	f.emitted--
	f.keyBytes -= int64(len(key))
	f.table.Drop()
}

// pass passes a record to the collector.
func (f *foldTable[K, V]) pass(key []byte, v V) {
	var k K
	if f.route != nil {
		var err error
		if k, err = read(f.key, f.view, key); err != nil {
			f.t.fail(fmt.Errorf("partition %s: %w", keyBytes(key), err))
			return
		}
	}
	f.put(k, key, v)
}

// flushFull flushes the full table, and disables it if it saves fewer than one record
// in five: collecting a record costs several times as much as a lookup.
func (f *foldTable[K, V]) flushFull() {
	f.passed = true
	f.disabled = int64(f.table.Len())*5 > (f.emitted-int64(f.table.Pending()))*4
	f.flush()
}

// flush passes the table's keys to the collector, and keeps the batch.
func (f *foldTable[K, V]) flush() {
	for key, v := range f.table.All() {
		if f.t.err != nil {
			break
		}
		f.pass(key, v)
		f.keyBytes -= int64(len(key))
		f.flushed++
	}
	pending := int64(f.table.Pending())
	f.folded += f.emitted - pending
	f.emitted = pending
	f.table.Reset()
}

// finish passes the rest to the collector. If that is all, the table has combined what a combiner could.
func (f *foldTable[K, V]) finish() {
	f.fold()
	if out, ok := f.out.(interface{ Distinct() }); ok && !f.passed {
		out.Distinct()
	}
	f.flush()
}

// count adds the records that the table combined to the counters. The collector counts
// the records that it receives.
func (f *foldTable[K, V]) count() {
	f.folded += f.emitted
	var v V
	size := int64(len(f.value.encode(&f.vbuf, v)))
	saved := f.folded - f.flushed
	for name, n := range map[string]int64{
		wire.CombineInputRecords: saved,
		wire.MapOutputRecords:    saved,
		wire.MapOutputBytes:      f.keyBytes + size*saved,
	} {
		f.t.Counter(wire.TaskCounters, name).Add(n)
	}
}
