package table

import (
	"fmt"
	"iter"
	"slices"

	"github.com/quernmr/quern/mapreduce"
)

// Group folds the values of each key into one.
func Group[K, V any](rows *mapreduce.Pairs[K, V], add func(a, b V) V) *mapreduce.Result[K, V] {
	return mapreduce.Fold(rows, add)
}

// Add adds values, for Group, JoinGroup and Total. Unlike [mapreduce.Sum], which wraps, it fails
// the task if the sum does not fit an int64.
func Add(a, b int64) int64 {
	sum := a + b
	if (sum < a) != (b < 0) {
		panic(fmt.Sprintf("%d and %d: the sum does not fit an int64", a, b))
	}
	return sum
}

// Join calls f for every left and right row with the same key. f returns the key and value of
// the joined row. Let left have fewer rows per key: Join holds the left rows of a key in memory.
func Join[K, A, B, KO, VO any](left *mapreduce.Pairs[K, A], right *mapreduce.Pairs[K, B], f func(key K, a A, b B) (KO, VO)) *mapreduce.Result[KO, VO] {
	return mapreduce.Join(left, right, func(_ *mapreduce.Task, key K, as iter.Seq[A], bs iter.Seq[B], emit func(KO, VO)) error {
		lefts := slices.Collect(as)
		if len(lefts) == 0 {
			return nil
		}
		for b := range bs {
			for _, a := range lefts {
				emit(f(key, a, b))
			}
		}
		return nil
	})
}

// JoinGroup calls f for every left row with the sum of the right rows of its key. It
// drops left rows without right rows.
func JoinGroup[K, A, B, KO, VO any](left *mapreduce.Pairs[K, A], right *mapreduce.Pairs[K, B], add func(a, b B) B, f func(key K, a A, sum B) (KO, VO)) *mapreduce.Result[KO, VO] {
	return joinGroup(left, right, add, false, f)
}

// LeftJoinGroup is JoinGroup, but keeps left rows without right rows: their sum is the zero B.
func LeftJoinGroup[K, A, B, KO, VO any](left *mapreduce.Pairs[K, A], right *mapreduce.Pairs[K, B], add func(a, b B) B, f func(key K, a A, sum B) (KO, VO)) *mapreduce.Result[KO, VO] {
	return joinGroup(left, right, add, true, f)
}

func joinGroup[K, A, B, KO, VO any](left *mapreduce.Pairs[K, A], right *mapreduce.Pairs[K, B], add func(a, b B) B, outer bool, f func(key K, a A, sum B) (KO, VO)) *mapreduce.Result[KO, VO] {
	return mapreduce.Join(left, right.Combine(add), func(_ *mapreduce.Task, key K, as iter.Seq[A], bs iter.Seq[B], emit func(KO, VO)) error {
		lefts := slices.Collect(as)
		if len(lefts) == 0 {
			return nil
		}
		var sum B
		some := false
		for b := range bs {
			if some {
				b = add(sum, b)
			}
			sum, some = b, true
		}
		if some || outer {
			for _, a := range lefts {
				emit(f(key, a, sum))
			}
		}
		return nil
	})
}
