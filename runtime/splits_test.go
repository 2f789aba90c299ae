package runtime

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"
	"github.com/cockroachdb/datadriven"
	"pgregory.net/rapid"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/dfs/mem"
	"github.com/quernmr/quern/internal/membound"
	"github.com/quernmr/quern/wire"
)

// TestSplits runs testdata/splits.txt. Commands:
//
//	fs [block=N]      makes a file system of "PATH SIZE" lines; a path that ends in / is a directory
//	splits [format=F] [size=N] [max=N] [min=N] [recursive]
//	                  plans the splits of the paths in the input, one on each line, as one input;
//	                  a file is printed whole as its path, else with its offset and length
//	expand            writes out braces
func TestSplits(t *testing.T) {
	f := mem.New(1)
	datadriven.RunTest(t, "testdata/splits.txt", func(t *testing.T, d *datadriven.TestData) string {
		number := func(name string, absent int64) int64 {
			if d.HasArg(name) {
				var text string
				d.ScanArgs(t, name, &text)
				return must(strconv.ParseInt(text, 10, 64))
			}
			return absent
		}
		lines := strings.Fields(d.Input)
		switch d.Cmd {
		case "fs":
			f = mem.New(number("block", 100))
			for _, line := range strings.Split(strings.TrimSpace(d.Input), "\n") {
				name, size, _ := strings.Cut(line, " ")
				if strings.HasSuffix(name, "/") {
					if err := f.MkdirAll("mem://t" + name); err != nil {
						t.Fatal(err)
					}
					continue
				}
				putFile(f, "mem://t"+name, make([]byte, must(strconv.Atoi(size))))
			}
			return ""
		case "expand":
			var all []string
			if _, err := expand(strings.TrimSpace(d.Input), func(pattern string) ([]dfs.Info, error) {
				all = append(all, pattern)
				return nil, nil
			}); err != nil {
				return err.Error()
			}
			return strings.Join(all, "\n")
		case "splits":
			in := wire.InputPlan{Format: formatLines, RecordSize: int(number("size", 0))}
			if d.HasArg("format") {
				d.ScanArgs(t, "format", &in.Format)
			}
			for _, name := range lines {
				in.Paths = append(in.Paths, "mem://t"+name)
			}
			s := settings{splitMin: number("min", 1), splitMax: number("max", math.MaxInt64), recursive: d.HasArg("recursive"), recordMax: 1 << 20}
			files, err := inputFiles(f, &in, formatOf(&in), s)
			if err == nil {
				var splits []splitEntry
				if splits, err = planSplits(0, &in, formatOf(&in), files, s, nil); err == nil {
					return printSplits(splits)
				}
			}
			return fmt.Sprintf("fatal=%v: %s", isFatal(err), strings.ReplaceAll(err.Error(), "mem://t", ""))
		}
		return "unknown command"
	})
}

func printSplits(splits []splitEntry) string {
	var out strings.Builder
	for _, e := range splits {
		for i, c := range e.Chunks {
			if i > 0 {
				out.WriteString(" ")
			}
			out.WriteString(strings.TrimPrefix(c.Path, "mem://t"))
			if c.Offset > 0 || c.Length < c.Size {
				fmt.Fprintf(&out, "@%d+%d", c.Offset, c.Length)
			}
		}
		out.WriteString("\n")
	}
	if len(splits) == 0 {
		return "none"
	}
	return out.String()
}

func drawSplits(t *rapid.T) []splitEntry {
	number := rapid.Int64Range(0, 1<<40)
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) splitEntry {
		e := splitEntry{
			Input: rapid.IntRange(0, 3).Draw(t, "input"),
			Nodes: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) node {
				return node{rapid.String().Draw(t, "host"), rapid.String().Draw(t, "rack"), rapid.String().Draw(t, "addr")}
			}), 0, 3).Draw(t, "nodes"),
			Chunks: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Chunk {
				return Chunk{Path: rapid.String().Draw(t, "path"), Offset: number.Draw(t, "offset"),
					Length: number.Draw(t, "length"), Size: number.Draw(t, "size"), Modified: rapid.Int64().Draw(t, "modified")}
			}), 0, 5).Draw(t, "chunks"),
		}
		e.Preferred = rapid.IntRange(0, len(e.Nodes)).Draw(t, "near")
		return e
	}), 0, 20).Draw(t, "splits")
}

