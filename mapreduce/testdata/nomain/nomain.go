// Command nomain uses package mapreduce and is not a job.
package main

import (
	"fmt"
	"strings"

	"github.com/quernmr/quern/mapreduce"
)

func main() {
	words := mapreduce.Map(mapreduce.Lines(), func(_ *mapreduce.Task, line string, emit func(string, int64)) error {
		for w := range strings.FieldsSeq(line) {
			emit(w, 1)
		}
		return nil
	})
	fmt.Println(mapreduce.Fold(words, mapreduce.Sum).Job("wordcount").Name, mapreduce.Properties())
}
