package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/quernmr/quern/integration/examples"
	"github.com/quernmr/quern/mapreduce"
	"github.com/quernmr/quern/mapreduce/mrtest"
)

func TestSortLines(t *testing.T) {
	if got, want := mrtest.Run(t, mrtest.Program(func() (*mapreduce.Job, error) { return sortLines(false) }), "b\na\n\nB\na\n"), "\nB\na\na\nb\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestSortRecords(t *testing.T) {
	record := func(key string) string {
		return key + strings.Repeat(".", keySize-len(key)) + strings.Repeat("v", recordSize-keySize)
	}
	records := []string{record("pear"), record("apple"), record("\x00"), record("fig")}
	out := mrtest.RunFiles(t, mrtest.Program(sortRecords), map[string]string{"in": strings.Join(records, "")})
	slices.Sort(records)
	if got := out.Text(); got != strings.Join(records, "") {
		t.Errorf("got %q", got)
	}
}

// TestHadoop: with the hash, part files are those of Hadoop's example sort.
func TestHadoop(t *testing.T) {
	for _, reduces := range []int{1, 2, 7} {
		out := mrtest.RunFiles(t, mrtest.Program(func() (*mapreduce.Job, error) {
			job, err := sortLines(true)
			job.FixedReduces = reduces
			return job, err
		}), map[string]string{"in": examples.Text(100)})
		examples.Check(t, fmt.Sprintf("sort-%d", reduces), out.Files)
	}
}
