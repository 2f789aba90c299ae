// Command wrongtypes does not compile: each line that ends with WRONG has a type of its own mistake.
package main

import (
	"iter"

	"github.com/quernmr/quern/mapreduce"
)

type row struct{ Name string }

var words = mapreduce.Map(mapreduce.Lines(), func(_ *mapreduce.Task, line string, emit func(string, int64)) error {
	emit(line, "1") // WRONG
	return nil
})

var rows = mapreduce.Map(
	mapreduce.CSV[row](mapreduce.CSVFormat{}),
	func(_ *mapreduce.Task, line string, emit func(string, int64)) error { // WRONG
		emit(line, 1)
		return nil
	})

var counts = mapreduce.Fold(
	words,
	func(a, b int32) int32 { return a + b }) // WRONG

var lists = mapreduce.Reduce(
	words,
	func(_ *mapreduce.Task, word string, ones iter.Seq[string], emit func(string, string)) error { // WRONG
		return nil
	})

var joined = mapreduce.Join(
	words,
	mapreduce.Map(mapreduce.Lines(), func(_ *mapreduce.Task, line string, emit func(int, string)) error { // WRONG
		return nil
	}),
	func(_ *mapreduce.Task, word string, as iter.Seq[int64], bs iter.Seq[string], emit func(string, string)) error {
		return nil
	})

var step = mapreduce.Define("step", func(_ *mapreduce.Job, rounds int) (*mapreduce.Result[string, int64], error) {
	return mapreduce.Sort(words), nil
})

func main() {
	mapreduce.Drive(func(d *mapreduce.Driver) error {
		result, err := step.Run(d, "three") // WRONG
		for word, n := range result.All(d) {
			var text string = n // WRONG
			_, _ = word, text
		}
		return err
	}, step)
}
