package mapreduce

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	mrruntime "github.com/quernmr/quern/runtime"
	"pgregory.net/rapid"
)

// sharedJoin joins the lines of "in": L key value, or R key value.
func sharedJoin(kind JoinKind) *Job {
	side := func(name string) *Pairs[int64, string] {
		return Map(Lines(), func(_ *Task, line string, emit func(int64, string)) error {
			if rest, ok := strings.CutPrefix(line, name); ok {
				emit(int64(rest[0]-'0'), rest[1:])
			}
			return nil
		})
	}
	job := JoinEach(side("L"), side("R"), kind, func(_ *Task, key int64, a, b *string, emit func(string, struct{})) error {
		emit(pairText(key, a, b), struct{}{})
		return nil
	}).Job("j")
	job.Reduces = 3
	return job
}

// TestSharedJoin: a join has the same rows whichever keys it spreads, on either side, for all kinds of joins and all
// splits. Keys that are spread may have no values on one side or on both.
func TestSharedJoin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom([]JoinKind{InnerJoin, LeftJoin, RightJoin, FullJoin}).Draw(t, "kind")
		b := &jobRunner{splitLines: rapid.IntRange(0, 5).Draw(t, "lines of a split")}
		var text strings.Builder
		lefts, rights := make(map[int64][]string), make(map[int64][]string)
		for i, line := range rapid.SliceOfN(rapid.StringMatching("[LR][0-3]"), 0, 40).Draw(t, "lines") {
			fmt.Fprintf(&text, "%s%d\n", line, i%20)
			side := map[byte]map[int64][]string{'L': lefts, 'R': rights}[line[0]]
			side[int64(line[1]-'0')] = append(side[int64(line[1]-'0')], fmt.Sprint(i%20))
		}
		b.files = map[string]string{"in": text.String()}
		for key := range int64(4) {
			if side := rapid.SampledFrom([]int{-1, leftSide, rightSide}).Draw(t, "spread side"); side >= 0 {
				b.spread = append(b.spread, joinKey(key, byte(side)))
			}
		}
		out, err := b.run(sharedJoin(kind))
		if err != nil {
			t.Fatal(err)
		}
		got := slices.Sorted(strings.Lines(mainText(out, "j")))
		for i, line := range got {
			got[i] = strings.TrimSuffix(line, "\n")
		}
		if want := allPairs(kind, lefts, rights); !slices.Equal(got, want) {
			t.Fatalf("joined %q, want %q", got, want)
		}
		if len(out) != 3 {
			t.Fatalf("%d part files, want 3", len(out))
		}
	})
}

// TestSharingReruns: a map that emits the records of a place in another order has the same records in each partition.
func TestSharingReruns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type emitted struct {
			record
			offset int64
		}
		all := rapid.SliceOf(rapid.Custom(func(t *rapid.T) emitted {
			key := joinKey(rapid.Int64Range(0, 2).Draw(t, "key"), rapid.SampledFrom([]byte{leftSide, rightSide}).Draw(t, "side"))
			return emitted{record{key, []byte{byte(rapid.IntRange(0, 3).Draw(t, "value"))}}, rapid.Int64Range(-1, 9).Draw(t, "offset")}
		})).Draw(t, "records")
		run := func(all []emitted) (parts [4]string) {
			in, out := &placedInput{}, &fakeCollector{parts: make([][]record, len(parts))}
			task := &mrruntime.Task{Partitions: len(parts), Division: &mrruntime.Division{Spread: [][]byte{joinKey(0, leftSide), joinKey(1, rightSide)}}}
			s := newSharing(task, in, out)
			for _, r := range all {
				in.offset = r.offset
				if err := s.Collect(int(r.key[len(r.key)-2])%len(parts), r.key, r.value); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.finish(); err != nil {
				t.Fatal(err)
			}
			for i, of := range out.parts {
				slices.SortFunc(of, func(a, b record) int {
					return bytes.Compare(append(slices.Clone(a.key), a.value...), append(slices.Clone(b.key), b.value...))
				})
				parts[i] = fmt.Sprint(of)
			}
			return parts
		}
		if first, again := run(all), run(rapid.Permutation(all).Draw(t, "another order")); first != again {
			t.Fatalf("a rerun has\n%q, the first run had\n%q", again, first)
		}
	})
}

// TestSharingBalances: equal records of a large key at different places are in all partitions, in nearly equal parts.
func TestSharingBalances(t *testing.T) {
	in, out := &placedInput{}, &fakeCollector{parts: make([][]record, 8)}
	s := newSharing(&mrruntime.Task{Partitions: 8, Division: &mrruntime.Division{Spread: [][]byte{joinKey(7, rightSide)}}}, in, out)
	for in.offset = 0; in.offset < 8*8000*100; in.offset += 100 {
		if err := s.Collect(3, joinKey(7, rightSide), nil); err != nil {
			t.Fatal(err)
		}
	}
	for i, part := range out.parts {
		if len(part) < 7600 || len(part) > 8400 {
			t.Errorf("partition %d has %d records, want about 8000", i, len(part))
		}
	}
}

// TestSharedOnlyWhereRight: a join spreads no keys that the author or the order has given a partition.
func TestSharedOnlyWhereRight(t *testing.T) {
	pairs := func() *Pairs[string, int64] { return wordPairs() }
	byLength := func(key string, n int) int { return len(key) % n }
	join := func(a, b *Pairs[string, int64]) stage {
		return JoinEach(a, b, InnerJoin, func(*Task, string, *int64, *int64, func(string, int64)) error { return nil }).Job("j").stage
	}
	got := map[string]bool{
		"plain":       join(pairs(), pairs()).spreadsKeys(),
		"partition":   join(pairs().Partition(byLength), pairs().Partition(byLength)).spreadsKeys(),
		"total order": join(pairs().TotalOrder(), pairs()).spreadsKeys(),
		"combine":     join(pairs(), pairs().Combine(Sum)).spreadsKeys(),
		"sort":        Sort(pairs()).Job("j").stage.spreadsKeys(),
	}
	want := map[string]bool{"plain": true, "partition": false, "total order": false, "combine": false, "sort": false}
	if !maps.Equal(got, want) {
		t.Errorf("spread: %v, want %v", got, want)
	}
}
