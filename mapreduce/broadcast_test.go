package mapreduce

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/quernmr/quern/mapreduce/internal/bridge"
	"github.com/quernmr/quern/mapreduce/internal/property"
	"pgregory.net/rapid"
)

// keyed reads lines of a key, a blank and a value.
func keyed(t *Task, line string, emit func(string, string)) error {
	k, v, _ := strings.Cut(line, " ")
	emit(k, v)
	return nil
}

// broadcastLines joins lines of keys and values in a map-only job. Its small side counts its records.
func broadcastLines(kind JoinKind, small ...string) *Job {
	rows := Map(Lines(small...), func(t *Task, line string, emit func(string, []byte)) error {
		t.Counter("test", "mine").Add(1)
		k, v, _ := strings.Cut(line, " ")
		emit(k, []byte(v))
		return nil
	})
	return MapOnly(BroadcastJoin(Map(Lines(), keyed), rows, kind, func(_ *Task, key string, a *string, b *[]byte, emit func(string, string)) error {
		if b == nil {
			emit(key, *a+" -")
		} else {
			emit(key, *a+" "+string(*b))
		}
		return nil
	})).Job("join")
}

// TestBroadcastJoin compares with nested loops over both sides. The maps of a worker read the small side once.
func TestBroadcastJoin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lines := func(label string) []string {
			return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string {
				return rapid.StringMatching("[abc]?").Draw(t, "key") + " " + rapid.StringMatching("[xyz]{0,3}").Draw(t, "value")
			}), 0, 12).Draw(t, label)
		}
		large, small, more := lines("large"), lines("small"), lines("more")
		kind := rapid.SampledFrom([]JoinKind{InnerJoin, LeftJoin}).Draw(t, "kind")
		var want strings.Builder
		rows := slices.Concat(small, more)
		for _, a := range large {
			key, value, _ := strings.Cut(a, " ")
			matched := false
			for _, b := range rows {
				if k, v, _ := strings.Cut(b, " "); k == key {
					matched = true
					fmt.Fprintf(&want, "%s\t%s %s\n", key, value, v)
				}
			}
			if !matched && kind == LeftJoin {
				fmt.Fprintf(&want, "%s\t%s -\n", key, value)
			}
		}
		text := func(lines []string) string {
			return strings.Join(lines, "\n") + strings.Repeat("\n", min(1, len(lines)))
		}
		b := &jobRunner{files: map[string]string{"in": text(large), "small": text(small), "more": text(more)},
			splitLines: rapid.IntRange(1, 4).Draw(t, "lines of a split")}
		out, err := b.run(broadcastLines(kind, "small", "more"))
		if err != nil {
			t.Fatal(err)
		}
		if got := mainText(out, "join"); got != want.String() {
			t.Errorf("got\n%swant\n%s", got, want.String())
		}
		if read := b.counters["mine"]; len(large) > 0 && read != int64(len(rows)) {
			t.Errorf("%d rows of the small side were read, want %d once", read, len(rows))
		}
	})
}

