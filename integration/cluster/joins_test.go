package cluster_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quernmr/quern/dfs/local"
	"github.com/quernmr/quern/integration/processes"
	"github.com/quernmr/quern/integration/trial"
)

// hotSides writes the sides of a join. Half of the lines of the large one have one key, and each side has keys of its own.
func (c *cluster) hotSides(lines int) (small, large string) {
	var a, b strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&a, "k%d name%d\n", i*2, i)
	}
	for i := range lines {
		key := 42
		if i%2 == 0 {
			key = i % 3000
		}
		fmt.Fprintf(&b, "k%d %030d\n", key, i)
	}
	return c.file("small", a.String()), c.file("large", b.String())
}

// TestJoinTrackerKilled: a join with a large key has the rows of an embedded run, although a task tracker is killed with
// map outputs that are needed.
func TestJoinTrackerKilled(t *testing.T) {
	c := start(t, shortLease)
	small, large := c.hotSides(250_000)
	out, alone := filepath.Join(c.dir, "out"), filepath.Join(c.dir, "alone")
	args := []string{"-at", "shared", "-side", small, "-input", large, "-D", "mapreduce.job.reduces=4", "-D", "mapreduce.input.fileinputformat.split.maxsize=2000000"}
	trial.Begin(t, exec.CommandContext(c.ctx, c.Program("faulty"), append(args, "-output", alone, "-D", "quern.embedded.dir="+t.TempDir())...)).Succeed()
	run := c.mrsubmit(append([]string{"run", c.Program("faulty"), "-output", out}, args...)...)
	c.awaitMapsDone(2)
	for _, d := range c.TaskTrackers[:2] {
		if err := d.Kill(); err != nil {
			t.Fatal(err)
		}
	}
	run.Succeed()
	got := trial.ReadParts(t, local.FS{}, out)
	trial.CheckEqual(t, out, trial.SortLines(trial.JoinParts(got)), trial.SortLines(readOutput(t, alone)))
	largest, all := 0, 0
	for _, part := range got {
		largest, all = max(largest, len(part)), all+len(part)
	}
	if len(got) != 4 || largest > all/3 {
		t.Errorf("the largest of %d parts has %d of %d bytes", len(got), largest, all)
	}
}

// TestBroadcastWorkerKilled: when the worker of a BroadcastJoin is killed, the next worker reads the small side again, and
// joins all.
func TestBroadcastWorkerKilled(t *testing.T) {
	c := start(t, small)
	side, in, out := c.file("side", "a 1\nb 2\na 3\n"), c.file("in", "b x\na y\nc z\n"), filepath.Join(c.dir, "out")
	run := c.mrsubmit("run", c.Program("faulty"), "-at", "broadcast", "-do", "hang", "-times", "1", "-side", side, "-input", in, "-output", out,
		"-D", "mapreduce.map.speculative=false")
	var tracker *processes.Daemon
	run.Await("an attempt that joins", func() bool {
		for _, d := range c.TaskTrackers {
			if files, _ := filepath.Glob(filepath.Join(d.Data(), "jobs/*/*/work/joining")); len(files) > 0 {
				tracker = d
				return true
			}
		}
		return false
	})
	c.killWorkers(tracker)
	run.Succeed()
	trial.CheckEqual(t, out, readOutput(t, out), []byte("b\tx 2\na\ty 1\na\ty 3\nc\tz -\n"))
	id, _, _ := strings.Cut(run.Stderr.String(), " ")
	if attempts := c.mrsubmit("attempts", id).Succeed(); !strings.Contains(attempts, "its worker ended before it did: signal: killed") {
		t.Errorf("no worker was killed:\n%s", attempts)
	}
}
