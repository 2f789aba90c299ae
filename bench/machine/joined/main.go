// Command joined adds names to the lines of -input. Both are lines that begin with a key of ten bytes. For the benchmarks.
package main

import (
	"flag"

	"github.com/quernmr/quern/mapreduce"
)

func main() {
	names := flag.String("names", "", "`file` of names")
	mapreduce.Main(func() (*mapreduce.Job, error) {
		left, right := byKey(mapreduce.Lines(*names)), byKey(mapreduce.Lines())
		return mapreduce.JoinEach(left, right, mapreduce.RightJoin, func(_ *mapreduce.Task, key string, name, rest *string, emit func(string, string)) error {
			emit(key+*rest, *name)
			return nil
		}).Job("joined"), nil
	})
}

func byKey(lines mapreduce.Input[string]) *mapreduce.Pairs[string, string] {
	return mapreduce.Map(lines, func(_ *mapreduce.Task, line string, emit func(string, string)) error {
		emit(line[:10], line[10:])
		return nil
	})
}
