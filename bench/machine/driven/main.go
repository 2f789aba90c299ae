// Command driven runs a small job again and again, each on the result of the one before, and prints the time of each
// run in nanoseconds.
package main

import (
	"flag"
	"fmt"
	"iter"
	"time"

	"github.com/quernmr/quern/mapreduce"
)

type params struct {
	From *mapreduce.Dataset[string, int64] // nil: the first step makes the records
}

var step = mapreduce.Define("step", func(job *mapreduce.Job, p params) (*mapreduce.Result[string, int64], error) {
	same := func(_ *mapreduce.Task, rec mapreduce.Pair[string, int64], emit func(string, int64)) error {
		emit(rec.A, rec.B+1)
		return nil
	}
	if p.From == nil {
		return mapreduce.Fold(mapreduce.Map(mapreduce.Generate(1, first), same), mapreduce.Sum), nil
	}
	return mapreduce.Fold(mapreduce.Map(p.From.Input(), same), mapreduce.Sum), nil
})

func first(int) iter.Seq[mapreduce.Pair[string, int64]] {
	return func(yield func(mapreduce.Pair[string, int64]) bool) { yield(mapreduce.PairOf("a", int64(0))) }
}

func main() {
	steps := flag.Int("steps", 20, "number of `runs`")
	mapreduce.Drive(func(d *mapreduce.Driver) error {
		var p params
		for range *steps {
			began := time.Now()
			result, err := step.Run(d, p)
			if err != nil {
				return err
			}
			fmt.Println(time.Since(began).Nanoseconds())
			p.From = &result
		}
		return nil
	}, step)
}
