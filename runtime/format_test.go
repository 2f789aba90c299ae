package runtime

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/quernmr/quern/dfs/mem"
	"github.com/quernmr/quern/wire"
)

// TestCut checks that an author's splits are refused unless they are pieces of the input's
// files.
func TestCut(t *testing.T) {
	f := mem.New(1 << 20)
	putFile(f, "mem://t/in/a", []byte("12345"))
	putFile(f, "mem://t/in/b", []byte("678"))
	in := &wire.InputPlan{Format: "own", Paths: []string{"mem://t/in"}}
	failed := errors.New("no footer")
	piece := func(name string, offset, length int64) Chunk {
		return Chunk{Path: "mem://t/in/" + name, Offset: offset, Length: length}
	}
	for name, c := range map[string]struct {
		splits [][]Chunk
		err    error
		want   string
	}{
		"pieces of two files": {splits: [][]Chunk{{piece("b", 1, 2), piece("a", 0, 1)}, {piece("a", 3, 2), piece("b", 3, 0)}}},
		"none":                {},
		"an error":            {err: failed, want: "splits of format own: no footer"},
		"no pieces":           {splits: [][]Chunk{{piece("a", 0, 1)}, {}}, want: "split 1 has 0 pieces: want 1 to 10000"},
		"another file":        {splits: [][]Chunk{{piece("c", 0, 1)}}, want: `split 0 is of "mem://t/in/c", which is no file of the input`},
		"beyond the end":      {splits: [][]Chunk{{piece("b", 1, 3)}}, want: "split 0 has 3 bytes from offset 1 of mem://t/in/b, which has 3"},
		"far beyond":          {splits: [][]Chunk{{piece("b", math.MaxInt64, math.MaxInt64)}}, want: "which has 3"},
		"before the file":     {splits: [][]Chunk{{piece("b", -1, 1)}}, want: "1 bytes from offset -1"},
		"negative":            {splits: [][]Chunk{{piece("b", 1, -1)}}, want: "-1 bytes from offset 1"},
	} {
		t.Run(name, func(t *testing.T) {
			cut := Cut(func(files []File) ([][]Chunk, error) {
				if len(files) != 2 || files[0].Path != "mem://t/in/a" || files[1].Size != 3 || files[1].SplitSize != 1<<20 {
					t.Errorf("files: %+v", files)
				}
				return c.splits, c.err
			})
			files := must(inputFiles(f, in, cut, splitSettings(math.MaxInt64)))
			splits, err := planSplits(2, in, cut, files, splitSettings(math.MaxInt64), nil, nil)
			if c.want != "" {
				if err == nil || !strings.Contains(err.Error(), c.want) || isFatal(err) != (c.err == nil) || !errors.Is(err, c.err) && c.err != nil {
					t.Errorf("error %v, want %q", err, c.want)
				}
				return
			}
			if err != nil || len(splits) != len(c.splits) {
				t.Fatalf("%v, %v", splits, err)
			}
			for i, e := range splits {
				for k, chunk := range e.Chunks {
					file := files[strings.Index("ab", chunk.Path[len(chunk.Path)-1:])]
					if want := c.splits[i][k]; e.Input != 2 || chunk.Path != want.Path || chunk.Offset != want.Offset || chunk.Length != want.Length ||
						chunk.Size != file.Size || chunk.Modified != file.Modified.UnixNano() {
						t.Errorf("split %d: %+v", i, e)
					}
				}
			}
		})
	}
	_, err := Cut(func([]File) ([][]Chunk, error) { panic("odd footer") }).Splits(in, nil)
	if !errors.Is(err, ErrPanic) || !strings.Contains(fmt.Sprint(err), "odd footer") {
		t.Errorf("a panic: %v", err)
	}

	// A sample ends with the record that reaches its size, but not before fewRecords; a whole split does not. Each byte
	// has 300 records.
	for maxBytes, want := range map[int64]int{1: 4, 4: 4, 8: 5, math.MaxInt64: 5} {
		s := newSplit(t.Context(), f, splitEntry{Chunks: []Chunk{{Path: "mem://t/in/a", Length: 5, Size: 5}}}, in, splitSettings(1), new(pulse))
		if maxBytes < math.MaxInt64 {
			s.limit(Cut(nil), []int64{0}, maxBytes)
		}
		file, got := must(s.Open(s.Chunks()[0])), 0
		for at := int64(0); at < 5; at++ {
			must(file.ReadAt(make([]byte, 1), at))
			got++
			more := true
			for range 300 {
				more, _ = s.CountRecord()
			}
			if !more {
				break
			}
		}
		if got != want || len(s.Chunks()) != 1 || s.Chunks()[0].Length != 5 {
			t.Errorf("a sample of %d bytes read %d records, want %d", maxBytes, got, want)
		}
	}
}

// TestGenerated: an input without files has a split for each number, and too many splits are refused.
func TestGenerated(t *testing.T) {
	in := &wire.InputPlan{Format: formatGenerated, Splits: 3}
	splits, err := planSplits(1, in, formatOf(in), nil, splitSettings(1), nil, nil)
	if err != nil || len(splits) != 3 {
		t.Fatalf("%v, %v", splits, err)
	}
	for i, e := range splits {
		if len(e.Chunks) != 1 || e.Chunks[0] != (Chunk{Offset: int64(i)}) || e.Input != 1 || e.length() != 0 {
			t.Errorf("split %d: %+v", i, e)
		}
	}
	for n, fine := range map[int]bool{-1: false, 0: false, 1: true, maxSplits: true, maxSplits + 1: false} {
		if err := (generated{}).Check(&wire.InputPlan{Splits: n}, 0); (err == nil) != fine {
			t.Errorf("%d splits: error %v", n, err)
		}
	}
}
