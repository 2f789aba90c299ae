package mapreduce

import (
	"unsafe"

	"github.com/quernmr/quern/shuffle"
	"github.com/quernmr/quern/wire"
)

// folder combines what a map emits in a hash table of encoded keys, beside which
// the values stand in a plain slice; nothing of them is encoded before the table
// is full or the split ends. Partitions are computed then, once for a key.
//
// It costs memory beside the collector's, so it is bounded, and turns itself off
// when keys hardly repeat.
type folder[K, V any] struct {
	*collect[K, V]
	f     func(a, b V) V
	table *shuffle.Table
	vals  []V
	most  int // values to hold
	view  *decoder

	since   int64 // records folded since the last flush
	folded  int64 // records ever folded
	flushed int64 // records that took their place
	keys    int64 // bytes of the keys of folded records, less those flushed
	off     bool
}

const (
	foldTableMemory = 16 << 20
	foldValueMemory = 16 << 20
)

func newFolder[K, V any](c *collect[K, V], f func(a, b V) V) (*folder[K, V], error) {
	var v V
	most := foldValueMemory / max(int(unsafe.Sizeof(v)), 1)
	table, err := shuffle.NewTable(foldTableMemory)
	if err != nil {
		return nil, err
	}
	return &folder[K, V]{collect: c, f: f, table: table, most: most, view: &decoder{}}, nil
}

func (f *folder[K, V]) close() { f.table.Close() }

func (f *folder[K, V]) emit(k K, v V) {
	if !f.t.open {
		f.t.refuse(errLateEmit)
		return
	}
	key := f.key.encode(&f.kbuf, k)
	if f.off {
		f.put(k, key, v)
		return
	}
	i, fresh, full := f.table.Insert(key)
	if full {
		f.makeRoom(k, key, v)
		return
	}
	f.since++
	f.keys += int64(len(key))
	if !fresh {
		f.vals[i] = f.f(f.vals[i], v)
		return
	}
	f.vals = append(f.vals, v)
	if len(f.vals) >= f.most {
		f.turnOver()
	}
}

// makeRoom emits what the full table has no room for.
func (f *folder[K, V]) makeRoom(k K, key []byte, v V) {
	alone := f.table.Len() == 0 // a key larger than the whole table
	f.turnOver()
	if f.off || alone {
		f.put(k, key, v)
		return
	}
	f.emit(k, v)
}

// turnOver flushes the table in the middle of a split, where it can be seen
// whether it is worth its while: collecting a record costs several times as much
// as looking its key up, so it is unless fewer than one in five is saved.
func (f *folder[K, V]) turnOver() {
	f.off = f.since > 0 && int64(f.table.Len())*5 > f.since*4
	f.flush()
}

func (f *folder[K, V]) flush() {
	var k K
	for i := range f.table.Len() {
		if f.t.err != nil {
			break
		}
		key := f.table.Key(i)
		if f.route != nil {
			var err error
			if k, err = read(f.key, f.view, key); err != nil {
				f.t.fail(err)
				break
			}
		}
		f.put(k, key, f.vals[i])
		f.keys -= int64(len(key))
		f.flushed++
	}
	f.folded += f.since
	f.since = 0
	f.table.Reset()
	f.vals = f.vals[:0]
}

// count corrects the counters, which know what the collector was given, by what
// the table kept from it. The collector combines and counts the rest.
func (f *folder[K, V]) count() {
	f.folded += f.since
	var v V
	size := int64(len(f.value.encode(&f.vbuf, v)))
	saved := f.folded - f.flushed
	for name, n := range map[string]int64{
		wire.CombineInputRecords: saved,
		wire.MapOutputRecords:    saved,
		wire.MapOutputBytes:      f.keys + size*saved,
	} {
		f.t.Counter(wire.TaskCounters, name).Add(n)
	}
}
