package compose_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/dfs/local"
	"github.com/quernmr/quern/integration/tpch/peers"
	"github.com/quernmr/quern/integration/trial"
)

// jobs runs word count, sort, grep and a query from the client's container. The output files
// must equal an embedded run's on this machine.
func jobs(c *cluster) {
	c.writeInput()
	for name, rows := range peers.Small(30) {
		c.put("hdfs:///test/tpch/"+name+".tbl", []byte(rows))
	}
	for _, j := range []struct {
		program string
		args    []string
		sub     string
	}{
		{"wordcount", []string{"-input", inputDir}, ""},
		{"sort", []string{"-input", inputDir}, ""},
		{"grep", []string{"-input", inputDir, "-e", "1f[0-9]-[a-z]*"}, ""},
		{"tpch", []string{"-query", "3", "-tables", "hdfs:///test/tpch"}, "answer"},
	} {
		c.compareEmbedded(j.program, j.sub, j.args...)
	}
}

// inputDir has several blocks of text in HDFS.
const inputDir = "hdfs:///test/books"

// writeInput writes inputDir, unless it exists.
func (c *cluster) writeInput() {
	c.t.Helper()
	if _, err := c.files.Stat(inputDir); err == nil {
		return
	}
	for i := range 3 {
		c.put(fmt.Sprintf("%s/%d", inputDir, i), trial.Words(uint64(i), 6<<20))
	}
}

func (c *cluster) put(name string, content []byte) {
	c.t.Helper()
	err := c.files.MkdirAll(dfs.Dir(name))
	if err != nil {
		c.t.Fatal(err)
	}
	w, err := c.files.Create(name)
	if err == nil {
		_, err = w.Write(content)
		err = errors.Join(err, w.Close())
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

// compareEmbedded runs a program on the cluster and compares the output files with an embedded
// run's.
func (c *cluster) compareEmbedded(program, sub string, args ...string) {
	c.t.Helper()
	*c.jobCount++
	out := fmt.Sprintf("hdfs:///test/out%d", *c.jobCount)
	reduces := []string{"-D", "mapreduce.job.reduces=3"}
	c.client(slices.Concat([]string{"run"}, reduces, []string{"/jobs/" + program, "-output", out}, args)...).Succeed()
	got := trial.ReadParts(c.t, c.files, dfs.Join(out, sub))
	want := c.runEmbedded(program, sub, slices.Concat(reduces, args))
	if !slices.Equal(slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want))) {
		c.t.Fatalf("%s: files %q, embedded %q", program, slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
	}
	for name, content := range want {
		trial.CheckEqual(c.t, program+": "+name, got[name], content)
	}
}

// runEmbedded runs a program embedded on the same input, once for all parts of the test.
func (c *cluster) runEmbedded(program, sub string, args []string) map[string][]byte {
	c.t.Helper()
	dir := filepath.Join(c.dir, "alone")
	jobs := filepath.Join(dir, "jobs")
	if _, err := os.Stat(jobs); err != nil {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			c.t.Fatal(err)
		}
		c.docker("cp", c.container("client")+":/jobs", dir)
	}
	out := filepath.Join(dir, fmt.Sprintf("%x", strings.Join(append(args, program), " ")))
	if _, err := os.Stat(out); err != nil {
		cmd := exec.CommandContext(c.ctx, filepath.Join(jobs, program), append(args, "-output", out)...)
		cmd.Env = append(os.Environ(), "HADOOP_CONF_DIR="+c.conf(), "HADOOP_USER_NAME=quern", "TMPDIR="+c.dir)
		if printed, err := cmd.CombinedOutput(); err != nil {
			c.t.Fatalf("%s embedded: %v\n%s", program, err, printed)
		}
	}
	parts := trial.ReadParts(c.t, local.FS{}, filepath.Join(out, sub))
	if len(parts) == 0 {
		c.t.Fatalf("%s embedded has written nothing", program)
	}
	return parts
}

// client starts a command of mrsubmit in the client's container.
func (c *cluster) client(args ...string) *trial.Run {
	c.t.Helper()
	line := append([]string{"exec", c.container("client"), "mrsubmit"}, args...)
	return trial.Begin(c.t, exec.CommandContext(c.ctx, "docker", line...))
}

// job is a run of the program paced.
type job struct {
	*trial.Job
	c    *cluster
	text []byte // of the input
}

// paced submits a word count over a number of splits. With -gate in flags, its maps wait until
// the test calls OpenGate.
func (c *cluster) paced(splits int, flags ...string) *job {
	c.t.Helper()
	*c.jobCount++
	name := fmt.Sprintf("job%d", *c.jobCount)
	traces, in, out := filepath.Join(c.traces(), name), "hdfs:///test/"+name+"/in", "hdfs:///test/"+name+"/out"
	j := &job{c: c, text: trial.Lines(splits)}
	if err := errors.Join(os.Mkdir(traces, 0o777), os.Chmod(traces, 0o777)); err != nil {
		c.t.Fatal(err)
	}
	c.put(in, j.text)
	run := c.client(slices.Concat([]string{"run"}, trial.LinePerSplit(), []string{"/jobs/paced"}, trial.Flags(in, out, "/traces/"+name, flags...))...)
	j.Job = trial.NewJob(run, out, traces)
	return j
}

// checkSuccess waits for the job's success and compares its output.
func (j *job) checkSuccess() {
	j.c.t.Helper()
	j.Succeed()
	j.checkOutput()
}

// checkOutput compares the job's output with the right one.
func (j *job) checkOutput() {
	j.c.t.Helper()
	trial.CheckEqual(j.c.t, j.Out, trial.JoinParts(trial.ReadParts(j.c.t, j.c.files, j.Out)), trial.CountWords(j.text))
}
