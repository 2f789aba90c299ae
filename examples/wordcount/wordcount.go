// Command wordcount counts the words of text files.
package main

import "github.com/quernmr/quern/mapreduce"

func main() { mapreduce.Main(wordcount) }

func wordcount() (*mapreduce.Job, error) {
	words := mapreduce.Map(mapreduce.Lines(), func(_ *mapreduce.Task, line string, emit func(string, int64)) error {
		for w := range mapreduce.Words(line) {
			emit(w, 1)
		}
		return nil
	})
	return mapreduce.Fold(words, mapreduce.Sum).Job("wordcount"), nil
}
