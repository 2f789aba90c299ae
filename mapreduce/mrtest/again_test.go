package mrtest

import (
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"

	mr "github.com/quernmr/quern/mapreduce"
)

// TestSecondRun: a captured value that differs in every worker is detected; the error
// names the split or file and the first record that differs.
func TestSecondRun(t *testing.T) {
	clock := int64(0)
	now := func() int64 { clock++; return clock }
	stamped := func(stamp int64) *mr.Pairs[string, int64] {
		return mr.Map(mr.Lines(), func(_ *mr.Task, line string, emit func(string, int64)) error {
			emit(line[:1], stamp)
			return nil
		})
	}
	for name, c := range map[string]struct {
		build func() *mr.Job
		words []string // of the first error
	}{
		"captured by a map": {func() *mr.Job { return mr.Sort(stamped(now())).Job("j") },
			[]string{"job j, map of input from byte 0 to 20 emits something else", `sorted by key, "a`, "for reduce 0 instead of"}},
		"captured by a map-only job": {func() *mr.Job { return mr.MapOnly(stamped(now())).Job("j") },
			[]string{"the map's output part-m-00000 differs when the job is run a second time", `sorted by line, "a`}},
		"captured by a side of a join": {func() *mr.Job {
			return mr.Join(linePairs(), stamped(now()), func(_ *mr.Task, k string, _ iter.Seq[struct{}], bs iter.Seq[int64], emit func(string, int64)) error {
				for b := range bs {
					emit(k, b)
				}
				return nil
			}).Job("j")
		}, []string{"map of input", `"a`}},
		"captured by a combiner": {func() *mr.Job {
			stamp := now()
			return mr.Reduce(stamped(1).CombineGroup(func(_ *mr.Task, _ string, _ iter.Seq[int64], emit func(int64)) error {
				emit(stamp)
				return nil
			}), first).Job("j")
		}, []string{"the reduce's output part-r-00000 differs", `"a`}},
		"captured by a reduce": {func() *mr.Job {
			stamp := now()
			return mr.Reduce(stamped(1), func(_ *mr.Task, k string, _ iter.Seq[int64], emit func(string, int64)) error {
				emit(k, stamp)
				return nil
			}).Job("j")
		}, []string{"the reduce's output part-r-00000 differs", `"a`}},
		"another order": {func() *mr.Job {
			return mr.Sort(mr.MapSplit(mr.Lines(), func(_ *mr.Task, lines iter.Seq[string], emit func(string, int64)) error {
				counts := make(map[string]int64)
				for line := range lines {
					counts[line]++
				}
				for line, n := range counts {
					for range n {
						emit(line, 1)
					}
				}
				return nil
			})).Job("j")
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			k := &runner{ctx: t.Context(), dir: t.TempDir(), job: Program(func() (*mr.Job, error) { return c.build(), nil })}
			_, err := k.runAll(map[string]string{inputName: "a one\nb two\na three\n"}, false)
			if (err == nil) != (c.words == nil) {
				t.Fatalf("error %v, want %q", err, c.words)
			}
			for _, w := range c.words {
				if first, _, _ := strings.Cut(err.Error(), "\n"); !strings.Contains(first, w) {
					t.Errorf("error %s, want %q", first, w)
				}
			}
		})
	}
}

func first(_ *mr.Task, k string, vals iter.Seq[int64], emit func(string, int64)) error {
	for v := range vals {
		emit(k, v)
		break
	}
	return nil
}

// TestDifference: difference finds the first record, in sorted order, in which two
// outputs differ.
func TestDifference(t *testing.T) {
	output := func(records ...string) *mapOutput {
		o := &mapOutput{text: func(key, value []byte) string { return string(key) + "=" + string(value) }}
		for _, r := range records {
			o.records = append(o.records, emittedRecord{key: r[:1], value: r[1:]})
		}
		return o
	}
	for _, c := range []struct {
		a, b []string
		want string
	}{
		{[]string{"a1", "b2"}, []string{"b2", "a1"}, ""},
		{[]string{"a1", "b2"}, []string{"b3", "a1"}, `sorted by key, "b=3" for reduce 0 instead of "b=2" for reduce 0`},
		{[]string{"a1", "a1"}, []string{"a1"}, `sorted by key, no more records instead of "a=1" for reduce 0`},
		{nil, []string{"a1"}, `sorted by key, "a=1" for reduce 0 instead of no more records`},
	} {
		if got := output(c.a...).difference(output(c.b...)); got != c.want {
			t.Errorf("%v and %v: %q, want %q", c.a, c.b, got, c.want)
		}
	}
	other := output("a1")
	other.records[0].partition = 2
	if got := output("a1").difference(other); !strings.Contains(got, `"a=1" for reduce 2 instead of "a=1" for reduce 0`) {
		t.Errorf("another partition: %q", got)
	}
}

// TestProgram: a program is built for every attempt, and its error is reported.
func TestProgram(t *testing.T) {
	builds := 0
	got := Run(t, Program(func() (*mr.Job, error) {
		builds++
		return mr.Fold(scorePairs(), mr.Sum).Job("j"), nil
	}), scores)
	if got != "ann\t16\nbob\t6\ncid\t4\n" || builds < 20 {
		t.Errorf("got %q of %d builds", got, builds)
	}
	flow := Program(func() (*mr.Flow, error) {
		return &mr.Flow{Name: "f", Jobs: []*mr.Job{mr.Fold(scorePairs(), mr.Sum).Job("j")}}, nil
	})
	if got := Run(t, flow, scores); got != "ann\t16\nbob\t6\ncid\t4\n" {
		t.Errorf("got %q", got)
	}
	for want, build := range map[string]func() (*mr.Job, error){
		"no luck":                  func() (*mr.Job, error) { return nil, errors.New("no luck") },
		"the program returned nil": func() (*mr.Job, error) { return nil, nil },
	} {
		if _, err := (&runner{ctx: t.Context(), dir: t.TempDir(), job: Program(build)}).runAll(nil, false); err == nil || fmt.Sprint(err) != want {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}
