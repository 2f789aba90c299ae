package skew

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/quernmr/quern/wire"
)

// TestKeys compares Keys with a list of the last report of each partition. All partitions have few enough keys,
// so that none that was left out can come back.
func TestKeys(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var k Keys
		reports := make(map[int]*wire.Hot)
		for range rapid.IntRange(0, 30).Draw(t, "reports") {
			p := rapid.IntRange(0, 3).Draw(t, "partition")
			hot := &wire.Hot{Read: rapid.Int64Range(0, 9).Draw(t, "read"), Of: 9}
			for i := range rapid.IntRange(0, 4).Draw(t, "keys") {
				hot.Groups = append(hot.Groups, wire.HotGroup{Key: fmt.Sprint(i), Records: 1, Bytes: rapid.Int64Range(1, 5).Draw(t, "bytes")})
			}
			k.Set(p, nil, true)
			k.Set(p, hot, true)
			if reports[p] == nil || len(reports[p].Groups) == 0 || reports[p].Read <= hot.Read {
				reports[p] = hot
			}
			if rapid.IntRange(0, 5).Draw(t, "drop") == 0 {
				k.Drop(p)
				delete(reports, p)
			}
		}
		var want []wire.HotKey
		for p, hot := range reports {
			for _, g := range hot.Groups {
				want = append(want, wire.HotKey{Partition: p, Key: g.Key, Combined: true, Records: 1, Bytes: g.Bytes, Of: 9})
			}
		}
		slices.SortFunc(want, func(a, b wire.HotKey) int {
			return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.Key, b.Key))
		})
		if len(k.List())+len(want) > 0 && !reflect.DeepEqual(k.List(), want) {
			t.Fatalf("%+v\nwant %+v", k.List(), want)
		}
	})
}

// TestKeysAreBounded: a report with too many groups, of hostile keys, takes a bounded part of the list.
func TestKeysAreBounded(t *testing.T) {
	var k Keys
	for p := range 5 {
		hot := &wire.Hot{Read: 1000, Of: 1000}
		for i := range 100 {
			hot.Groups = append(hot.Groups, wire.HotGroup{Key: strings.Repeat("\x1b[31m", 100), Bytes: int64(1000 - i)})
		}
		k.Set(p, hot, true)
	}
	if len(k.List()) != wire.MaxHotKeys {
		t.Fatalf("%d keys, want %d", len(k.List()), wire.MaxHotKeys)
	}
	for i, x := range k.List() {
		if x.Bytes != int64(1000-i/5) || x.Partition != i%5 {
			t.Errorf("key %d has %d bytes of partition %d", i, x.Bytes, x.Partition)
		}
		if strings.ContainsRune(x.Key, 0x1b) || len(x.Key) > wire.MaxHotKey+len("…") {
			t.Errorf("key %q of %d bytes", x.Key, len(x.Key))
		}
	}
}
