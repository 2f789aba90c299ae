package main

import (
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/quernmr/quern/integration/examples"
	"github.com/quernmr/quern/mapreduce"
	"github.com/quernmr/quern/mapreduce/mrtest"
)

const checksumGroup = "org.apache.hadoop.examples.terasort.TeraGen$Counters"

func program(build func() (*mapreduce.Job, error), reduces int) mrtest.Runnable {
	return mrtest.Program(func() (*mapreduce.Job, error) {
		job, err := build()
		if err == nil && reduces > 0 {
			job.FixedReduces = reduces
		}
		return job, err
	})
}

// teragen returns the files of TeraGen, and its checksum.
func teragen(t *testing.T, maps int) (map[string]string, int64) {
	out := mrtest.RunFiles(t, program(func() (*mapreduce.Job, error) { return generate(examples.Rows, maps) }, 0), nil)
	return out.Files, out.Counters[checksumGroup]["CHECKSUM"]
}

// TestHadoop: rows, sorted rows, reports and checksums are those of Hadoop's examples.
func TestHadoop(t *testing.T) {
	rows, sum := teragen(t, 1)
	examples.Check(t, "teragen", rows)
	if parts, sameSum := teragen(t, 3); parts["part-m-00000"]+parts["part-m-00001"]+parts["part-m-00002"] != rows["part-m-00000"] || sameSum != sum {
		t.Error("three maps make other rows")
	}
	sums := mrtest.RunFiles(t, mrtest.Program(checksum), rows)
	examples.Check(t, "checksum", sums.Files)
	if want := fmt.Sprintf("%x\n", sum); sums.Text() != want {
		t.Errorf("the checksum is %s, TeraGen counted %s", sums.Text(), want)
	}
	for _, reduces := range []int{1, 2, 7} {
		simple := mrtest.RunFiles(t, program(func() (*mapreduce.Job, error) { return sortRows(true) }, reduces), rows)
		examples.Check(t, fmt.Sprintf("simple-%d", reduces), simple.Files)

		run := fmt.Sprintf("terasort-%d", reduces)
		cuts := examples.Answer(t, run, "_partition.lst")
		file := filepath.Join(t.TempDir(), "cuts")
		if err := os.WriteFile(file, []byte(cuts), 0o666); err != nil {
			t.Fatal(err)
		}
		byFile := mrtest.RunFiles(t, program(func() (*mapreduce.Job, error) { return sortByFile("file://" + file) }, reduces), rows)
		files := maps.Clone(byFile.Files)
		files["_partition.lst"] = cuts
		examples.Check(t, run, files)

		sampled := mrtest.RunFiles(t, program(func() (*mapreduce.Job, error) { return sortRows(false) }, reduces), rows)
		if sampled.Text() != simple.Text() {
			t.Errorf("%d reduces: ranges of a sample give other rows", reduces)
		}
	}
}

// TestValidate: reports about rows in and out of order are Hadoop's; rows of a wrong length fail the job there and here.
func TestValidate(t *testing.T) {
	rows, _ := teragen(t, 1)
	sorted := mrtest.RunFiles(t, program(func() (*mapreduce.Job, error) { return sortRows(true) }, 2), rows)
	for run, files := range map[string]map[string]string{
		"validate-unsorted": rows, "validate-sorted": sorted.Files,
		"validate-swapped": {"part-r-00000": examples.Damage(rows["part-m-00000"])},
	} {
		got := mrtest.RunFiles(t, mrtest.Program(validate), files)
		examples.Check(t, run, map[string]string{"sorted": examples.Sorted(got.Files)})
	}
	examples.Check(t, "validate-short", map[string]string{"exit-code": "1"})
	read := wholeFiles{}.Read(mapreduce.Split{Length: 250}, strings.NewReader(rows["part-m-00000"]))
	n := 0
	for _, err := range read {
		if n++; n == 3 && (err == nil || !strings.HasSuffix(err.Error(), "the last row has 50 bytes, not 100")) || n != 3 && err != nil {
			t.Errorf("row %d of a short file: %v", n, err)
		}
	}
	if n != 3 {
		t.Errorf("a short file has %d rows and errors", n)
	}
}

// TestSkipAhead: the number after n steps is the one of n single steps.
func TestSkipAhead(t *testing.T) {
	x, n := uint128{}, uint64(0)
	for ; n < 1000; n++ {
		if got := after(n); got != x {
			t.Fatalf("after %d steps: %s, want %s", n, got, x)
		}
		x = one.from(x)
	}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Uint64Range(0, 1<<63).Draw(t, "n")
		if got, want := after(n+1), one.from(after(n)); got != want {
			t.Fatalf("after %d steps: %s, want %s", n+1, got, want)
		}
	})
}

// TestShares: the maps have all rows, each once and in order, and about equally many.
func TestShares(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows, maps := rapid.Int64Range(0, 2000).Draw(t, "rows"), rapid.IntRange(1, 50).Draw(t, "maps")
		next := int64(0)
		for n := range maps {
			before := next
			for row := range share(rows, n, maps) {
				if row != next {
					t.Fatalf("row %d follows %d", row, next-1)
				}
				next++
			}
			if size := next - before; size < rows/int64(maps)-1 || size > rows/int64(maps)+1 {
				t.Fatalf("map %d of %d has %d of %d rows", n, maps, size, rows)
			}
		}
		if next != rows {
			t.Fatalf("%d rows of %d", next, rows)
		}
	})
}

// TestBadUse: numbers of rows that make no sense, and flags without meaning, are refused.
func TestBadUse(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, "17": 17, "3k": 3000, "2m": 2e6, "1b": 1e9, "9t": 9e12, "9007t": 9007e12, "9007199254740992": maxRows} {
		if n, err := parseRows(text); err != nil || n != want {
			t.Errorf("%s: %d, %v", text, n, err)
		}
	}
	for text, want := range map[string]string{
		"-1": "want a number of 0 or more", "": "want a number", "k": "want a number", "1x": "want a number", "1km": "want a number", "1.5m": "want a number",
		"9007199254740993": "at most 9007199254740992 rows", "9008t": "at most", "99999999999999999999": "at most",
	} {
		if _, err := parseRows(text); err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "-rows "+text) {
			t.Errorf("%s: error %v, want %q", text, err, want)
		}
	}
	for _, c := range []struct{ do, partitions, want string }{{"", "", `-do ""`}, {"merge", "", "want gen, sort, validate or checksum"}, {"sort", "cuts", "both given"}} {
		if _, err := tera(c.do, "1", 1, c.partitions, true); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.do, err, c.want)
		}
	}
}

// TestFirstRow: the first key is a name.
func TestFirstRow(t *testing.T) {
	if row := appendRow(nil, after(1), 0); len(row) != rowSize || string(row[:keySize]) != "JimGrayRIP" {
		t.Errorf("the first row is\n%s", hex.Dump(row))
	}
}
