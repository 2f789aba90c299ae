package mapreduce_test

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/quernmr/quern/mapreduce"
	"github.com/quernmr/quern/mapreduce/mrtest"
)

// TestCheckWhole: quern.check compares all that a map of a large split emits, also if its output is more than the sort
// memory. The order of records does not matter.
func TestCheckWhole(t *testing.T) {
	lines := strings.Repeat("the same line many times\n", 90_000) + "the last line\n" + strings.Repeat("the same line many times\n", 20_000)
	long := strings.Repeat("x", 3<<20) + "\nthe last line\n"
	var runs atomic.Int64
	job := func(mapOnly, random bool) *mapreduce.Job {
		pairs := mapreduce.Map(mapreduce.Lines(), func(_ *mapreduce.Task, line string, emit func(string, int64)) error {
			if random && line == "the last line" {
				line += map[bool]string{true: " even", false: " odd"}[runs.Add(1)%2 == 0]
			}
			emit(line, 1)
			return nil
		})
		result := mapreduce.MapOnly(pairs)
		if !mapOnly {
			result = mapreduce.Fold(pairs, mapreduce.Sum)
		}
		job := result.Job("check")
		job.Properties = map[string]string{"quern.check": "true", "mapreduce.task.io.sort.mb": "1",
			"mapreduce.input.fileinputformat.split.minsize": "100000000"}
		return job
	}
	for _, input := range []string{lines, long} {
		for _, mapOnly := range []bool{true, false} {
			wantFailure(t, job(mapOnly, true), map[string]string{"in": input}, "from offset 0 emits something else when it is run a second time", "the last line even", "the last line odd")
		}
	}
	mrtest.Run(t, job(false, false), lines)
	mrtest.Run(t, job(true, false), long)
}

// TestNoRecords: jobs that sample their input run without any input.
func TestNoRecords(t *testing.T) {
	lines := func() *mapreduce.Pairs[string, string] {
		return mapreduce.Map(mapreduce.Lines(), func(_ *mapreduce.Task, line string, emit func(string, string)) error {
			emit(line, line)
			return nil
		})
	}
	ordered := lines()
	ordered.TotalOrder()
	joined := mapreduce.JoinEach(lines(), lines(), mapreduce.FullJoin, func(_ *mapreduce.Task, key string, _, _ *string, emit func(string, string)) error {
		emit(key, "")
		return nil
	})
	for name, job := range map[string]*mapreduce.Job{"sort": mapreduce.Sort(ordered).Job("sort"), "join": joined.Job("join")} {
		job.Reduces = 3
		if out := mrtest.RunFiles(t, job, map[string]string{"in": ""}); out.Text() != "" || len(out.Files) != 3 {
			t.Errorf("%s: %q", name, out.Files)
		}
	}
}
