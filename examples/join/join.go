// Command join joins two inputs of lines with a key, a tab and a value. Each line of the output has a key
// and two values, as with Hadoop's example join: key, tab, [left,right]. Unlike there, the inputs need not be
// sorted and partitioned.
package main

import (
	"flag"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/quernmr/quern/mapreduce"
)

func main() {
	left := flag.String("left", "", "comma-separated `paths` of the left input, the one with fewer lines of each key")
	right := flag.String("right", "", "comma-separated `paths` of the right input")
	op := flag.String("op", "inner", "`inner`: keys of both inputs; outer: keys of any")
	mapreduce.Main(func() (*mapreduce.Job, error) { return join(*left, *right, *op) })
}

func join(left, right, op string) (*mapreduce.Job, error) {
	switch {
	case left == "" || right == "":
		return nil, fmt.Errorf("give -left and -right")
	case op != "inner" && op != "outer":
		return nil, fmt.Errorf("-op %q: want inner or outer", op)
	}
	joined := mapreduce.Join(read(left), read(right), func(_ *mapreduce.Task, key string, as, bs iter.Seq[string], emit func(key, values string)) error {
		lefts, rights := slices.Collect(as), bs // one side is kept, the other one is streamed
		if op == "outer" {
			lefts, rights = orEmpty(lefts), func(yield func(string) bool) {
				none := true
				for b := range bs {
					if none = false; !yield(b) {
						return
					}
				}
				if none {
					yield("")
				}
			}
		}
		for b := range rights {
			for _, a := range lefts {
				emit(key, "["+a+","+b+"]")
			}
		}
		return nil
	})
	return joined.Job("join"), nil
}

func read(paths string) *mapreduce.Pairs[string, string] {
	return mapreduce.Map(mapreduce.KeyValues(strings.Split(paths, ",")...), func(_ *mapreduce.Task, line mapreduce.Pair[string, string], emit func(key, value string)) error {
		emit(line.A, line.B)
		return nil
	})
}

func orEmpty(values []string) []string {
	if len(values) == 0 {
		return []string{""}
	}
	return values
}
