package mapreduce

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	mrruntime "github.com/quernmr/quern/runtime"
)

// TestRulesOfRanges: a second range over records, values or groups fails the attempt.
func TestRulesOfRanges(t *testing.T) {
	b := &jobRunner{files: map[string]string{"in": "a a\nb\n"}}
	drain := func(ones iter.Seq[int64]) {
		for range ones {
		}
	}
	checkError(t, Reduce(wordPairs(), func(_ *Task, _ string, ones iter.Seq[int64], emit func(string, int64)) error {
		drain(ones)
		drain(ones)
		return errors.New("a consequence")
	}).Job("j"), b, "values", "again after their end")
	checkError(t, ReduceAll(wordPairs(), func(_ *Task, groups iter.Seq2[string, iter.Seq[int64]], emit func(string, int64)) error {
		for range groups {
		}
		for range groups {
		}
		return nil
	}).Job("j"), b, "groups", "again after their end")
	checkError(t, MapOnly(MapSplit(Lines(), func(_ *Task, lines iter.Seq[string], emit func(string, int64)) error {
		for range lines {
			break
		}
		for range lines {
		}
		return nil
	})).Job("j"), b, "second time")
	checkError(t, Join(wordPairs(), wordPairs(), func(_ *Task, _ string, as, bs iter.Seq[int64], emit func(string, int64)) error {
		drain(bs)
		drain(as)
		return nil
	}).Job("j"), b, "left values", "after the right ones")
	checkError(t, Join(wordPairs(), wordPairs(), func(_ *Task, _ string, as, bs iter.Seq[int64], emit func(string, int64)) error {
		drain(bs)
		drain(bs)
		return nil
	}).Job("j"), b, "again after their end")
}

// TestLateValues: a range over the values of an earlier group fails the attempt, or
// panics after the attempt. It never returns the values of another group.
func TestLateValues(t *testing.T) {
	b := &jobRunner{files: map[string]string{"in": "a a\nb b\nc\n"}}
	var saved iter.Seq[int64]
	first := func(vals iter.Seq[int64]) {
		for range vals {
			break
		}
	}
	use := func(vals iter.Seq[int64]) {
		if saved != nil {
			first(saved)
		}
		saved = vals
	}
	for name, result := range map[string]*Result[string, int64]{
		"reduce": Reduce(wordPairs(), func(_ *Task, w string, vals iter.Seq[int64], _ func(string, int64)) error {
			use(vals)
			if w != "a" {
				return errors.New("a consequence")
			}
			return nil
		}),
		"all": ReduceAll(wordPairs(), func(_ *Task, groups iter.Seq2[string, iter.Seq[int64]], _ func(string, int64)) error {
			for _, vals := range groups {
				use(vals)
			}
			return nil
		}),
		"all, behind the last group": ReduceAll(wordPairs(), func(_ *Task, groups iter.Seq2[string, iter.Seq[int64]], _ func(string, int64)) error {
			for _, vals := range groups {
				saved = vals
			}
			first(saved)
			return nil
		}),
		"all, within a range of an earlier group": ReduceAll(wordPairs(), func(_ *Task, groups iter.Seq2[string, iter.Seq[int64]], _ func(string, int64)) error {
			for _, vals := range groups {
				for range vals {
					for range groups {
						break
					}
				}
			}
			return nil
		}),
		"sorted": ReduceSorted(Map(Lines(), func(_ *Task, line string, emit func(Pair[string, int64], int64)) error {
			emit(PairOf(line, int64(1)), 1)
			return nil
		}), func(_ *Task, _ string, vals iter.Seq2[int64, int64], _ func(string, int64)) error {
			use(func(yield func(int64) bool) {
				for a := range vals {
					if !yield(a) {
						return
					}
				}
			})
			return nil
		}),
		"join": Join(wordPairs(), wordPairs(), func(_ *Task, _ string, as, bs iter.Seq[int64], _ func(string, int64)) error {
			first(as)
			use(bs)
			return nil
		}),
		"combine": Reduce(wordPairs().CombineGroup(func(_ *Task, _ string, vals iter.Seq[int64], _ func(int64)) error {
			use(vals)
			return nil
		}), func(*Task, string, iter.Seq[int64], func(string, int64)) error { return nil }),
	} {
		t.Run(name, func(t *testing.T) {
			saved = nil
			checkError(t, result.Job("j"), b, "values", "after the group")
		})
	}

	saved = nil
	if _, err := b.run(Reduce(wordPairs(), func(_ *Task, _ string, vals iter.Seq[int64], _ func(string, int64)) error {
		saved = vals
		return nil
	}).Job("j")); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if r := recover(); r == nil || !strings.Contains(fmt.Sprint(r), "after the group") {
			t.Errorf("panic %v", r)
		}
	}()
	first(saved)
}

// TestLateValuesOfCombiner: the values of a group cannot be read in a later call of the combiner either.
func TestLateValuesOfCombiner(t *testing.T) {
	var saved iter.Seq[int64]
	var late []int64
	p := wordPairs().CombineGroup(func(_ *Task, _ string, vals iter.Seq[int64], _ func(int64)) error {
		if saved == nil {
			saved = vals
			return nil
		}
		late = slices.AppendSeq(late, saved)
		return nil
	})
	value := must(p.value).append(nil, 1)
	combine := p.groupCombiner(&Task{}, must(p.key), &groups{})
	for _, key := range []string{"a", "b"} {
		err := combine(&mrruntime.Task{}, &fakeRecords{all: []record{{[]byte(key), value}}}, nil)
		if want := key == "b"; errors.Is(err, errRangeLate) != want || !want && err != nil {
			t.Errorf("the group of %s: %v", key, err)
		}
	}
	if len(late) > 0 {
		t.Errorf("late values %v", late)
	}
}
