package table

import (
	"fmt"
	"iter"
	"strings"

	"github.com/quernmr/quern/mapreduce"
)

// Line returns a row of an answer: columns with '|' between them.
func Line(columns ...any) string {
	var b strings.Builder
	for i, c := range columns {
		if i > 0 {
			b.WriteByte('|')
		}
		fmt.Fprint(&b, c)
	}
	return b.String()
}

// Order writes the rows of a result as lines. row returns each line and its sort key. Lines with
// equal keys are sorted as text. The part files, in order, are sorted.
func Order[K, V, S any](r *mapreduce.Result[K, V], row func(K, V) (by S, line string)) *mapreduce.Result[struct{}, string] {
	return ordered(byLine(r, row).TotalOrder(), -1)
}

// Top is Order, but writes only the first n lines, to the first part file.
func Top[K, V, S any](n int, r *mapreduce.Result[K, V], row func(K, V) (by S, line string)) *mapreduce.Result[struct{}, string] {
	return ordered(byLine(r, row).Partition(func(mapreduce.Pair[S, string], int) int { return 0 }), n)
}

func byLine[K, V, S any](r *mapreduce.Result[K, V], row func(K, V) (S, string)) *mapreduce.Pairs[mapreduce.Pair[S, string], struct{}] {
	return project(r, func(k K, v V) (mapreduce.Pair[S, string], struct{}) {
		return mapreduce.PairOf(row(k, v)), struct{}{}
	})
}

// ordered writes the first n lines of each partition, or all if n is negative.
func ordered[S any](rows *mapreduce.Pairs[mapreduce.Pair[S, string], struct{}], n int) *mapreduce.Result[struct{}, string] {
	return mapreduce.ReduceAll(rows, func(_ *mapreduce.Task, groups iter.Seq2[mapreduce.Pair[S, string], iter.Seq[struct{}]], emit func(struct{}, string)) error {
		written := 0
		for key, equal := range groups {
			for range equal {
				if written == n {
					return nil
				}
				emit(struct{}{}, key.B)
				written++
			}
		}
		return nil
	})
}

// Total writes one line for the sum of all rows. If there are no rows, it calls line with some
// false.
func Total[V any](rows *mapreduce.Pairs[struct{}, V], add func(a, b V) V, line func(sum V, some bool) string) *mapreduce.Result[struct{}, string] {
	rows = rows.Combine(add).Partition(func(struct{}, int) int { return 0 })
	return mapreduce.ReduceAll(rows, func(t *mapreduce.Task, groups iter.Seq2[struct{}, iter.Seq[V]], emit func(struct{}, string)) error {
		if t.Partition > 0 {
			return nil
		}
		var sum V
		some := false
		for _, values := range groups {
			for v := range values {
				if some {
					v = add(sum, v)
				}
				sum, some = v, true
			}
		}
		emit(struct{}{}, line(sum, some))
		return nil
	})
}
