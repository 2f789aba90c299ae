// Command grep prints the lines that match a regular expression, in the order of the
// input. With -count it counts the matching texts and lists the most frequent first.
package main

import (
	"flag"
	"regexp"

	"github.com/quernmr/quern/mapreduce"
)

func main() {
	pattern := flag.String("e", "", "the `regexp` to search for")
	count := flag.Bool("count", false, "count matches instead of printing lines")
	mapreduce.Main(func() (*mapreduce.Flow, error) { return grep(*pattern, *count) })
}

func grep(pattern string, count bool) (*mapreduce.Flow, error) {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, err
	}
	if count {
		return countMatches(re), nil
	}
	return matchingLines(re), nil
}

func matchingLines(re *regexp.Regexp) *mapreduce.Flow {
	lines := mapreduce.Map(mapreduce.Lines().Matching(re), func(_ *mapreduce.Task, line string, emit func(string, struct{})) error {
		emit(line, struct{}{})
		return nil
	})
	return &mapreduce.Flow{Name: "grep", Jobs: []*mapreduce.Job{mapreduce.MapOnly(lines).Job("grep")}}
}

func countMatches(re *regexp.Regexp) *mapreduce.Flow {
	counts := mapreduce.Fold(mapreduce.Map(mapreduce.Lines().Matching(re), func(_ *mapreduce.Task, line string, emit func(string, int64)) error {
		for _, m := range re.FindAllString(line, -1) {
			emit(m, 1)
		}
		return nil
	}), mapreduce.Sum)
	byCount := mapreduce.Map(mapreduce.From(counts), func(_ *mapreduce.Task, c mapreduce.Pair[string, int64], emit func(mapreduce.Desc[int64], string)) error {
		emit(mapreduce.Descending(c.B), c.A)
		return nil
	})
	return &mapreduce.Flow{Name: "grep", Jobs: []*mapreduce.Job{counts.Job("grep-search"), mapreduce.Sort(byCount).Job("grep-sort")}}
}
