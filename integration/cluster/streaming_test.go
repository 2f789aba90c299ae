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

	writing := c.file("write.sh", `d=${mapreduce_task_output_dir#file:}
cat
case $mapreduce_task_attempt_id in *000) echo left > "$d/failed"; exit 1;; esac # the first attempt
echo "$mapreduce_task_attempt_id" > "$d/side-$mapreduce_task_partition"
`)
	beside := filepath.Join(c.dir, "beside")
	c.mrsubmit("streaming", "-files", writing, "-input", in, "-output", beside, "-mapper", "cat", "-reducer", "sh write.sh", "-numReduceTasks", "2").Succeed()
	names, err := filepath.Glob(filepath.Join(beside, "[^_]*"))
	if got := strings.ReplaceAll(strings.Join(names, " "), beside+"/", ""); err != nil || got != "part-00000 part-00001 side-0 side-1" {
		t.Errorf("the output has %q, %v", got, err)
	}

	failing := c.file("fail.sh", "cat > /dev/null\necho out of order >&2\nexit 3\n")
	other := filepath.Join(c.dir, "other")
	c.mrsubmit("streaming", "-D", "mapreduce.map.maxattempts=2", "-files", failing, "-input", in, "-output", other,
		"-mapper", "sh fail.sh", "-reducer", "cat").Fail(1, `the mapper "sh fail.sh" subprocess failed with code 3`, "out of order")
	c.mrsubmit("streaming", "-input", in, "-output", out, "-mapper", "cat", "-reducer", "cat").Fail(5, out)
	c.mrsubmit("streaming", "-input", filepath.Join(c.dir, "missing"), "-output", other, "-mapper", "cat", "-reducer", "cat").Fail(5, "missing")
}
