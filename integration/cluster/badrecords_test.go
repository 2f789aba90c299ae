package cluster_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/quernmr/quern/integration/processes"
	"github.com/quernmr/quern/integration/trial"
)

// Row 25. A job has lines and a word that kill each worker process, and a truncated file. The leader is
// killed when it has decided to skip a line. The job succeeds without them, and says so.
func TestBadRecords(t *testing.T) {
	// In a namespace the worker is process 1, which cannot kill itself.
	c := start(t, func(cfg *processes.Config) { cfg.TaskTrackerFlags = []string{"-isolation", "none"} })
	dir := c.dir + "/bad"
	good := strings.Repeat("a b a\nb c\n", 1000)
	lines := good + "x BADLINE y\n" + good + "BADLINE z\n" + good
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	w.Write([]byte(strings.Repeat("never counted\n", 1000)))
	w.Close()
	if err := errors.Join(os.MkdirAll(dir+"/in", 0o777), os.WriteFile(dir+"/in/lines", []byte(lines), 0o666),
		os.WriteFile(dir+"/in/word", []byte("d BADWORD d\n"), 0o666),
		os.WriteFile(dir+"/in/truncated.gz", zipped.Bytes()[:zipped.Len()-9], 0o666)); err != nil {
		t.Fatal(err)
	}
	run := c.mrsubmit("run", "-D", "mapreduce.input.fileinputformat.split.maxsize=7000", "-D", "mapreduce.job.reduces=2",
		"-D", "mapreduce.map.skip.maxrecords=1", "-D", "mapreduce.reduce.skip.maxgroups=1", "-D", "mapreduce.map.maxattempts=6",
		"-D", "mapreduce.map.failures.maxpercent=20", c.Program("bad"), "-how", "kill", "-input", dir+"/in", "-output", dir+"/out")
	run.Await("a skipped record", func() bool { return strings.Contains(run.Stderr.String(), " skips record ") })
	if err := c.leader().Kill(); err != nil {
		t.Fatal(err)
	}
	run.Succeed()
	if !trial.ContainsAll(run.Stderr.String(), []string{"Map skipped records=2\n", "Reduce skipped groups=1\n", "GIVEN_UP_MAPS=1\n", "given up, so their records are missing in the output: map "}) {
		t.Errorf("report:\n%s", run.Stderr.String())
	}
	var skipped []string
	for _, r := range trial.ReadSkipped(t, dir+"/out/_logs/skip") {
		skipped = append(skipped, r.Text)
	}
	if got, want := strings.Join(skipped, "; "), "x BADLINE y; BADLINE z; BADWORD\t1"; got != want {
		t.Errorf("skipped %q, want %q", got, want)
	}
	if err := os.RemoveAll(dir + "/out/_logs"); err != nil { // readOutput wants nothing else
		t.Fatal(err)
	}
	checkCounts(t, dir+"/out", []byte(strings.Repeat(good, 3)+"d d\n"))
}
