package main

import (
	"strings"
	"testing"

	"github.com/quernmr/quern/integration/examples"
	"github.com/quernmr/quern/mapreduce"
	"github.com/quernmr/quern/mapreduce/mrtest"
)

// TestHadoop: numbers of words and bytes of each map are distributed as in Hadoop's lines, which are others in
// each run. Another seed gives other lines.
func TestHadoop(t *testing.T) {
	run := func(maps int, size int64, seed uint64) map[string]string {
		return mrtest.RunFiles(t, mrtest.Program(func() (*mapreduce.Job, error) { return randomText(maps, size, seed) }), nil).Files
	}
	lines := run(1, 1_000_000, 1)
	examples.Check(t, "randomtext", map[string]string{"part-m-00000": examples.Sentences(lines["part-m-00000"])})
	few := run(2, 1000, 1)
	if few["part-m-00000"] == few["part-m-00001"] || few["part-m-00000"] == run(1, 1000, 2)["part-m-00000"] {
		t.Error("two maps or two seeds have the same lines")
	}
	words := make(map[string]bool)
	for w := range strings.FieldsSeq(lines["part-m-00000"]) {
		words[w] = true
	}
	if len(words) != 1000 {
		t.Errorf("%d different words", len(words))
	}
	if _, err := randomText(1, 0, 1); err == nil {
		t.Error("no error for -bytes 0")
	}
}
