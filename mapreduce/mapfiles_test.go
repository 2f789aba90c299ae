package mapreduce_test

import (
	"fmt"
	"iter"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/quernmr/quern/mapreduce"
	"github.com/quernmr/quern/mapreduce/mrtest"
)

// linesByDay returns a job that writes each line "day text" to a file of its day in the map, and counts days.
func linesByDay(name string, write func(t *mapreduce.Task, line string)) *mapreduce.Job {
	days := mapreduce.Map(mapreduce.Lines(), func(t *mapreduce.Task, line string, emit func(string, int)) error {
		write(t, line)
		day, _, _ := strings.Cut(line, " ")
		emit(day, 1)
		return nil
	})
	job := mapreduce.Reduce(days, func(t *mapreduce.Task, day string, ones iter.Seq[int], emit func(string, int)) error {
		sum := 0
		for n := range ones {
			sum += n
		}
		mapreduce.WriteBy(t, "days", day, sum, struct{}{})
		emit(day, sum)
		return nil
	}).Job(name)
	job.Outputs = []string{"days"}
	return job
}

const twoDays = "2026-001 a\n2026-002 b\n2026-001 c\n"

// TestMapFiles: maps of a job with reduces write files that records name, beside those of reduces.
func TestMapFiles(t *testing.T) {
	want := map[string]string{"days-2026-001-m-00000": "a\nc\n", "days-2026-002-m-00000": "b\n",
		"days-2026-001-r-00000": "2\n", "days-2026-002-r-00000": "1\n", "part-r-00000": "2026-001\t2\n2026-002\t1\n"}
	for name, property := range map[string]string{"plain": "", "checked": "quern.check", "lazy": "quern.output.lazy"} {
		job := linesByDay(name, byDay)
		if property != "" {
			job.Properties = map[string]string{property: "true"}
		}
		out := mrtest.RunFiles(t, job, map[string]string{"in": twoDays})
		for file, content := range want {
			if out.Files[file] != content {
				t.Errorf("%s: file %s has %q, want %q", name, file, out.Files[file], content)
			}
		}
		if len(out.Files) != len(want) {
			t.Errorf("%s: files %v, want %d", name, out.Files, len(want))
		}
	}
}

// TestMapFilesOfSample: setup runs maps to sample keys for a total order; what they write is not kept.
func TestMapFilesOfSample(t *testing.T) {
	lines := mapreduce.Map(mapreduce.Lines(), func(t *mapreduce.Task, line string, emit func(string, string)) error {
		byDay(t, line)
		emit(line[9:], line)
		return nil
	})
	lines.TotalOrder()
	job := mapreduce.Sort(lines).Job("sorted")
	job.Outputs = []string{"days"}
	job.Properties = map[string]string{"mapreduce.job.reduces": "2"}
	out := mrtest.RunFiles(t, job, map[string]string{"in": twoDays})
	if got := out.Files["days-2026-001-m-00000"] + out.Files["days-2026-002-m-00000"]; got != "a\nc\nb\n" || len(out.Files) != 4 {
		t.Errorf("files %v", out.Files)
	}
}

// TestMapFilesChecked: a map that writes other files when it runs again is found before the job starts.
func TestMapFilesChecked(t *testing.T) {
	var runs atomic.Int64
	job := linesByDay("random", func(t *mapreduce.Task, line string) {
		mapreduce.WriteBy(t, "days", fmt.Sprint("all", runs.Add(1)), line, struct{}{})
	})
	job.Properties = map[string]string{"quern.check": "true"}
	checkFails(t, job, " in file days-all2-m-00000 instead of ")
}

// TestCombinerWrites: a combiner may run several times for a record, so it writes no files.
func TestCombinerWrites(t *testing.T) {
	job := mapreduce.Reduce(mapreduce.Map(mapreduce.Lines(), func(_ *mapreduce.Task, line string, emit func(string, int)) error {
		emit(line, 1)
		return nil
	}).CombineGroup(func(t *mapreduce.Task, key string, ones iter.Seq[int], emit func(int)) error {
		for range ones {
		}
		mapreduce.WriteBy(t, "days", strings.TrimSpace(key), 1, 2)
		emit(1)
		return nil
	}), func(_ *mapreduce.Task, key string, ones iter.Seq[int], emit func(string, int)) error {
		for range ones {
		}
		emit(key, 1)
		return nil
	}).Job("combiner")
	job.Outputs = []string{"days"}
	checkFails(t, job, fmt.Sprintf("output %q: a combiner cannot write to it", "days"))
}

// TestMapFilesGivenUp: of a map that is given up after it wrote files, none is in the output.
func TestMapFilesGivenUp(t *testing.T) {
	job := linesByDay("givenup", func(t *mapreduce.Task, line string) {
		byDay(t, line)
		if strings.Contains(line, "bad") {
			panic("a bad line")
		}
	})
	job.Properties = map[string]string{"mapreduce.map.failures.maxpercent": "50", "mapreduce.map.maxattempts": "2",
		"mapreduce.input.fileinputformat.split.maxsize": "11"}
	out := mrtest.RunFiles(t, job, map[string]string{"in/a": "2026-001 a\n", "in/b": "2026-002 bad\n"})
	for file := range out.Files {
		if strings.Contains(file, "-m-") && !strings.HasPrefix(file, "days-2026-001-m-") {
			t.Errorf("file %s of a map that was given up", file)
		}
	}
	if len(out.Files) != 3 {
		t.Errorf("files %v, want days of a map and a reduce, and part-r-00000", out.Files)
	}
}
