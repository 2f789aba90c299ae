package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/quernmr/quern/integration/examples"
	"github.com/quernmr/quern/mapreduce"
	"github.com/quernmr/quern/mapreduce/mrtest"
)

// TestHadoop: the part files are Hadoop's.
func TestHadoop(t *testing.T) {
	for _, reduces := range []int{1, 2, 7} {
		out := mrtest.RunFiles(t, mrtest.Program(func() (*mapreduce.Job, error) {
			job, err := secondarySort()
			job.FixedReduces = reduces
			return job, err
		}), map[string]string{"in": examples.Numbers(100)})
		examples.Check(t, fmt.Sprintf("secondarysort-%d", reduces), out.Files)
	}
}

func TestSecondarySort(t *testing.T) {
	line := strings.Repeat("-", 48) + "\n"
	got := mrtest.Run(t, mrtest.Program(secondarySort), "2 5\n-1 3\n\n2 -7\n-2147483648 1\n-1\n")
	if want := line + "-2147483648\t1\n" + line + "-1\t0\n-1\t3\n" + line + "2\t-7\n2\t5\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
