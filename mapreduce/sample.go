package mapreduce

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
)

// A sampled record is drawn by its rank: a hash of a seed, its file's URL and its offset there.
// So a sample is the same for any splits, maps and attempts.

// Sample reads a fraction of the records of an input, each with the same chance. The same
// records are read for the same seed and files, however these are cut into splits.
//
// The records need an offset in their file. Inputs of one's own, results of jobs, and .bz2
// files that several maps read have none: their attempts fail.
func Sample[R any](in Input[R], fraction float64, seed uint64) Input[R] {
	if in.spec == nil {
		return in
	}
	if !(fraction >= 0 && fraction <= 1) {
		in = in.withError(fmt.Errorf("Sample of a fraction of %v: want 0 to 1", fraction))
	}
	read := in.read
	in.read = func(t *Task, s splitReader) iter.Seq[R] {
		return func(yield func(R) bool) {
			ranks := ranking{seed: seed}
			for rec := range read(t, s) {
				rank, err := ranks.of(s)
				if err != nil {
					t.fail(err)
					return
				}
				if float64(rank>>11)/(1<<53) < fraction && !yield(rec) {
					return
				}
			}
		}
	}
	return in
}

// Reservoir draws n records of an input at random, or all of them if there are fewer, in a
// random order. Seeds and offsets are as for [Sample]. One reduce writes the records.
func Reservoir[R any](in Input[R], n int, seed uint64) *Result[struct{}, R] {
	ranked := newPairs(in, false, func(t *Task, s splitReader, emit func(struct{}, Pair[uint64, R])) error {
		ranks, drawn := ranking{seed: seed}, []uint64(nil)
		return t.call(func() error {
			for rec := range in.read(t, s) {
				rank, err := ranks.of(s)
				if err != nil {
					return err
				}
				at, _ := slices.BinarySearch(drawn, rank)
				if at >= n {
					continue
				}
				drawn = slices.Insert(drawn[:min(len(drawn), n-1)], at, rank)
				emit(struct{}{}, PairOf(rank, rec))
			}
			return nil
		})
	})
	if n < 1 {
		ranked = ranked.withError(fmt.Sprintf("Reservoir of %d records: want 1 or more", n))
	}
	smallest, top := topOf(ranked, max(n, 1), func(a, b Pair[uint64, R]) int { return cmp.Compare(b.A, a.A) })
	return Reduce(smallest, func(t *Task, key struct{}, vals iter.Seq[Pair[uint64, R]], emit func(struct{}, R)) error {
		return top(t, key, vals, func(p Pair[uint64, R]) { emit(key, p.B) })
	})
}

// withError returns an input with an error; other users of the input do not get it.
func (in Input[R]) withError(err error) Input[R] {
	spec := *in.spec
	spec.err = cmp.Or(spec.err, err)
	in.spec = &spec
	return in
}

// ranking ranks the records of a split.
type ranking struct {
	seed, file uint64
	path       string
}

var errNoOffset = misuse("Sample: a record has no offset in its file that is the same for all splits: read text or records of plain files")

func (r *ranking) of(s splitReader) (rank uint64, err error) {
	path, offset := s.Place()
	if path == "" || offset < 0 {
		return 0, errNoOffset
	}
	if path != r.path || r.file == 0 {
		r.path, r.file = path, r.seed
		for _, b := range []byte(path) {
			r.file = mix(r.file ^ uint64(b))
		}
	}
	return mix(r.file + uint64(offset)), nil
}

// mix is the output function of SplitMix64.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
