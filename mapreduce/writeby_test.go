package mapreduce_test

import (
	"errors"
	"fmt"
	"iter"
	"path"
	"strings"
	"testing"

	"github.com/quernmr/quern/mapreduce"
	"github.com/quernmr/quern/mapreduce/mrtest"
)

// byDay writes each line "day text" to a file of its day, and emits the line.
func byDay(t *mapreduce.Task, line string) {
	day, text, _ := strings.Cut(line, " ")
	mapreduce.WriteBy(t, "days", day, text, struct{}{})
}

// TestWriteBy: maps and reduces write files that their records name. With more names than
// files may be open, each record is still in a file of its name.
func TestWriteBy(t *testing.T) {
	var text strings.Builder
	const names = 100
	for i := range 2 * names {
		fmt.Fprintf(&text, "2026-%03d line%d\n", i%names, i)
	}
	maps := mapreduce.MapOnly(mapreduce.Map(mapreduce.Lines(), func(t *mapreduce.Task, line string, emit func(string, struct{})) error {
		byDay(t, line)
		emit(line[9:], struct{}{})
		return nil
	})).Job("maps")
	reduces := mapreduce.Reduce(mapreduce.Map(mapreduce.Lines(), func(_ *mapreduce.Task, line string, emit func(string, string)) error {
		emit(line[9:], line) // in another order than that of the days
		return nil
	}), func(t *mapreduce.Task, _ string, lines iter.Seq[string], emit func(string, struct{})) error {
		for line := range lines {
			byDay(t, line)
			emit(line[9:], struct{}{})
		}
		return nil
	}).Job("reduces")
	for _, job := range []*mapreduce.Job{maps, reduces} {
		job.Outputs = []string{"days"}
		out := mrtest.RunFiles(t, job, map[string]string{"in": text.String()})
		found, pieces := 0, 0
		for file, content := range out.Files {
			day, isDay := strings.CutPrefix(path.Base(file), "days-")
			if !isDay {
				continue
			}
			if strings.Contains(day, ".1-") {
				pieces++
			}
			for line := range strings.Lines(content) {
				var n int
				if _, err := fmt.Sscanf(line, "line%d\n", &n); err != nil || !strings.HasPrefix(day, fmt.Sprintf("2026-%03d", n%names)) {
					t.Errorf("%s: file %s has %q: %v", job.Name, file, line, err)
				}
				found++
			}
		}
		if found != 2*names || pieces == 0 {
			t.Errorf("%s: %d records in files of their days, %d files are the second of their day", job.Name, found, pieces)
		}
	}
}

// TestWriteByNames: names that cannot be in the name of a file, or are not declared, fail the job.
func TestWriteByNames(t *testing.T) {
	for name, want := range map[string]string{"a/b": `cannot be named "a/b"`, "": `cannot be named ""`, "..": `cannot be named ".."`,
		strings.Repeat("n", 101): "101 bytes, at most 100"} {
		job := mapreduce.MapOnly(mapreduce.Map(mapreduce.Lines(), func(t *mapreduce.Task, _ string, _ func(string, struct{})) error {
			mapreduce.WriteBy(t, "days", name, "x", "y")
			return nil
		})).Job("j")
		job.Outputs = []string{"days"}
		checkFails(t, job, want)
		job.Outputs = nil
		if name = "ok"; !t.Failed() {
			checkFails(t, job, `output "days" is not in Job.Outputs`)
		}
	}
}

func checkFails(t *testing.T, job *mapreduce.Job, want string) {
	t.Helper()
	defer func() {
		if text := fmt.Sprint(recover()); !strings.Contains(text, want) {
			t.Errorf("job ended with %s, want %q", text, want)
		}
	}()
	mrtest.Print(job, "a\n")
}

// TestMisuseIsLocated: errors about the use of outputs and sequences name the record or the key, as returned errors do.
func TestMisuseIsLocated(t *testing.T) {
	type pairs = mapreduce.Pairs[string, string]
	write := map[string]func(*mapreduce.Task){
		"cannot be named":       func(t *mapreduce.Task) { mapreduce.WriteBy(t, "days", "a/b", "x", "y") },
		"is not in Job.Outputs": func(t *mapreduce.Task) { mapreduce.Write(t, "none", "x", "y") },
	}
	maps := func(code func(*mapreduce.Task)) *pairs {
		return mapreduce.Map(mapreduce.Lines(), func(t *mapreduce.Task, line string, emit func(string, string)) error {
			if line == "b" && code != nil {
				code(t)
			}
			emit(line, line)
			return nil
		})
	}
	reduce := func(code func(*mapreduce.Task, iter.Seq[string])) *mapreduce.Job {
		return mapreduce.Reduce(maps(nil), func(t *mapreduce.Task, key string, vals iter.Seq[string], emit func(string, string)) error {
			if key == "b" {
				code(t, vals)
			}
			return nil
		}).Job("reduce")
	}
	check := func(job *mapreduce.Job, words ...string) {
		t.Helper()
		job.Outputs = []string{"days"}
		wantFailure(t, job, map[string]string{"in": "a\nb\n"}, words...)
	}
	for want, code := range write {
		check(mapreduce.MapOnly(maps(code)).Job("map"), "/in, offset 2, line 2: ", want)
		check(reduce(func(t *mapreduce.Task, _ iter.Seq[string]) { code(t) }), `key "b"`, want)
	}
	check(reduce(func(_ *mapreduce.Task, vals iter.Seq[string]) {
		for range 2 {
			for range vals {
			}
		}
	}), `key "b"`, "ranged over again after their end")
	check(mapreduce.MapOnly(mapreduce.MapSplit(mapreduce.Lines(), func(_ *mapreduce.Task, lines iter.Seq[string], _ func(string, string)) error {
		for range lines {
			break
		}
		for range lines {
		}
		return nil
	})).Job("twice"), "/in, offset 0, line 1: ", "ranged over a second time")
}

// TestWriteByAgain: what a failed attempt has written, in complete files and in open ones, is not in the output.
func TestWriteByAgain(t *testing.T) {
	const names = 100
	var text strings.Builder
	for i := range names {
		fmt.Fprintf(&text, "2026-%03d line%d\n", i, i)
	}
	job := mapreduce.MapOnly(mapreduce.MapSplit(mapreduce.Lines(), func(t *mapreduce.Task, lines iter.Seq[string], _ func(string, struct{})) error {
		for line := range lines {
			byDay(t, line)
			if t.Attempt == 0 {
				mapreduce.WriteBy(t, "days", "first-attempt", line, struct{}{})
			}
		}
		if t.Attempt == 0 {
			return errors.New("the first attempt fails")
		}
		return nil
	})).Job("again")
	job.Outputs = []string{"days"}
	job.Properties = map[string]string{"mapreduce.map.maxattempts": "2"}
	out := mrtest.RunFiles(t, job, map[string]string{"in": text.String()})
	for i := range names {
		name := fmt.Sprintf("days-2026-%03d-m-00000", i)
		if want := fmt.Sprintf("line%d\n", i); out.Files[name] != want {
			t.Errorf("file %s has %q, want %q", name, out.Files[name], want)
		}
	}
	if len(out.Files) != names+1 { // and part-m-00000
		t.Errorf("%d files, want %d", len(out.Files), names+1)
	}
}
