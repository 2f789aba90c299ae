package cluster_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// file makes a file in the cluster's directory.
func (c *cluster) file(name, content string) string {
	name = filepath.Join(c.dir, name)
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		c.t.Fatal(err)
	}
	return name
}

// TestStreaming: commands are mappers and reducers on a cluster too, with their side files, environment and counters.
func TestStreaming(t *testing.T) {
	c := start(t, small)
	in := c.file("in", strings.Repeat("b a c\na b\n", 1000))
	files := strings.Join([]string{
		c.file("map.sh", "echo reporter:counter:Test,Mappers,1 >&2\ntr ' ' '\\n' | sed \"s/$/\t$mapreduce_job_name/\"\n"),
		c.file("reduce.sh", "cat words.txt\nuniq -c | sed 's/^ *//'\n"),
		c.file("words", "begin\n") + "#words.txt",
	}, ",")
	out := filepath.Join(c.dir, "out")
	run := c.mrsubmit("streaming", "-D", "mapreduce.job.name=counting", "-files", files, "-input", in, "-output", out,
		"-mapper", "sh map.sh", "-reducer", "sh reduce.sh")
	run.Succeed()
	printed := run.Stderr.String()
	got, err := os.ReadFile(filepath.Join(out, "part-00000"))
	if want := "begin\t\n2000 a\tcounting\n2000 b\tcounting\n1000 c\tcounting\n"; err != nil || string(got) != want {
		t.Errorf("%q, %v; want %q\n%s", got, err, want, printed)
	}
	if !strings.Contains(printed, "Mappers=1") {
		t.Errorf("no counter of the mapper in:\n%s", printed)
	}

	failing := c.file("fail.sh", "cat > /dev/null\necho out of order >&2\nexit 3\n")
	other := filepath.Join(c.dir, "other")
	c.mrsubmit("streaming", "-D", "mapreduce.map.maxattempts=2", "-files", failing, "-input", in, "-output", other,
		"-mapper", "sh fail.sh", "-reducer", "cat").Fail(1, `the mapper "sh fail.sh" subprocess failed with code 3`, "out of order")
	c.mrsubmit("streaming", "-input", in, "-output", out, "-mapper", "cat", "-reducer", "cat").Fail(5, out)
	c.mrsubmit("streaming", "-input", filepath.Join(c.dir, "missing"), "-output", other, "-mapper", "cat", "-reducer", "cat").Fail(5, "missing")
}
