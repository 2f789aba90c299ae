// Command invertedindex lists, for each word, the files in which it is and how often, the most frequent
// file first.
package main

import (
	"fmt"
	"iter"
	"path"
	"strings"

	"github.com/quernmr/quern/mapreduce"
)

func main() { mapreduce.Main(invertedIndex) }

type place struct {
	Count int64 `mapreduce:"desc"`
	File  string
}

func invertedIndex() (*mapreduce.Job, error) {
	words := mapreduce.Map(mapreduce.Files(), func(_ *mapreduce.Task, file mapreduce.Pair[string, []byte], emit func(mapreduce.Pair[string, place], struct{})) error {
		counts := make(map[string]int64)
		for w := range strings.FieldsSeq(string(file.B)) {
			counts[w]++
		}
		for w, n := range counts {
			emit(mapreduce.PairOf(w, place{n, path.Base(file.A)}), struct{}{})
		}
		return nil
	})
	index := mapreduce.ReduceSorted(words, func(_ *mapreduce.Task, word string, places iter.Seq2[place, struct{}], emit func(word, files string)) error {
		var files []string
		for p := range places {
			files = append(files, fmt.Sprintf("%s:%d", p.File, p.Count))
		}
		emit(word, strings.Join(files, " "))
		return nil
	})
	return index.Job("inverted index"), nil
}
