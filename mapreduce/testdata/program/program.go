// Command program is a job for the tests of Main.
package main

import (
	"errors"
	"flag"
	"os"
	"strings"

	"github.com/quernmr/quern/mapreduce"
)

func main() {
	fault := flag.String("fault", "", "what to do wrong")
	if os.Getenv("PARSE_FIRST") != "" {
		flag.Parse()
	}
	mapreduce.Main(func() (*mapreduce.Job, error) {
		switch *fault {
		case "error":
			return nil, errors.New("deliberate error")
		case "nil":
			return nil, nil
		}
		words := mapreduce.Map(mapreduce.Lines(), func(_ *mapreduce.Task, line string, emit func(string, int64)) error {
			for w := range strings.FieldsSeq(line) {
				emit(w, 1)
			}
			return nil
		})
		return mapreduce.Fold(words, mapreduce.Sum).Job("wordcount"), nil
	})
}
