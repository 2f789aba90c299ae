// Sequencewords counts the words of the texts in SequenceFiles, as Hadoop's word count does. With -make it writes such
// files: the lines of text files as values of class Text.
package main

import (
	"flag"
	"strings"

	"github.com/quernmr/quern/formats/sequence"
	"github.com/quernmr/quern/mapreduce"
	"github.com/quernmr/quern/sequencefile/writable"
)

var write = flag.Bool("make", false, "write SequenceFiles instead")

func main() { mapreduce.Main(job) }

func job() (*mapreduce.Job, error) {
	if *write {
		lines := mapreduce.Map(mapreduce.Lines(), func(_ *mapreduce.Task, line string, emit func(int64, string)) error {
			emit(0, line)
			return nil
		})
		job := mapreduce.MapOnly(lines).Job("make")
		job.Format = sequence.Output(writable.Long, writable.Text)
		return job, nil
	}
	words := mapreduce.Map(sequence.Input(writable.Long, writable.Text), func(_ *mapreduce.Task, rec mapreduce.Pair[int64, string], emit func(string, int64)) error {
		for w := range strings.FieldsSeq(rec.B) {
			emit(w, 1)
		}
		return nil
	})
	return mapreduce.Fold(words, func(a, b int64) int64 { return a + b }).Job("sequencewords"), nil
}
