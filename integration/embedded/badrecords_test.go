package embedded_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/quernmr/quern/integration/trial"
	"github.com/quernmr/quern/runtime"
)

// badLines has two bad lines, and goodLines the others.
var (
	badLines  = strings.Repeat("a b a\n", 500) + "c BADLINE c\n" + strings.Repeat("b c\n", 500) + "BADLINE d\n" + strings.Repeat("e\n", 500)
	goodLines = strings.ReplaceAll(strings.ReplaceAll(badLines, "c BADLINE c\n", ""), "BADLINE d\n", "")
)

// TestSkippedLines: each line that ends every attempt is skipped, written aside and counted, however
// it ends them. The other lines are all counted.
func TestSkippedLines(t *testing.T) {
	for _, how := range []string{"error", "panic", "exit", "kill", "hang", "memory"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			in := write(t, dir+"/in", badLines)
			args := []string{"-input", in, "-output", dir + "/out", "-how", how, "-D", "mapreduce.map.skip.maxrecords=1", "-D", "mapreduce.map.maxattempts=5"}
			switch how {
			case "hang":
				args = append(args, "-D", "mapreduce.task.timeout=6000")
			case "memory":
				args = append(args, "-D", "mapreduce.map.memory.mb=200")
			}
			o := succeed(t, "bad", args...)
			checkSkippedLines(t, trial.ReadSkipped(t, dir+"/out/_logs/skip"), in)
			if err := os.RemoveAll(dir + "/out/_logs"); err != nil { // readParts wants nothing else
				t.Error(err)
			}
			checkEqual(t, "counts", readParts(t, dir+"/out"), countWords(goodLines))
			wants := []string{"Map skipped records=2", "Map input records=1500", "_m_000000 skips record 500 from now on", "_m_000000 skips record 1001 from now on"}
			if how == "error" || how == "panic" { // the process has told where it was
				wants = append(wants, fmt.Sprintf("an attempt ended there (file://%s, offset %d, line ", in, strings.Index(badLines, "c BADLINE")))
			}
			for _, want := range wants {
				if !strings.Contains(o.stderr, want) {
					t.Errorf("message lacks %q:\n%s", want, o.stderr)
				}
			}
			checkNoLeftovers(t)
		})
	}
}

func checkSkippedLines(t *testing.T, got []runtime.SkippedRecord, in string) {
	t.Helper()
	var text []string
	for _, r := range got {
		if r.Offset == nil || r.File != "file://"+in {
			t.Fatalf("skipped %+v", r)
		}
		text = append(text, fmt.Sprintf("%d at %d: %s", r.Number, *r.Offset, r.Text))
	}
	want := fmt.Sprintf("[500 at %d: c BADLINE c 1001 at %d: BADLINE d]", strings.Index(badLines, "c BADLINE"), strings.Index(badLines, "BADLINE d"))
	if fmt.Sprint(text) != want {
		t.Errorf("skipped %v, want %s", text, want)
	}
}

// TestSkippedGroups: the group of a word that ends every attempt of its reduce is skipped.
func TestSkippedGroups(t *testing.T) {
	for _, how := range []string{"error", "panic", "exit", "hang"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			in := write(t, dir+"/in", "a BADWORD b\nc BADWORD a\nd\n")
			o := succeed(t, "bad", "-input", in, "-output", dir+"/out", "-how", how, "-D", "mapreduce.reduce.skip.maxgroups=1",
				"-D", "mapreduce.task.timeout=6000", "-D", "mapreduce.job.skip.outdir="+dir+"/skipped")
			checkEqual(t, "counts", readParts(t, dir+"/out"), "a\t2\nb\t1\nc\t1\nd\t1\n")
			got := trial.ReadSkipped(t, dir+"/skipped")
			if fmt.Sprint(got) != "[{0  <nil> BADWORD\t1 [] 0 0} {0  <nil> BADWORD\t1 [] 0 0}]" {
				t.Errorf("skipped %+v", got)
			}
			for _, want := range []string{"Reduce skipped groups=1", "Reduce skipped records=2", "Reduce input groups=4", "Reduce input records=5", "_r_000000 skips group 0 from now on"} {
				if !strings.Contains(o.stderr, want) {
					t.Errorf("message lacks %q:\n%s", want, o.stderr)
				}
			}
			if _, err := os.Stat(dir + "/out/_logs"); err == nil {
				t.Error("the output has _logs")
			}
			checkNoLeftovers(t)
		})
	}
}

// TestSkippedWithoutProcesses: skipping works in the process of the run too, and in a job without
// reduces. The job keeps no skipped records if it asks for none.
func TestSkippedWithoutProcesses(t *testing.T) {
	for _, how := range []string{"error", "panic"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			in := write(t, dir+"/in", badLines)
			succeed(t, "bad", "-input", in, "-output", dir+"/out", "-how", how, "-map-only", "-D", "quern.task.inprocess=true",
				"-D", "mapreduce.map.skip.maxrecords=1", "-D", "mapreduce.map.maxattempts=5", "-D", "mapreduce.job.skip.outdir=none")
			checkEqual(t, "lines", readParts(t, dir+"/out"), goodLines)
			if files, err := os.ReadDir(dir + "/out"); err != nil || len(files) != 2 {
				t.Errorf("files %v, %v", files, err)
			}
		})
	}
}

// TestNotSkipped: without the property, or with too few attempts, a bad record fails its job.
func TestNotSkipped(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	in := write(t, dir+"/in", badLines)
	at := func(line string) string {
		at := strings.Index(badLines, line)
		return fmt.Sprintf("file://%s, offset %d, line %d: deliberate error", in, at, 1+strings.Count(badLines[:at], "\n"))
	}
	for _, c := range []struct{ wants, args []string }{
		{[]string{"failed 4 times, first ", at("c BADLINE")}, nil},
		{[]string{"failed 4 times, first ", at("c BADLINE")}, []string{"-D", "mapreduce.reduce.skip.maxgroups=1"}},
		{[]string{"failed 3 times (1 record skipped; raise mapreduce.map.maxattempts, which is 3), last ", ": " + at("BADLINE d")},
			[]string{"-D", "mapreduce.map.skip.maxrecords=1", "-D", "mapreduce.map.maxattempts=3"}},
	} {
		checkRefused(t, 1, dir+"/out", c.wants, "bad", append([]string{"-input", in, "-output", dir + "/out"}, c.args...)...)
	}
	checkRefused(t, 2, dir+"/out", []string{"mapreduce.map.maxattempts=4", "mapreduce.task.skip.start.attempts=4"}, "bad",
		"-input", in, "-output", dir+"/out", "-D", "mapreduce.map.skip.maxrecords=1", "-D", "mapreduce.task.skip.start.attempts=4")
	checkRefused(t, 1, dir+"/out", []string{`mapreduce.job.skip.outdir="skipped": want a URL, an absolute path, or none`}, "bad",
		"-input", in, "-output", dir+"/out", "-D", "mapreduce.job.skip.outdir=skipped")
}
