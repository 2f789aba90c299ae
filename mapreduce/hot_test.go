package mapreduce

import (
	"fmt"
	"iter"
	"strings"
	"testing"
)

// TestHotKeys tests which group of each kind of reduce is hot, and how its key is printed: a hundred lines are the
// hot one, and a hundred others come once. Each emits a value of 1 KiB.
func TestHotKeys(t *testing.T) {
	value := strings.Repeat("v", 1<<10)
	lines := strings.Repeat("hot\n", 100)
	for i := range 100 {
		lines += fmt.Sprintf("k%02d\n", i)
	}
	for name, c := range map[string]struct {
		result interface{ Job(string) *Job }
		want   string // key and records of the hot group
		raw    bool
	}{
		"string":       {hotReduce(func(line string) string { return line }, value), "hot 100", false},
		"int":          {hotReduce(func(line string) int { return len(line) - 5 }, value), "-2 200", false},
		"pair":         {hotReduce(func(line string) Pair[string, int] { return PairOf(line, 7) }, value), "hot\t7 100", false},
		"fold":         {Fold(hotPairs(func(line string) string { return line }, value), func(a, _ string) string { return a }), "", false},
		"sort":         {Sort(hotPairs(func(line string) string { return line }, value)), "hot 100", false},
		"secondary":    {hotSorted(value), "hot 100", false},
		"join":         {hotJoin(value), "hot 200", false},
		"long key":     {hotReduce(func(line string) string { return strings.Repeat(line, 500) }, value), strings.Repeat("hot", 500)[:64] + " 100", true},
		"text panics":  {hotReduceBy(hotPairs(func(line string) string { return line }, value).Codecs(panickingText(), nil)), "\x01hot 100", true},
		"all, in part": {hotPart(value), "hot 80", false},
	} {
		b := &jobRunner{files: map[string]string{"in": lines}}
		if _, err := b.run(c.result.Job("j")); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got, raw := "", false
		if hot := b.hot[0]; hot != nil {
			got, raw = fmt.Sprintf("%s %d", hot.Groups[0].Key, hot.Groups[0].Records), hot.Groups[0].Raw
		}
		if got != c.want || raw != c.raw {
			t.Errorf("%s: %q, raw %v; want %q, %v", name, got, raw, c.want, c.raw)
		}
	}
}

// hotPairs emits the key of each line, with a value.
func hotPairs[K any](key func(string) K, value string) *Pairs[K, string] {
	return Map(Lines(), func(_ *Task, line string, emit func(K, string)) error {
		emit(key(line), value)
		return nil
	})
}

func hotReduce[K any](key func(string) K, value string) *Result[string, int] {
	return hotReduceBy(hotPairs(key, value))
}

func hotReduceBy[K any](p *Pairs[K, string]) *Result[string, int] {
	return Reduce(p, func(_ *Task, _ K, vals iter.Seq[string], emit func(string, int)) error { return nil })
}

// hotSorted has a different second part in each record: whole keys come once.
func hotSorted(value string) *Result[string, int] {
	n := 0
	return ReduceSorted(hotPairs(func(line string) Pair[string, int] { n++; return PairOf(line, n) }, value),
		func(_ *Task, _ string, vals iter.Seq2[int, string], emit func(string, int)) error { return nil })
}

func hotJoin(value string) *Result[string, int] {
	side := func() *Pairs[string, string] { return hotPairs(func(line string) string { return line }, value) }
	return Join(side(), side(), func(_ *Task, _ string, as, bs iter.Seq[string], emit func(string, int)) error { return nil })
}

// hotPart stops in the middle of the first group, which is the hot one.
func hotPart(value string) *Result[string, int] {
	return ReduceAll(hotPairs(func(line string) string { return line }, value), func(_ *Task, groups iter.Seq2[string, iter.Seq[string]], emit func(string, int)) error {
		for _, vals := range groups {
			n := 0
			for range vals {
				if n++; n == 80 {
					return nil
				}
			}
		}
		return nil
	})
}

func panickingText() *Codec[string] {
	return &Codec[string]{
		Name: "panics", Append: func(dst []byte, v string) []byte { return append(append(dst, 1), v...) },
		Decode: func(src []byte) (string, error) { return string(src[1:]), nil },
		Text:   func([]byte, string) []byte { panic("no text") },
	}
}
