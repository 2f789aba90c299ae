package mapreduce_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/quernmr/quern/mapreduce"
	"github.com/quernmr/quern/mapreduce/mrtest"
)

// scores has 200 lines "team score", with ties.
func scores() (text string, byTeam map[string][]int64) {
	byTeam = make(map[string][]int64)
	for i := range 200 {
		team, score := fmt.Sprint("t", i%7), int64(i*37%100)
		text += fmt.Sprintln(team, score)
		byTeam[team] = append(byTeam[team], score)
	}
	return text, byTeam
}

// TestTop compares Top with sorting, for each key and for one key, with values that need
// memory of their own. mrtest runs it with other splits, without the combiner, and overwrites
// the values.
func TestTop(t *testing.T) {
	text, byTeam := scores()
	lines := func(key func(team string) string) *mapreduce.Pairs[string, []byte] {
		return mapreduce.Map(mapreduce.Lines(), func(_ *mapreduce.Task, line string, emit func(string, []byte)) error {
			team, score, _ := strings.Cut(line, " ")
			emit(key(team), fmt.Appendf(nil, "%03s", score))
			return nil
		})
	}
	compare := func(a, b []byte) int { return cmp.Compare(string(a), string(b)) }
	for name, c := range map[string]struct {
		key func(string) string
		n   int
	}{"keys": {strings.Clone, 3}, "all": {func(string) string { return "x" }, 10}, "more than there are": {strings.Clone, 1000}} {
		want := make(map[string][]int64)
		for team, all := range byTeam {
			want[c.key(team)] = append(want[c.key(team)], all...)
		}
		var sorted strings.Builder
		for _, key := range slices.Sorted(maps.Keys(want)) {
			slices.SortFunc(want[key], func(a, b int64) int { return cmp.Compare(b, a) })
			for _, score := range want[key][:min(c.n, len(want[key]))] {
				fmt.Fprintf(&sorted, "%s\t%03d\n", key, score)
			}
		}
		if got := mrtest.Run(t, mapreduce.Top(lines(c.key), c.n, compare).Job("top"), text); got != sorted.String() {
			t.Errorf("%s: got\n%swant\n%s", name, got, sorted.String())
		}
	}
}

// TestTopTies: of values that compare as equal the same ones are kept, whatever the splits.
func TestTopTies(t *testing.T) {
	words := mapreduce.Map(mapreduce.Lines(), func(_ *mapreduce.Task, line string, emit func(struct{}, string)) error {
		emit(struct{}{}, line)
		return nil
	})
	byLength := func(a, b string) int { return cmp.Compare(len(a), len(b)) }
	if got := mrtest.Run(t, mapreduce.Top(words, 2, byLength).Job("top"), "cc\naa\nb\nbb\n"); got != "cc\nbb\n" {
		t.Errorf("got %q", got)
	}
}

// sampled returns the lines that a job writes.
func sampled(t *testing.T, job *mapreduce.Job, files map[string]string) []string {
	t.Helper()
	all := strings.Fields(mrtest.RunFiles(t, job, files).Text())
	slices.Sort(all)
	return all
}

func numbers(from, to int) string {
	var b strings.Builder
	for i := from; i < to; i++ {
		fmt.Fprintln(&b, i)
	}
	return b.String()
}

// TestSample: a sample has about the wanted size, is the same for every splits (mrtest cuts
// the files in other ways), and differs with the seed.
func TestSample(t *testing.T) {
	files := map[string]string{"a": numbers(0, 100), "b": numbers(100, 200)}
	draw := func(fraction float64, seed uint64) []string {
		all := mapreduce.Map(mapreduce.Sample(mapreduce.Lines(), fraction, seed), func(_ *mapreduce.Task, line string, emit func(string, struct{})) error {
			emit(line, struct{}{})
			return nil
		})
		return sampled(t, mapreduce.Sort(all).Job("sample"), files)
	}
	tenth, other := draw(0.1, 1), draw(0.1, 2)
	if len(tenth) < 5 || len(tenth) > 40 || slices.Equal(tenth, other) {
		t.Errorf("%d and %d of 200 records", len(tenth), len(other))
	}
	if n := len(draw(0, 1)); n > 0 {
		t.Errorf("%d records for 0", n)
	}
	if n := len(draw(1, 1)); n != 200 {
		t.Errorf("%d records for 1", n)
	}
}

// TestReservoir: n records are drawn, each once, and the same for every splits. All parts of
// the input are drawn from.
func TestReservoir(t *testing.T) {
	files := map[string]string{"a": numbers(0, 100), "b": numbers(100, 200)}
	draw := func(n int, seed uint64) []string {
		return sampled(t, mapreduce.Reservoir(mapreduce.Lines(), n, seed).Job("sample"), files)
	}
	some, other := draw(40, 1), draw(40, 2)
	if len(slices.Compact(slices.Clone(some))) != 40 || slices.Equal(some, other) {
		t.Errorf("%d records: %v", len(some), some)
	}
	early := 0
	for _, s := range some {
		if len(s) < 3 {
			early++
		}
	}
	if early < 8 || early > 32 {
		t.Errorf("%d of 40 records are from the first half", early)
	}
	if all := draw(500, 1); len(slices.Compact(all)) != 200 {
		t.Errorf("%d records of all 200", len(all))
	}
}
