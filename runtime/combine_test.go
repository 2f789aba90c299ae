package runtime

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"pgregory.net/rapid"
)

// TestCombine runs testdata/combine.txt. Its only command packs files of "NAME SIZE NODE…" lines into splits of at
// most limit=N bytes. The rack of a node is its first letter. Files are named by numbers, from 0.
func TestCombine(t *testing.T) {
	datadriven.RunTest(t, "testdata/combine.txt", func(t *testing.T, d *datadriven.TestData) string {
		var limit int
		d.ScanArgs(t, "limit", &limit)
		var files []smallFile
		for line := range strings.Lines(d.Input) {
			words := strings.Fields(line)
			file := smallFile{index: must(strconv.Atoi(words[0])), weight: int64(must(strconv.Atoi(words[1]))), limit: int64(limit)}
			for _, host := range words[2:] {
				file.nodes = append(file.nodes, node{Host: host, Rack: host[:1]})
			}
			files = append(files, file)
		}
		var out strings.Builder
		for _, pack := range combine(files) {
			for i, file := range pack {
				fmt.Fprintf(&out, "%s%d", []string{"", " "}[min(i, 1)], file.index)
			}
			out.WriteString("\n")
		}
		return out.String()
	})
}

// TestCombineAll checks that each file is in one split, in order, and that no split is too large.
func TestCombineAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var files []smallFile
		limit := rapid.Int64Range(1, 20).Draw(t, "limit")
		for i := range rapid.IntRange(0, 30).Draw(t, "files") {
			file := smallFile{index: i, weight: rapid.Int64Range(1, limit+2).Draw(t, "weight"), limit: limit}
			for _, n := range rapid.SliceOfNDistinct(rapid.IntRange(0, 5), 0, 3, rapid.ID[int]).Draw(t, "nodes") {
				file.nodes = append(file.nodes, node{Host: fmt.Sprint(n), Rack: fmt.Sprint(n % 2)})
			}
			files = append(files, file)
		}
		var seen []int
		total, first := int64(0), -1
		packs := combine(files)
		for _, pack := range packs {
			weight := int64(0)
			if pack[0].index < first {
				t.Fatalf("splits %v are not in the order of their first files", packs)
			}
			first = pack[0].index
			for i, file := range pack {
				if i > 0 && file.index < pack[i-1].index {
					t.Fatalf("split %v is not in order", pack)
				}
				seen, weight = append(seen, file.index), weight+file.weight
			}
			if weight > limit && len(pack) > 1 {
				t.Fatalf("split %v has %d bytes of %d", pack, weight, limit)
			}
			total += weight
		}
		if slices.Sort(seen); len(seen) != len(files) || len(slices.Compact(seen)) != len(files) {
			t.Fatalf("files %v in splits, want %d", seen, len(files))
		}
		for _, f := range files {
			total -= f.weight
		}
		if total != 0 {
			t.Fatalf("splits have %d bytes more than the files", total)
		}
	})
}
