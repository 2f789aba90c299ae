package runtime

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/wire"
)

// combinedFile returns a file. Each block is "LENGTH HOST…"; the rack of a host is its first letter.
func combinedFile(name string, most int64, blocks ...string) File {
	f := File{Path: "mem://t/" + name, splitMax: most}
	for _, text := range blocks {
		var b dfs.Block
		words := strings.Fields(text)
		fmt.Sscan(words[0], &b.Length)
		b.Offset = f.Size
		for _, host := range words[1:] {
			b.Replicas = append(b.Replicas, dfs.Replica{Host: host, Rack: "/" + host[:1]})
		}
		f.Size += b.Length
		f.blocks = append(f.blocks, b)
	}
	return f
}

func combinedSplits(t interface{ Fatal(...any) }, files []File) string {
	splits, err := formatOf(&wire.InputPlan{Format: FormatCombined}).Splits(nil, files)
	if err != nil {
		t.Fatal(err)
	}
	entries := make([]splitEntry, len(splits))
	for i := range splits {
		entries[i].Chunks = splits[i]
	}
	return strings.ReplaceAll(printSplits(entries), "\n", "; ")
}

func TestCombinedByPlace(t *testing.T) {
	const none = math.MaxInt64
	for name, c := range map[string]struct {
		files []File
		want  string
	}{
		"no limit": {[]File{combinedFile("a", none, "5 a1", "5 b1"), combinedFile("b", none, "3 b1")}, "/a@0+5 /a@5+5 /b; "},
		"hosts by turns": {[]File{combinedFile("a", 10, "5 a1"), combinedFile("b", 10, "5 a2"), combinedFile("c", 10, "5 a1"),
			combinedFile("d", 10, "5 a2"), combinedFile("e", 10, "5 a1"), combinedFile("f", 10, "6 a1")}, "/e /f; /a /c; /b /d; "},
		"a block of two hosts":         {[]File{combinedFile("a", 10, "10 a1 a2"), combinedFile("b", 10, "4 a2")}, "/a; /b; "},
		"racks, then the rest":         {[]File{combinedFile("a", 10, "6 b1"), combinedFile("b", 10, "5 a1"), combinedFile("c", 10, "5 a2"), combinedFile("d", 10, "3 a1")}, "/b /c; /a /d; "},
		"pieces of blocks":             {[]File{combinedFile("a", 4, "10 a1", "5 a1")}, "/a@4+3 /a@7+3; /a@10+2 /a@12+3; /a@0+4; "},
		"compressed files are not cut": {[]File{combinedFile("a.gz", 4, "10 a1", "5 a2"), combinedFile("b.bz2", 4, "8 a1")}, "/a.gz; /b.bz2@0+4; /b.bz2@4+4; "},
		"two DataNodes of a host":      {[]File{combinedFile("a", 9, "5 a1 a1"), combinedFile("b", 9, "4 a1")}, "/a /b; "},
		"no files":                     {nil, "none"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := combinedSplits(t, c.files); got != c.want {
				t.Errorf("splits %s, want %s", got, c.want)
			}
		})
	}
}

// TestCombinedAll checks that splits have each byte once, and that all but the last one that was made are full.
func TestCombinedAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.Int64Range(1, 20).Draw(t, "most")
		var files []File
		for i := range rapid.IntRange(0, 20).Draw(t, "files") {
			var blocks []string
			for range rapid.IntRange(0, 3).Draw(t, "blocks") {
				hosts := rapid.SliceOfN(rapid.SampledFrom([]string{"a1", "a2", "b1", "b2"}), 0, 3).Draw(t, "hosts")
				blocks = append(blocks, fmt.Sprint(rapid.Int64Range(1, 50).Draw(t, "length"), " ", strings.Join(hosts, " ")))
			}
			files = append(files, combinedFile(fmt.Sprint(i), most, blocks...))
		}
		splits, err := combined{}.Splits(nil, files)
		if err != nil {
			t.Fatal(err)
		}
		pieces, small := make(map[string][]Chunk), 0
		for _, split := range splits {
			if totalOf(split) < most {
				small++
			}
			for i, c := range split {
				pieces[c.Path] = append(pieces[c.Path], c)
				if i > 0 && totalOf(split[:i]) >= most {
					t.Fatalf("split %v goes on when it is full", split)
				}
			}
		}
		if small > 1 {
			t.Fatalf("%d splits of %v are not full", small, splits)
		}
		for _, f := range files {
			list := pieces[f.Path]
			slices.SortFunc(list, func(a, b Chunk) int { return int(a.Offset - b.Offset) })
			at := int64(0)
			for _, c := range list {
				if c.Offset != at {
					t.Fatalf("pieces %v of %s, want one at %d", list, f.Path, at)
				}
				at += c.Length
			}
			if at != f.Size || len(list) == 0 {
				t.Fatalf("pieces %v of %s, which has %d bytes", list, f.Path, f.Size)
			}
		}
	})
}
