package main

import (
	"testing"

	"github.com/quernmr/quern/integration/examples"
	"github.com/quernmr/quern/mapreduce/mrtest"
)

// TestHadoop: the part file and the mean are Hadoop's.
func TestHadoop(t *testing.T) {
	out := mrtest.RunFiles(t, mrtest.Program(wordmean), map[string]string{"in": examples.Text(100)})
	mean := []byte(out.Files["mean-r-00000"])
	for i, b := range mean {
		if b == '\t' {
			mean = append(mean[:i], mean[i+1:]...)
			break
		}
	}
	examples.Check(t, "wordmean", map[string]string{"part-r-00000": out.Text(), "printed": string(mean)})
}

func TestWordmean(t *testing.T) {
	out := mrtest.RunFiles(t, mrtest.Program(wordmean), map[string]string{"in": "a bcd\n\tä😀\n"})
	if got, want := out.Text()+out.Named("mean"), "count\t3\nlength\t7\nThe mean is: \t2.3333333333333335\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
