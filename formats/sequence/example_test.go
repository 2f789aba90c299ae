package sequence_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/quernmr/quern/formats/sequence"
	"github.com/quernmr/quern/mapreduce"
	"github.com/quernmr/quern/mapreduce/mrtest"
	"github.com/quernmr/quern/sequencefile/writable"
)

func count(_ *mapreduce.Task, rec mapreduce.Pair[string, int64], emit func(string, int64)) error {
	emit(rec.A, rec.B)
	return nil
}

// added is a job that adds up the numbers of each word, from SequenceFiles to SequenceFiles.
func added() *mapreduce.Job {
	words := mapreduce.Map(sequence.Input(writable.Text, writable.Long), count) // records of Pair[string, int64]
	job := mapreduce.Fold(words, func(a, b int64) int64 { return a + b }).Job("add")
	job.Format = sequence.Output(writable.Text, writable.Long) // for a result of string and int64
	return job
}

// TestExample: the job of the docs reads what another one has written.
func TestExample(t *testing.T) {
	ones := mapreduce.Map(mapreduce.Lines(), func(_ *mapreduce.Task, line string, emit func(string, int64)) error {
		emit(line, 1)
		return nil
	})
	write := mapreduce.Sort(ones).Job("ones")
	write.Format = sequence.Output(writable.Text, writable.Long)
	file := mrtest.RunFiles(t, write, map[string]string{"a": "b\na\nb\n"}).Files["part-r-00000"]
	got, _ := records(t, mrtest.RunFiles(t, added(), map[string]string{"ones": file}).Files["part-r-00000"])
	want := []string{fmt.Sprintf("%x %016x", "\x01a", 1), fmt.Sprintf("%x %016x", "\x01b", 2)}
	if !slices.Equal(got, want) {
		t.Errorf("records %v, want %v", got, want)
	}
}
