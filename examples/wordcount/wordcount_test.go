package main

import (
	"fmt"
	"testing"

	"github.com/quernmr/quern/integration/examples"
	"github.com/quernmr/quern/mapreduce"
	"github.com/quernmr/quern/mapreduce/mrtest"
)

func TestWordcount(t *testing.T) {
	if got, want := mrtest.Run(t, mrtest.Program(wordcount), "to be or\nnot  to be\r\n"), "be\t2\nnot\t1\nor\t1\nto\t2\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestHadoop: the part files are those of Hadoop's example, also for an empty input.
func TestHadoop(t *testing.T) {
	for _, reduces := range []int{1, 2, 7} {
		for run, text := range map[string]string{"wordcount": examples.Text(100), "empty": ""} {
			out := mrtest.RunFiles(t, mrtest.Program(func() (*mapreduce.Job, error) {
				job, err := wordcount()
				job.FixedReduces = reduces
				return job, err
			}), map[string]string{"in": text})
			examples.Check(t, fmt.Sprintf("%s-%d", run, reduces), out.Files)
		}
	}
}