// TestBroadcastJoinChain: the result of a broadcast join is map output like any other: it is joined, merged and folded.
func TestBroadcastJoinChain(t *testing.T) {
	type right = *string
	names := Map(Lines("names"), keyed)
	prefixed := func(prefix string) func(*Task, string, *string, right, func(string, string)) error {
		return func(_ *Task, _ string, a *string, b right, emit func(string, string)) error {
			emit(*b, prefix+*a)
			return nil
		}
	}
	once := BroadcastJoin(Map(Lines(), keyed), names, InnerJoin, prefixed("1"))
	twice := BroadcastJoin(once, names, InnerJoin, prefixed("2"))
	snow := BroadcastJoin(Map(Lines(), keyed), BroadcastJoin(names, names, InnerJoin, func(_ *Task, key string, a, b *string, emit func(string, string)) error {
		emit(key, *a+*b)
		return nil
	}), InnerJoin, prefixed("s"))
	job := Fold(Merge(once, twice, snow), func(a, b string) string { return min(a, b) + "," + max(a, b) }).Job("chain")
	b := &jobRunner{files: map[string]string{"in": "a x\nb y\n", "names": "a b\nb c\n"}, splitLines: 1}
	out, err := b.run(job)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := mainText(out, "chain"), "b\t1x\nbb\tsx\nc\t1y,21x\ncc\tsy\n"; sorted(got) != sorted(want) {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// TestBroadcastJoinFrom: the small side is the result of another job of the flow, which runs first wherever it is listed.
func TestBroadcastJoinFrom(t *testing.T) {
	count := func(_ *Task, line string, emit func(string, int64)) error {
		emit(line[:1], 1)
		return nil
	}
	counts := Fold(Map(Lines("small"), count), Sum)
	records := Map(From(counts), func(_ *Task, c Pair[string, int64], emit func(string, int64)) error {
		emit(c.A, c.B)
		return nil
	})
	joined := MapOnly(BroadcastJoin(Map(Lines(), keyed), records, LeftJoin, func(_ *Task, key string, a *string, n *int64, emit func(string, int64)) error {
		if n == nil {
			n = new(int64)
		}
		emit(key+*a, *n)
		return nil
	}))
	flow := &Flow{Name: "f", Jobs: []*Job{joined.Job("joined"), counts.Job("counts")}}
	files := map[string]string{"in": "a x\nb y\nc z\na z\n", "small": "a\nb\na\n"}
	checkOutput(t, func() bridge.Compiler { return flow }, files, "joined", "ax\t2\nby\t1\ncz\t0\naz\t2\n")
}

func sorted(text string) string {
	return strings.Join(slices.Sorted(strings.Lines(text)), "")
}

func TestBroadcastJoinRefused(t *testing.T) {
	files := map[string]string{"in": "a x\n", "small": "a y\n"}
	lines := func() *Pairs[string, string] { return Map(Lines("small"), keyed) }
	none := func(*Task, string, *string, *string, func(string, string)) error { return nil }
	join := func(large, small *Pairs[string, string], kind JoinKind) *Job {
		return MapOnly(BroadcastJoin(large, small, kind, none)).Job("join")
	}
	for name, c := range map[string]struct {
		job  *Job
		want string
	}{
		"kind":     {join(Map(Lines(), keyed), lines(), FullJoin), "use JoinEach"},
		"no paths": {join(Map(Lines(), keyed), Map(Lines(), keyed), InnerJoin), "-input is for the large side"},
		"path":     {join(Map(Lines(), keyed), Map(Lines(""), keyed), InnerJoin), "is a flag missing?"},
		"combine":  {join(Map(Lines(), keyed), lines().Combine(concatenate), InnerJoin), "set Combine, Partition and TotalOrder on its result"},
		"order":    {join(Map(Lines(), keyed).TotalOrder(), lines(), InnerJoin), "set Combine, Partition and TotalOrder on its result"},
		"pairs":    {join(Map(Lines(), keyed), nil, InnerJoin), "BroadcastJoin was called without pairs"},
		"function": {MapOnly(BroadcastJoin[string, string, string, string, string](Map(Lines(), keyed), lines(), InnerJoin, nil)).Job("join"), "BroadcastJoin has no function"},
		"codec":    {join(Map(Lines(), keyed), lines().Codecs(&Codec[string]{Name: "s"}, nil), InnerJoin), "one Codec of the key"},
		"from":     {join(Map(Lines(), keyed), Map(From(Sort(lines())), func(*Task, Pair[string, string], func(string, string)) error { return nil }), InnerJoin), "reads the result of a job that is not in its flow"},
		"write": {join(Map(Lines(), keyed), Map(Lines("small"), func(t *Task, _ string, _ func(string, string)) error {
			Write(t, "other", "k", "v")
			return nil
		}), InnerJoin), "write in the join's function"},
		"fails": {join(Map(Lines(), keyed), Map(Lines("small"), func(*Task, string, func(string, string)) error {
			return fmt.Errorf("broken row")
		}), InnerJoin), "read the small side of a BroadcastJoin: broken row"},
	} {
		_, err := (&jobRunner{files: files}).run(c.job)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
	}
}

// concatenate is a combiner of text.
func concatenate(a, b string) string { return a + b }

// TestBroadcastJoinTooLarge: keys, values and the table itself count, and a side of exactly the limit passes.
func TestBroadcastJoinTooLarge(t *testing.T) {
	b := &jobRunner{files: map[string]string{"in": "a x\n", "small": "a y\na z\nb u\n"}}
	const need = 3*(24+8+1) + 2*(broadcastKeyCost+1) // rows with a slice, an index and a byte
	for limit, want := range map[int]string{need: "", need - 1: "use JoinEach or Join, or raise the property"} {
		b.properties = map[string]string{property.BroadcastMax: fmt.Sprint(limit)}
		_, err := b.run(broadcastLines(InnerJoin, "small"))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), property.BroadcastMax)) {
			t.Errorf("limit %d: error %v, want %q", limit, err, want)
		}
	}
}
