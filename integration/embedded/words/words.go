// Command words counts words with Hadoop's tokens, with or without a combiner and ranges. TestHadoopJobs compares it with
// Hadoop's jobs.
package main

import (
	"flag"
	"iter"
	"strings"

	"github.com/quernmr/quern/formats/sequence"
	"github.com/quernmr/quern/mapreduce"
	"github.com/quernmr/quern/sequencefile/writable"
)

var (
	combine = flag.Bool("combine", false, "combine the counts of each map")
	ranges  = flag.Bool("ranges", false, "partition by ranges of words")
)

func main() { mapreduce.Main(words) }

func words() (*mapreduce.Job, error) {
	pairs := mapreduce.Map(mapreduce.Lines(), func(_ *mapreduce.Task, line string, emit func(string, int64)) error {
		for word := range strings.FieldsSeq(line) {
			emit(word, 1)
		}
		return nil
	})
	if *combine {
		pairs.Combine(mapreduce.Sum)
	}
	if *ranges {
		pairs.TotalOrderBy(sequence.Partitions(writable.Text))
	}
	return mapreduce.Reduce(pairs, func(_ *mapreduce.Task, word string, counts iter.Seq[int64], emit func(string, int64)) error {
		var sum int64
		for n := range counts {
			sum += n
		}
		emit(word, sum)
		return nil
	}).Job("words"), nil
}
