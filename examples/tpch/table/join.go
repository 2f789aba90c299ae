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

// Add adds values, for Group and Total. Unlike [mapreduce.Sum], which wraps, it fails
// the task if the sum does not fit an int64.
func Add(a, b int64) int64 {
	sum := a + b
	if (sum < a) != (b < 0) {
		panic(fmt.Sprintf("%d and %d: the sum does not fit an int64", a, b))
	}
	return sum
}

// Lookup calls f for every row and small row with the same key, in the maps. f emits rows, or drops the pair.
func Lookup[K, A, B, KO, VO any](rows *mapreduce.Pairs[K, A], small *mapreduce.Pairs[K, B], f func(a A, b B, emit func(KO, VO))) *mapreduce.Pairs[KO, VO] {
	return mapreduce.BroadcastJoin(rows, small, mapreduce.InnerJoin, func(_ *mapreduce.Task, _ K, a *A, b *B, emit func(KO, VO)) error {
		f(*a, *b, emit)
		return nil
	})
}

// LeftJoinGroup calls f for every left row with the sum of the right rows of its key, or the zero B. f returns the key
// and value of the joined row. Let left have few rows of a key: they are held in memory.
func LeftJoinGroup[K, A, B, KO, VO any](left *mapreduce.Pairs[K, A], right *mapreduce.Pairs[K, B], add func(a, b B) B, f func(key K, a A, sum B) (KO, VO)) *mapreduce.Result[KO, VO] {
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
		for _, a := range lefts {
			emit(f(key, a, sum))
		}
		return nil
	})
}

// lookupMemory limits the small sides of a job in each worker, in bytes.
const lookupMemory = "1073741824"

// Job returns a job that writes a result.
func Job[K, V any](name string, r *mapreduce.Result[K, V]) *mapreduce.Job {
	job := r.Job(name)
	job.Properties = map[string]string{"quern.broadcast.max.bytes": lookupMemory}
	return job
}
