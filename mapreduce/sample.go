package mapreduce

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
)

// A sampled record is drawn by its rank: a hash of a seed, its file's URL, its offset there, and its number
// among records with one offset, as in a compressed block. So a sample is the same for any splits, maps and attempts.

// Sample reads a fraction of the records of an input, each with the same chance. The same
// records are read for the same seed and files, however these are cut into splits.
//
// The records need an offset in their file. Lines, records of one size, rows of CSV and records of SequenceFiles
// have one, and those of a format of one's own if it calls [Split.At]. [Files], [Generate], [From] and [Stored] are
// refused. Other formats without [Split.At], such as Parquet and Avro, and .bz2 files that several maps read fail in
// the first attempt.
func Sample[R any](in Input[R], fraction float64, seed uint64) Input[R] {
	if in.spec == nil {
		return in
	}
	if !(fraction >= 0 && fraction <= 1) {
		in = in.withError(fmt.Errorf("Sample of a fraction of %v: want 0 to 1", fraction))
	}
	in = in.withOffsets("Sample")
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
// random order. Seeds and inputs are as for [Sample]. One reduce writes the records.
func Reservoir[R any](in Input[R], n int, seed uint64) *Result[struct{}, R] {
	in = in.withOffsets("Reservoir")
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

// withOffsets returns an input with an error if none of its records can have an offset in a file.
func (in Input[R]) withOffsets(function string) Input[R] {
	if in.spec == nil || !slices.Contains([]string{"files", "generated", Binary{}.Name()}, in.spec.format) {
		return in
	}
	return in.withError(fmt.Errorf("%s of an input of the format %s: its records have no offset in a file, by which they could be drawn", function, in.spec.format))
}

// ranking ranks the records of a split.
type ranking struct {
	seed, file uint64
	path       string

	offset int64  // of the last record
	same   uint64 // records before it with its offset
}

var errNoOffset = misuse("Sample: a record has no offset in its file that is the same for all splits: read text, CSV, SequenceFiles or records of one size, or call Split.At in a format of your own")

func (r *ranking) of(s splitReader) (rank uint64, err error) {
	path, offset := s.Place()
	if path == "" || offset < 0 {
		return 0, errNoOffset
	}
	r.same++
	if path != r.path || r.file == 0 {
		r.path, r.file, r.same = path, r.seed, 0
		for _, b := range []byte(path) {
			r.file = mix(r.file ^ uint64(b))
		}
	}
	if offset != r.offset {
		r.offset, r.same = offset, 0
	}
	rank = mix(r.file + uint64(offset))
	if r.same > 0 {
		rank = mix(rank + r.same)
	}
	return rank, nil
}

// mix is the output function of SplitMix64.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
