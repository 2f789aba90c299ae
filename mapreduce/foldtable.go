package mapreduce

import (
	"fmt"
	"unsafe"

	"github.com/quernmr/quern/shuffle"
	"github.com/quernmr/quern/wire"
)

// foldTable combines map output in a hash table of encoded keys, with the values in a
// slice. It encodes values and computes partitions only when the table is full or the
// split ends, once for each key.
//
// Its memory comes on top of the collector's, so it is bounded. It is disabled if keys
// rarely repeat.
type foldTable[K, V any] struct {
	*collect[K, V]
	f         func(a, b V) V
	table     *shuffle.Table
	vals      []V
	maxValues int // flush at this number of values
	view      *decoder

	sinceFlush int64 // records folded since the last flush
	folded     int64 // records ever folded
	flushed    int64 // records that the table has emitted
	keyBytes   int64 // bytes of the folded records' keys, minus those of the emitted keys
	disabled   bool
}

const (
	foldTableMemory = 16 << 20
	foldValueMemory = 16 << 20
)

func newFoldTable[K, V any](c *collect[K, V], f func(a, b V) V) (*foldTable[K, V], error) {
	var v V
	maxValues := foldValueMemory / max(int(unsafe.Sizeof(v)), 1)
	table, err := shuffle.NewTable(foldTableMemory)
	if err != nil {
		return nil, err
	}
	return &foldTable[K, V]{collect: c, f: f, table: table, maxValues: maxValues, view: &decoder{}}, nil
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
	i, isNew, full := f.table.Insert(key)
	if full {
		f.makeRoom(k, key, v)
		return
	}
	f.sinceFlush++
	f.keyBytes += int64(len(key))
	if !isNew {
		f.vals[i] = f.f(f.vals[i], v)
		return
	}
	f.vals = append(f.vals, v)
	if len(f.vals) >= f.maxValues {
		f.flushFull()
	}
}

// makeRoom flushes the full table and then emits the record.
func (f *foldTable[K, V]) makeRoom(k K, key []byte, v V) {
	tooLarge := f.table.Len() == 0 // the key is larger than the whole table
	f.flushFull()
	if f.disabled || tooLarge {
		f.put(k, key, v)
		return
	}
	f.emit(k, v)
}

// flushFull flushes the full table, and disables it if it saves fewer than one record
// in five: collecting a record costs several times as much as a lookup.
func (f *foldTable[K, V]) flushFull() {
	f.disabled = f.sinceFlush > 0 && int64(f.table.Len())*5 > f.sinceFlush*4
	f.flush()
}

func (f *foldTable[K, V]) flush() {
	var k K
	for i := range f.table.Len() {
		if f.t.err != nil {
			break
		}
		key := f.table.Key(i)
		if f.route != nil {
			var err error
			if k, err = read(f.key, f.view, key); err != nil {
				f.t.fail(fmt.Errorf("partition %s: %w", keyBytes(key), err))
				break
			}
		}
		f.put(k, key, f.vals[i])
		f.keyBytes -= int64(len(key))
		f.flushed++
	}
	f.folded += f.sinceFlush
	f.sinceFlush = 0
	f.table.Reset()
	f.vals = f.vals[:0]
}

// count adds the records that the table combined to the counters. The collector counts
// the records that it receives.
func (f *foldTable[K, V]) count() {
	f.folded += f.sinceFlush
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
