package runtime

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/dfs/mem"
	"github.com/quernmr/quern/wire"
)

// placedFS stores each block of 100 bytes on two of four nodes in two racks.
type placedFS struct {
	*mem.FS
	located []string
}

func (f *placedFS) Locate(name string) ([]dfs.Located, error) {
	f.located = append(f.located, name)
	all, err := dfs.Locate(f.FS, name)
	for i := range all {
		for at := int64(0); at < all[i].Size; at += 100 {
			b := dfs.Block{Offset: at, Length: min(100, all[i].Size-at)}
			for k := range int64(2) {
				n := (at/100 + k) % 4
				b.Replicas = append(b.Replicas, dfs.Replica{
					Host: fmt.Sprintf("n%d", n), Addr: fmt.Sprintf("10.0.0.%d:9866", n), Rack: fmt.Sprintf("/r%d", n/2),
				})
			}
			all[i].Blocks = append(all[i].Blocks, b)
		}
	}
	return all, err
}

func TestLocate(t *testing.T) {
	f := &placedFS{FS: mem.New(100)}
	for name, size := range map[string]int{"d/a": 250, "d/b": 30, "e/c": 120, "empty/x": 0} {
		if err := f.MkdirAll("mem://t/" + strings.Split(name, "/")[0]); err != nil {
			t.Fatal(err)
		}
		putFile(f.FS, "mem://t/"+name, make([]byte, size))
	}
	var files []dfs.Info
	for _, name := range []string{"d/a", "d/b", "e/c", "empty/x"} {
		files = append(files, must(f.Stat("mem://t/"+name)))
	}
	splits := []splitEntry{
		{Chunks: []Chunk{{Path: "mem://t/d/a", Offset: 0, Length: 100}}},
		{Chunks: []Chunk{{Path: "mem://t/d/a", Offset: 100, Length: 150}}},
		{Chunks: []Chunk{{Path: "mem://t/d/b", Length: 30}, {Path: "mem://t/e/c", Length: 120}}},
	}
	blocks, err := locate(f, files)
	if err != nil {
		t.Fatal(err)
	}
	for i := range splits {
		splits[i].findNodes(blocks)
	}
	slices.Sort(f.located)
	if want := []string{"mem://t/d", "mem://t/e/c"}; !slices.Equal(f.located, want) {
		t.Errorf("located %v, want %v", f.located, want)
	}
	for i, want := range []string{"[n0 n1] [/r0 /r0]", "[n2 n1] [/r1 /r0]", "[n1 n0] [/r0 /r0]"} {
		// The second has 100 bytes on n1, 150 on n2 and 50 on n3: less than half of n2's.
		if info := splits[i].info(); fmt.Sprint(info.Hosts, " ", info.Racks) != want {
			t.Errorf("split %d is on %v in %v, want %s", i, info.Hosts, info.Racks, want)
		}
	}
	if _, err := locate(f, []dfs.Info{{Name: "mem://t/gone/y", Size: 5}}); err == nil || !isFatal(err) || !strings.Contains(err.Error(), "mem://t/gone") {
		t.Errorf("a missing file: %v", err)
	}
}

// TestSplitsBefore reads a splits file of an older build, which has only hosts.
func TestSplitsBefore(t *testing.T) {
	entry := binary.AppendUvarint(nil, 7) // bytes
	entry = appendText(appendText(binary.AppendUvarint(entry, 2), "a"), "b")
	entry = binary.AppendUvarint(binary.AppendUvarint(entry, 1), 1) // input, chunks
	entry = appendText(entry, "p")
	for _, v := range []uint64{0, 7, 7, 0} {
		entry = binary.AppendUvarint(entry, v)
	}
	var file bytes.Buffer
	file.WriteString(oldSplitsMagic)
	file.Write(binary.LittleEndian.AppendUint32(nil, 1))
	begin := uint64(splitsHead + 16)
	file.Write(binary.LittleEndian.AppendUint64(nil, begin))
	file.Write(binary.LittleEndian.AppendUint64(nil, begin+4+uint64(len(entry))))
	file.Write(binary.LittleEndian.AppendUint32(nil, castagnoli(entry)))
	file.Write(entry)
	data := binary.LittleEndian.AppendUint64(file.Bytes(), xxhash.Sum64(file.Bytes()))
	infos, _, err := decodeSplits(data)
	if err != nil || len(infos) != 1 || infos[0].Length != 7 || !slices.Equal(infos[0].Hosts, []string{"a", "b"}) {
		t.Errorf("%+v, %v", infos, err)
	}
	f := mem.New(1)
	putFile(f, "mem://t/splits", data)
	if e, err := readEntry(f, "mem://t/splits", 0); err != nil || e.Input != 1 || len(e.Nodes) != 2 || e.Chunks[0].Path != "p" {
		t.Errorf("%+v, %v", e, err)
	}
	// A splits file of a later build is refused.
	copy(data, "QSPLITS3")
	putFile(f, "mem://t/later", data)
	_, _, wholeErr := decodeSplits(data)
	_, entryErr := readEntry(f, "mem://t/later", 0)
	for _, err := range []error{wholeErr, entryErr} {
		if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), `it begins with "QSPLITS3", not with "QSPLITS2"`) {
			t.Errorf("error %v", err)
		}
	}
}

