// Package recorded compares jobs in tests with those of Hadoop's local runner. Make compat records these in
// testdata/jobs.txt of the format's package: for each job a line "job NAME PROPERTY=VALUE...", then its part files.
package recorded

import (
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/quernmr/quern/mapreduce"
	"github.com/quernmr/quern/mapreduce/mrtest"
)

// Words counts the words of texts.
func Words[R any](in mapreduce.Input[R], text func(R) string) *mapreduce.Result[string, int64] {
	words := mapreduce.Map(in, func(_ *mapreduce.Task, record R, emit func(string, int64)) error {
		for word := range strings.FieldsSeq(text(record)) {
			emit(word, 1)
		}
		return nil
	})
	return mapreduce.Reduce(words.Combine(mapreduce.Sum), func(_ *mapreduce.Task, word string, counts iter.Seq[int64], emit func(string, int64)) error {
		var sum int64
		for n := range counts {
			sum += n
		}
		emit(word, sum)
		return nil
	})
}

// Compare runs the recorded jobs over a file of testdata. The function text returns a part file as it is recorded.
func Compare(t *testing.T, input string, jobs map[string]func() *mapreduce.Job, text func(t *testing.T, name, file string) string) {
	t.Helper()
	recorded, err := os.ReadFile("testdata/jobs.txt")
	if err != nil {
		t.Fatal(err)
	}
	in, err := os.ReadFile(filepath.Join("testdata", input))
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]int)
	for _, job := range strings.Split(string(recorded), "\njob ")[1:] {
		head, want, _ := strings.Cut(job, "\n")
		words := strings.Fields(head)
		seen[words[0]]++
		j := jobs[words[0]]()
		j.Properties = make(map[string]string)
		for _, p := range words[1:] {
			name, value, _ := strings.Cut(p, "=")
			j.Properties[name] = value
		}
		files := mrtest.RunFiles(t, j, map[string]string{input: string(in)}).Files
		got := ""
		for _, name := range slices.Sorted(maps.Keys(files)) {
			got += text(t, name, files[name])
		}
		if strings.TrimSpace(got) != strings.TrimSpace(want) {
			t.Errorf("%s:\n%s\nwant, as Hadoop has written,\n%s", head, got, want)
		}
	}
	for name := range jobs {
		if seen[name] != 3 {
			t.Errorf("%d jobs %s are recorded, want 3", seen[name], name)
		}
	}
}
