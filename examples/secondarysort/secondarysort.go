// Command secondarysort reads two integers from each line, groups lines by the first one, and sorts each
// group by the second one. Its part files are those of Hadoop's example secondarysort.
package main

import (
	"fmt"
	"iter"
	"strconv"
	"strings"

	"github.com/quernmr/quern/mapreduce"
)

func main() { mapreduce.Main(secondarySort) }

type pair = mapreduce.Pair[int32, int32]

func secondarySort() (*mapreduce.Job, error) {
	pairs := mapreduce.Map(mapreduce.Lines(), func(_ *mapreduce.Task, line string, emit func(pair, struct{})) error {
		words := strings.Fields(line)
		if len(words) == 0 {
			return nil
		}
		var ns [2]int32 // a missing second one is 0
		for i, w := range words[:min(len(words), 2)] {
			n, err := strconv.ParseInt(w, 10, 32)
			if err != nil {
				return fmt.Errorf("number %d of the line: %w", i+1, err)
			}
			ns[i] = int32(n)
		}
		emit(mapreduce.PairOf(ns[0], ns[1]), struct{}{})
		return nil
	}).Partition(func(p pair, n int) int { // Hadoop's, which fails for -2147483648
		hash := int64(p.A * 127)
		return int(max(hash, -hash) % int64(n))
	})
	sorted := mapreduce.ReduceSorted(pairs, func(_ *mapreduce.Task, first int32, seconds iter.Seq2[int32, struct{}], emit func(string, struct{})) error {
		emit(strings.Repeat("-", 48), struct{}{})
		for second := range seconds {
			emit(fmt.Sprintf("%d\t%d", first, second), struct{}{})
		}
		return nil
	})
	return sorted.Job("secondary sort"), nil
}
