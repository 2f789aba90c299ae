package mapreduce_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/quernmr/quern/mapreduce"
	"github.com/quernmr/quern/mapreduce/mrtest"
	"github.com/quernmr/quern/wire"
)

// numbered writes the records of an input with the numbers of their lines.
func numbered[R any](in mapreduce.Input[R]) *mapreduce.Job {
	return mapreduce.MapOnly(mapreduce.Map(in, func(t *mapreduce.Task, rec R, emit func(int64, string)) error {
		line, err := t.Line()
		emit(line, fmt.Sprint(rec))
		return err
	})).Job("numbered")
}

// TestPredicates: a predicate tests the lines of each input of lines, as they are in the file, and all lines are input records.
func TestPredicates(t *testing.T) {
	text := "error 12\tx\nwarning\tx\r\n\nerror\ty\n{\"a\":\"error 7\"}\n"
	number, kelvin := regexp.MustCompile(`error \d+`), regexp.MustCompile(`(?i)WARN.*x$`)
	sample := mapreduce.Sample(mapreduce.Lines(), 1, 1)
	for name, c := range map[string]struct {
		job  *mapreduce.Job
		want string
	}{
		"Containing":       {numbered(mapreduce.Lines().Containing("error")), "1\terror 12\tx\n4\terror\ty\n5\t{\"a\":\"error 7\"}\n"},
		"both":             {numbered(mapreduce.Lines().Containing("x").Matching(number)), "1\terror 12\tx\n"},
		"Matching":         {numbered(mapreduce.Lines().Matching(kelvin)), "2\twarning\tx\n"},
		"no literal":       {numbered(mapreduce.Lines().Matching(regexp.MustCompile("^$"))), "3\t\n"},
		"NLines":           {numbered(mapreduce.NLines().Matching(number)), "1\terror 12\tx\n5\t{\"a\":\"error 7\"}\n"},
		"KeyValues":        {numbered(mapreduce.KeyValues().Containing("r\ty")), "4\t{error y}\n"},
		"JSONLines":        {numbered(mapreduce.JSONLines[map[string]string]().Containing(`"error`)), "5\tmap[a:error 7]\n"},
		"around Sample":    {numbered(sample.Matching(number)), "1\terror 12\tx\n5\t{\"a\":\"error 7\"}\n"},
		"nothing required": {numbered(mapreduce.Lines().Containing("")), "1\terror 12\tx\n2\twarning\tx\n3\t\n4\terror\ty\n5\t{\"a\":\"error 7\"}\n"},
	} {
		out := mrtest.RunFiles(t, c.job, map[string]string{"in": text})
		if got := out.Text(); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
		if n := out.Counters[wire.TaskCounters][wire.MapInputRecords]; n != int64(strings.Count(text, "\n")) {
			t.Errorf("%s: %d input records, want one for each line", name, n)
		}
	}
}

// TestPredicatesSkip: a job that skips bad records counts only lines that pass.
func TestPredicatesSkip(t *testing.T) {
	lines := mapreduce.Lines().Containing("e")
	job := mapreduce.MapOnly(mapreduce.Map(lines, func(_ *mapreduce.Task, line string, emit func(string, struct{})) error {
		if line == "bade" {
			panic(line)
		}
		emit(line, struct{}{})
		return nil
	})).Job("skipping")
	job.Properties = map[string]string{"mapreduce.map.skip.maxrecords": "1", "mapreduce.job.skip.outdir": "none"}
	out := mrtest.RunFiles(t, job, map[string]string{"in": "x\none\nx\nbade\nx\nthree\n"})
	if got := out.Text(); got != "one\nthree\n" {
		t.Errorf("got %q", got)
	}
}

func TestPredicatesRefused(t *testing.T) {
	csv := mapreduce.CSV[sale](mapreduce.CSVFormat{}).Containing("x")
	wantFailure(t, numbered(csv), nil, "input format csv: Containing is for Lines, NLines, KeyValues and JSONLines")
	wantFailure(t, numbered(mapreduce.Lines().Matching(nil)), nil, "Matching was called without an expression")
	wantFailure(t, numbered(mapreduce.Input[string]{}.Matching(nil).Containing("x")), nil, "zero Input")
}
