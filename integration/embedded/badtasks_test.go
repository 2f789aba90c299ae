package embedded_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quernmr/quern/integration/trial"
)

// TestGivenUp: a job with mapreduce.map.failures.maxpercent succeeds without a truncated file and a
// map that always fails, and says so. In worker processes and without.
func TestGivenUp(t *testing.T) {
	for _, inProcess := range []bool{false, true} {
		for _, mapOnly := range []bool{false, true} {
			t.Run(fmt.Sprintf("inprocess=%v maponly=%v", inProcess, mapOnly), func(t *testing.T) {
				dir := t.TempDir()
				good := "a b a\nb c d\n" // as long as a split
				for i := range 3 {
					write(t, fmt.Sprintf("%s/in/good%d", dir, i), good)
				}
				write(t, dir+"/in/bad", "x y\nBADLINE\n")
				var zipped bytes.Buffer
				w := gzip.NewWriter(&zipped)
				w.Write([]byte(text(10_000)))
				w.Close()
				write(t, dir+"/in/truncated.gz", zipped.String()[:zipped.Len()/2])
				o := succeed(t, "bad", "-input", dir+"/in", "-output", dir+"/out", "-map-only="+fmt.Sprint(mapOnly), "-D", "quern.task.inprocess="+fmt.Sprint(inProcess),
					"-D", "mapreduce.input.fileinputformat.split.maxsize=12", "-D", "mapreduce.map.failures.maxpercent=40", "-D", "mapreduce.map.maxattempts=2", "-D", "mapreduce.job.reduces=2")
				if mapOnly {
					checkEqual(t, "lines", readParts(t, dir+"/out"), strings.Repeat(good, 3))
				} else {
					checkEqual(t, "counts", sortedLines(readParts(t, dir+"/out")), countWords(strings.Repeat(good, 3)))
				}
				for _, want := range []string{"given up, so their records are missing in the output: maps 0, 4\n", "file is truncated", "deliberate error", "GIVEN_UP_MAPS=2", "2 tasks given up"} {
					if !strings.Contains(o.stderr, want) {
						t.Errorf("message lacks %q:\n%s", want, o.stderr)
					}
				}
				checkNoLeftovers(t)
			})
		}
	}
}

// TestGivenUpReduce: a reduce that was given up has no part file; the others have all of theirs.
func TestGivenUpReduce(t *testing.T) {
	dir := t.TempDir()
	in := write(t, dir+"/in", "a b c d e f g h i j BADWORD\n")
	args := []string{"-input", in, "-output", dir + "/out", "-D", "mapreduce.reduce.maxattempts=1", "-D", "mapreduce.job.reduces=2"}
	checkRefused(t, 1, dir+"/out", []string{"1 of 2 reduces have failed for good, and mapreduce.reduce.failures.maxpercent=49 allows 0"}, "bad",
		append(args, "-D", "mapreduce.reduce.failures.maxpercent=49")...)
	o := succeed(t, "bad", append(args, "-D", "mapred.max.reduce.failures.percent=50")...)
	parts, _ := filepath.Glob(dir + "/out/part-r-*")
	if len(parts) != 1 || !strings.Contains(o.stderr, "given up, so their records are missing in the output: reduce ") {
		t.Fatalf("part files %v\n%s", parts, o.stderr)
	}
	got := readParts(t, dir+"/out")
	if got == "" || strings.Contains(got, "BADWORD") || !trial.ContainsAll(countWords("a b c d e f g h i j\n"), strings.SplitAfter(got, "\n")) {
		t.Errorf("counts %q", got)
	}
	if _, err := os.Stat(dir + "/out/_SUCCESS"); err != nil {
		t.Error(err)
	}
}