func TestSplitsFile(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		splits := drawSplits(t)
		data, hash := encodeSplits(splits)
		infos, again, err := decodeSplits(data)
		if err != nil || again != hash || len(infos) != len(splits) {
			t.Fatalf("%d of %d splits, hash %x of %x, %v", len(infos), len(splits), again, hash, err)
		}
		f := mem.New(1)
		putFile(f, "mem://t/splits", data)
		for i, want := range splits {
			got, err := readEntry(f, "mem://t/splits", i)
			if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
				t.Fatalf("entry %d: %v, %v; want %v", i, got, err, want)
			}
			if info := infos[i]; info.Length != want.length() || fmt.Sprint(info) != fmt.Sprint(want.info()) {
				t.Fatalf("info %d: %v; want %v", i, info, want)
			}
		}
		if _, err := readEntry(f, "mem://t/splits", len(splits)); !errors.Is(err, ErrCorrupt) {
			t.Fatalf("entry after the last: %v", err)
		}
		at := rapid.IntRange(0, len(data)-1).Draw(t, "damage")
		data[at] ^= 0x40
		if _, _, err := decodeSplits(data); err == nil {
			t.Fatalf("damage at %d was not found", at)
		}
		f = mem.New(1)
		putFile(f, "mem://t/splits", data)
		for i, want := range splits {
			if got, err := readEntry(f, "mem://t/splits", i); err == nil && fmt.Sprint(got) != fmt.Sprint(want) {
				t.Fatalf("damage at %d: entry %d is %v; want %v", at, i, got, want)
			}
		}
	})
}

// TestSplitBehindCount: an entry is not read if the file counts fewer splits, though its bytes are there.
func TestSplitBehindCount(t *testing.T) {
	data, _ := encodeSplits(make([]splitEntry, 3))
	binary.LittleEndian.PutUint32(data[len(splitsMagic):], 2)
	f := mem.New(1)
	putFile(f, "mem://t/splits", data)
	for i, read := range []bool{true, true, false} {
		if _, err := readEntry(f, "mem://t/splits", i); read != (err == nil) || !read && !errors.Is(err, ErrCorrupt) {
			t.Errorf("split %d of 2: %v", i, err)
		}
	}
	if _, err := readEntry(f, "mem://t/splits", -1); !errors.Is(err, ErrCorrupt) {
		t.Errorf("split -1: %v", err)
	}
}

func FuzzSplits(f *testing.F) {
	data, _ := encodeSplits([]splitEntry{{Input: 1, Nodes: []node{{"a", "/r", "1.2.3.4:5"}, {Host: "b"}}, Preferred: 1, Chunks: []Chunk{{"p", 1, 2, 3, 7}, {"q", 4, 5, 6, 8}}}, {}})
	f.Add(data[:len(data)-8])
	f.Add([]byte(splitsMagic + "\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, data []byte) {
		// Append the correct hash: the fuzzer would never find it.
		whole := binary.LittleEndian.AppendUint64(data, xxhash.Sum64(data))
		var infos []SplitInfo
		var err error
		membound.Bound{Free: 1 << 20, PerByte: 64}.Check(t, len(whole), func() { infos, _, err = decodeSplits(whole) })
		if err == nil && len(infos)*8 > len(data) {
			t.Fatalf("%d entries from %d bytes", len(infos), len(data))
		}
		r := &entryReader{rest: data}
		e := r.entry()
		if r.invalid {
			return
		}
		again := &entryReader{rest: appendEntry(nil, &e)[4:]}
		if e2 := again.entry(); again.invalid || !reflect.DeepEqual(e, e2) {
			t.Fatalf("encoded and decoded to %+v, want %+v", e2, e)
		}
	})
}

func TestSettings(t *testing.T) {
	for name, value := range map[string]string{SplitMaxSize: "0", SplitMinSize: "x", SortMB: "-1", RecordMaxBytes: "1e3", InputRecursive: "yes", MapCodec: "BZip2Codec", OutputCodec: "S2"} {
		_, err := readSettings(map[string]string{name: value, MapCompress: "true", OutputCompress: "true"})
		if err == nil || !isFatal(err) || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), value) {
			t.Errorf("%s=%s: %v", name, value, err)
		}
	}
}
