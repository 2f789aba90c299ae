// Command wordmean computes the mean length of words. Like Hadoop's example wordmean it writes the number
// of words and the sum of their lengths; mean-r-00000 has their ratio.
package main

import (
	"iter"
	"strings"
	"unicode/utf16"

	"github.com/quernmr/quern/mapreduce"
)

func main() { mapreduce.Main(wordmean) }

func wordmean() (*mapreduce.Job, error) {
	words := mapreduce.Map(mapreduce.Lines(), func(_ *mapreduce.Task, line string, emit func(string, int64)) error {
		for w := range strings.FieldsFuncSeq(line, isSpace) {
			emit("count", 1)
			emit("length", length(w))
		}
		return nil
	}).Combine(mapreduce.Sum)
	job := mapreduce.ReduceAll(words, func(t *mapreduce.Task, groups iter.Seq2[string, iter.Seq[int64]], emit func(string, int64)) error {
		sums := make(map[string]int64)
		for what, ns := range groups {
			for n := range ns {
				sums[what] += n
			}
			emit(what, sums[what])
		}
		mapreduce.Write(t, "mean", "The mean is: ", float64(sums["length"])/float64(sums["count"]))
		return nil
	}).Job("word mean")
	job.FixedReduces, job.Outputs = 1, []string{"mean"}
	return job, nil
}

// isSpace reports whether a character separates words in Java's StringTokenizer.
func isSpace(r rune) bool { return strings.ContainsRune(" \t\n\r\f", r) }

// length counts characters as Java does: some take two.
func length(word string) (n int64) {
	for _, r := range word {
		n += int64(utf16.RuneLen(r))
	}
	return n
}
