package main

import (
	"strings"
	"testing"

	"github.com/quernmr/quern/integration/examples"
	"github.com/quernmr/quern/mapreduce/mrtest"
)

// TestHadoop: the part file and the mean are Hadoop's, also the mean of no words.
func TestHadoop(t *testing.T) {
	for run, text := range map[string]string{"wordmean": examples.Text(100), "wordmean-empty": ""} {
		out := mrtest.RunFiles(t, mrtest.Program(wordmean), map[string]string{"in": text})
		mean := strings.Replace(out.Files["mean-r-00000"], "\t", "", 1)
		examples.Check(t, run, map[string]string{"part-r-00000": out.Text(), "printed": mean})
	}
}

func TestWordmean(t *testing.T) {
	out := mrtest.RunFiles(t, mrtest.Program(wordmean), map[string]string{"in": "a bcd\n\tä😀\n"})
	if got, want := out.Text()+out.Named("mean"), "count\t3\nlength\t7\nThe mean is: \t2.3333333333333335\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
