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

// Order writes rows as lines, sorted by key. The part files, in order, are sorted. Give each row another key: rows with
// equal keys have no order.
func Order[S, V any](rows *mapreduce.Pairs[S, V], line func(S, V) string) *mapreduce.Result[struct{}, string] {
	return ordered(rows.TotalOrder(), -1, line)
}

// Top is Order, but writes only the first n rows, to the first part file.
func Top[S, V any](n int, rows *mapreduce.Pairs[S, V], line func(S, V) string) *mapreduce.Result[struct{}, string] {
	return ordered(rows.Partition(func(S, int) int { return 0 }), n, line)
}

// ordered writes the first n rows of each partition, or all if n is negative.
func ordered[S, V any](rows *mapreduce.Pairs[S, V], n int, line func(S, V) string) *mapreduce.Result[struct{}, string] {
	return mapreduce.ReduceAll(rows, func(_ *mapreduce.Task, groups iter.Seq2[S, iter.Seq[V]], emit func(struct{}, string)) error {
		written := 0
		for key, values := range groups {
			for v := range values {
				if written == n {
					return nil
				}
				emit(struct{}{}, line(key, v))
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
