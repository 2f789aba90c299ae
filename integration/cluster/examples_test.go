package cluster_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quernmr/quern/integration/examples"
)

// TestExamples: on a cluster too, generated rows, sorted ones, their reports and the estimate of pi are those of Hadoop.
func TestExamples(t *testing.T) {
	c := start(t, small)
	run := func(record, program string, args ...string) (out string) {
		out = filepath.Join(c.dir, record)
		c.mrsubmit(append([]string{"run", c.Program(program), "-output", out}, args...)...).Succeed()
		return out
	}
	files := func(dir string) map[string]string {
		files := make(map[string]string)
		names, err := filepath.Glob(dir + "/part-*")
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			content, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			files[filepath.Base(name)] = string(content)
		}
		return files
	}
	rows := run("teragen", "tera", "-do", "gen", "-maps", "3", "-rows", "200")
	parts := files(rows)
	examples.Check(t, "teragen", map[string]string{"part-m-00000": parts["part-m-00000"] + parts["part-m-00001"] + parts["part-m-00002"]})
	sorted := run("simple-2", "tera", "-do", "sort", "-simple", "-input", rows, "-D", "mapreduce.job.reduces=2")
	examples.Check(t, "simple-2", files(sorted))
	report := run("validate-sorted", "tera", "-do", "validate", "-input", sorted)
	examples.Check(t, "validate-sorted", map[string]string{"sorted": examples.Sorted(files(report))})
	estimate := run("pi-3-1000", "pi", "-maps", "3", "-samples", "1000")
	examples.Check(t, "pi-3-1000", map[string]string{"printed": files(estimate)["part-r-00000"]})

	short := filepath.Join(c.dir, "short")
	if err := os.WriteFile(short, []byte(strings.Repeat("r", 250)), 0o600); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(c.dir, "short-report")
	c.mrsubmit("run", c.Program("tera"), "-do", "validate", "-input", short, "-output", out).Fail(1, "short: ", "the last row has 50 bytes, not 100")
	c.mrsubmit("run", c.Program("tera"), "-do", "gen", "-rows", "-5", "-output", out).Fail(1, "-rows -5: want a number of 0 or more")
	c.mrsubmit("run", c.Program("tera"), "-do", "sort", "-input", filepath.Join(c.dir, "missing"), "-output", out).Fail(1, "missing")
}
