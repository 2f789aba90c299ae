package main

import (
	"fmt"
	"testing"

	"github.com/quernmr/quern/integration/examples"
	"github.com/quernmr/quern/mapreduce"
	"github.com/quernmr/quern/mapreduce/mrtest"
)

func program(pattern string, count bool) mrtest.Runnable {
	return mrtest.Program(func() (*mapreduce.Flow, error) { return grep(pattern, count) })
}

func TestMatchingLines(t *testing.T) {
	for pattern, want := range map[string]string{"an": "banana\npecan\n", "^p.*n$": "pecan\n", "x": ""} {
		if got := mrtest.Run(t, program(pattern, false), "banana\ncherry\npecan\n"); got != want {
			t.Errorf("%s: got %q, want %q", pattern, got, want)
		}
	}
}

func TestCountMatches(t *testing.T) {
	got := mrtest.Run(t, program("[a-c]", true), "b a b\nc b a\n")
	if want := "3\tb\n2\ta\n1\tc\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestBadPattern(t *testing.T) {
	if _, err := grep("(", false); err == nil {
		t.Error("no error for the regular expression (")
	}
}

// TestHadoop: the counts are those of Hadoop's example grep, for any number of reduces of its first job.
func TestHadoop(t *testing.T) {
	for _, reduces := range []int{1, 2, 7} {
		out := mrtest.RunFiles(t, mrtest.Program(func() (*mapreduce.Flow, error) {
			flow, err := grep(examples.Pattern, true)
			flow.Jobs[0].FixedReduces, flow.Jobs[1].FixedReduces = reduces, 1
			return flow, err
		}), map[string]string{"in": examples.Text(100)})
		examples.Check(t, fmt.Sprintf("grep-%d", reduces), map[string]string{"part-r-00000": out.Text()})
	}
}