// metered reports all reads as reads from one address.
type metered struct {
	dfs.File
	addr string
	n    int64
}

func (f *metered) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.File.ReadAt(p, off)
	f.n += int64(n)
	return n, err
}

func (f *metered) Reads() []dfs.Read {
	return []dfs.Read{{Addr: f.addr, Bytes: f.n, Time: time.Duration(f.n)}}
}

type meteredFS struct {
	*mem.FS
	addr string
}

func (f *meteredFS) Open(name string) (dfs.File, error) {
	file, err := f.FS.Open(name)
	return &metered{File: file, addr: f.addr}, err
}

// TestMeter checks that reads are counted by distance when the file is closed.
func TestMeter(t *testing.T) {
	f := &meteredFS{FS: mem.New(100)}
	putFile(f.FS, "mem://t/a", []byte("one\ntwo\n"))
	e := splitEntry{Chunks: []Chunk{{Path: "mem://t/a", Length: 8, Size: 8}}, Nodes: []node{
		{"N1.", "/r1", "10.0.0.1:9866"}, {"n2", "/r2", "10.0.0.2:9866"}, {"n3", "", "10.0.0.3:9866"},
	}}
	for _, c := range []struct {
		addr, host, rack, counter string
		want                      wire.Level
	}{
		{"10.0.0.1:9866", "n1", "/r1", "BYTES_READ_NODE_LOCAL", wire.NodeLocal},
		{"10.0.0.2:9866", "n1", "/r2", "BYTES_READ_RACK_LOCAL", wire.RackLocal},
		{"10.0.0.2:9866", "n1", "/r1", "BYTES_READ_REMOTE", wire.Remote},
		{"10.0.0.3:9866", "n1", "", "BYTES_READ_REMOTE", wire.Remote},
		{"10.0.0.9:9866", "n1", "/r1", "BYTES_READ_REMOTE", wire.Remote},
		{"10.0.0.9:9866", "10.0.0.9", "/r1", "BYTES_READ_NODE_LOCAL", wire.NodeLocal},
	} {
		f.addr = c.addr
		s := newSplit(t.Context(), f, e, &wire.InputPlan{Format: formatLines}, splitSettings(1), new(pulse))
		s.meter.host, s.meter.rack = c.host, c.rack
		for range s.Lines() {
		}
		reads := s.meter.sum()
		counters := make(wire.Counters)
		countReads(counters, reads)
		var want wire.Reads
		*want.At(c.want) = wire.Reading{Bytes: 8, Took: 8}
		if s.Err() != nil || reads != want || counters.Get(wire.ReadCounters, c.counter) != 8 || len(counters[wire.ReadCounters]) != 1 {
			t.Errorf("%+v: %+v, %v, %v", c, reads, counters, s.Err())
		}
	}
}

// TestMeterIndex checks that reads of a binary file's index do not count. They may be from
// any machine, and the dynamic delay rule needs the speed of the split's own reads. A file
// of one block is read in one call, from its split's nodes.
func TestMeterIndex(t *testing.T) {
	const nearby = "10.0.0.1:9866"
	for _, c := range []struct {
		records int
		index   int64 // bytes that do not count
	}{{1, 0}, {3, 8 + 3*32 + 16}} {
		f := &meteredFS{FS: mem.New(1 << 20), addr: nearby}
		must(0, f.MkdirAll("mem://t"))
		writeBinary(t, f.FS, "mem://t/a", slices.Repeat([]pair{{nil, make([]byte, binaryUnit-1000)}}, c.records))
		info := must(f.Stat("mem://t/a"))
		e := splitEntry{Chunks: []Chunk{{Path: info.Name, Length: info.Size, Size: info.Size}}, Nodes: []node{{"n1", "/r1", nearby}}}
		s := newSplit(t.Context(), f, e, &wire.InputPlan{Format: formatBinary}, splitSettings(math.MaxInt64), new(pulse))
		s.meter.host = "n1"
		if got := readBinary(t, []*Split{s}); len(got) != c.records {
			t.Fatalf("%d records of %d", len(got), c.records)
		}
		n := info.Size - c.index
		var want wire.Reads
		*want.At(wire.NodeLocal) = wire.Reading{Bytes: n, Took: time.Duration(n)}
		if reads := s.meter.sum(); reads != want {
			t.Errorf("%d records: %+v, want %+v", c.records, reads, want)
		}
	}
}
