package gather

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/quernmr/quern/shuffle"
	"github.com/quernmr/quern/tasktracker/core"
	"github.com/quernmr/quern/wire"
)

// writeMap writes a map output and returns its index.
func writeMap(t testing.TB, file string, partitions int, emit func(collect func(p int, key, value []byte))) *shuffle.Index {
	t.Helper()
	c, err := shuffle.NewCollector(shuffle.Config{Partitions: partitions, Memory: 16 << 20, Dir: filepath.Dir(file), File: file})
	if err != nil {
		t.Fatal(err)
	}
	emit(func(p int, key, value []byte) {
		if err := c.Collect(p, key, value); err != nil {
			t.Fatal(err)
		}
	})
	if _, err := c.Close(); err != nil {
		t.Fatal(err)
	}
	index, err := shuffle.ReadIndex(file)
	if err != nil {
		t.Fatal(err)
	}
	return index
}

// TestMergeFindsLargeGroups: a merge of map outputs tells which keys have many bytes, and how much it has read.
func TestMergeFindsLargeGroups(t *testing.T) {
	dir := t.TempDir()
	var runs []wire.Segment
	for m := range 2 {
		file := filepath.Join(dir, fmt.Sprint("map-", m))
		index := writeMap(t, file, 1, func(collect func(p int, key, value []byte)) {
			for i := range 100 {
				for _, key := range []string{"hot", fmt.Sprint("k", i)} {
					collect(0, []byte(key), make([]byte, 1000))
				}
			}
		})
		p := index.Partitions[0]
		runs = append(runs, wire.Segment{Map: m, File: file, Offset: p.Offset, Length: p.Length})
	}
	events := make(chan core.Event, 1)
	g := New(Config{OnEvent: func(ev core.Event) { events <- ev }, Log: slog.New(slog.DiscardHandler)})
	g.Merge(t.Context(), core.Merge{Merge: 3, Runs: runs, File: filepath.Join(dir, "home", "merge-3")})
	var done core.MergeDone
	select {
	case ev := <-events:
		done = ev.(core.MergeDone)
	case <-time.After(time.Minute):
		t.Fatal("the merge does not end")
	}
	const record = 3 + 3 + 1000 // lengths, key, value
	want := []wire.HotGroup{{Key: "hot", Raw: true, Records: 200, Bytes: 200 * record}}
	if done.Error != "" || done.Hot == nil || !reflect.DeepEqual(done.Hot.Groups, want) {
		t.Fatalf("%q, %+v, want %+v", done.Error, done.Hot, want)
	}
	if read := int64(200*record + 2*(10*(record-1)+90*record)); done.Hot.Read != read {
		t.Errorf("%d bytes were read, want %d", done.Hot.Read, read)
	}
}
