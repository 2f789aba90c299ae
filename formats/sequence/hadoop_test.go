package sequence_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/quernmr/quern/formats/internal/recorded"
	"github.com/quernmr/quern/formats/sequence"
	"github.com/quernmr/quern/mapreduce"
	"github.com/quernmr/quern/sequencefile"
	"github.com/quernmr/quern/sequencefile/writable"
)

type numbered = mapreduce.Pair[int64, string]

// counted counts the words of lines in SequenceFiles.
func counted() *mapreduce.Job {
	job := recorded.Words(sequence.Input(writable.Long, writable.Text), func(r numbered) string { return r.B }).Job("words")
	job.Format = sequence.Output(writable.Text, writable.Long)
	return job
}

// TestHadoopJobs compares part files of word counts and sorts, record for record, with those of Hadoop's local
// runner, which `make compat` records in testdata/jobs.txt.
func TestHadoopJobs(t *testing.T) {
	recorded.Compare(t, "in.seq", map[string]func() *mapreduce.Job{"words": counted, "sort": func() *mapreduce.Job { return copied(writable.Long, writable.Text, nil) }}, fileText)
}

// fileText returns a file's name, classes, codec and records as testdata/jobs.txt has them.
func fileText(t *testing.T, name, file string) string {
	t.Helper()
	r, err := sequencefile.NewReader(strings.NewReader(file), int64(len(file)), sequencefile.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	compression, codec := map[sequencefile.Compression]string{sequencefile.None: "NONE", sequencefile.PerRecord: "RECORD", sequencefile.Block: "BLOCK"}[r.Header.Compression], "-"
	if r.Header.Codec != nil {
		codec = r.Header.Codec.Class()
	}
	var b strings.Builder
	fmt.Fprintln(&b, "file", name, r.Header.KeyClass, r.Header.ValueClass, compression, codec)
	for record, err := range r.Records(0, math.MaxInt64) {
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "x%x x%x\n", record.Key, record.Value)
	}
	return b.String()
}
