package skew

import (
	"cmp"
	"slices"

	"github.com/quernmr/quern/wire"
)

// Keys holds the hot keys of a job: of all partitions those with most bytes. Its zero value is ready.
type Keys struct {
	list []wire.HotKey
	read map[int]int64 // of the reports in list, by partition
}

// Set takes the hot groups of a partition, as an attempt or a home reports them. The report that has read more of
// the partition counts: a reduce that begins again has read less at first. combined is as in wire.HotKey.
func (k *Keys) Set(partition int, hot *wire.Hot, combined bool) {
	if hot == nil || k.read[partition] > hot.Read {
		return
	}
	k.Drop(partition)
	for _, g := range hot.Groups[:min(len(hot.Groups), wire.MaxHotGroups)] {
		k.list = append(k.list, wire.HotKey{
			Partition: partition, Key: wire.PrintableKey(g.Key), Raw: g.Raw, Combined: combined, Records: g.Records, Bytes: g.Bytes, Of: hot.Of,
		})
	}
	slices.SortFunc(k.list, func(a, b wire.HotKey) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.Key, b.Key))
	})
	k.list = k.list[:min(len(k.list), wire.MaxHotKeys)]
	read := make(map[int]int64)
	for _, x := range k.list {
		read[x.Partition] = k.read[x.Partition]
		if x.Partition == partition {
			read[partition] = hot.Read
		}
	}
	k.read = read
}

// Drop forgets the keys of a partition: none of them is hot.
func (k *Keys) Drop(partition int) {
	k.list = slices.DeleteFunc(slices.Clone(k.list), func(x wire.HotKey) bool { return x.Partition == partition })
	delete(k.read, partition)
}

// List returns the keys, most bytes first. They must not be changed.
func (k *Keys) List() []wire.HotKey { return k.list }
