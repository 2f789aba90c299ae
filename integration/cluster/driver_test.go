package cluster_test

import (
	"context"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/quernmr/quern/dfs/local"
	"github.com/quernmr/quern/integration/processes"
	"github.com/quernmr/quern/integration/trial"
)

// small is a cluster of one job tracker and two task trackers.
func small(cfg *processes.Config) { cfg.JobTrackers, cfg.TaskTrackers = 1, 2 }

// TestDrivers: programs that drive jobs have the same results on a cluster as embedded.
func TestDrivers(t *testing.T) {
	c := start(t, small)
	in := filepath.Join(c.dir, "links")
	if err := os.WriteFile(in, []byte("a\tb c\nb\tc\nc\ta\nd\tc e\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.checkDriver("pagerank", "-input", in)
}

// checkDriver runs an example on the cluster and embedded, and compares numbers in the lines of -output.
func (c *cluster) checkDriver(example string, args ...string) {
	c.t.Helper()
	out, alone := filepath.Join(c.dir, example+"-out"), filepath.Join(c.dir, example+"-alone")
	printed := c.mrsubmit(append([]string{"run", c.Program(example), "-output", out}, args...)...)
	printed.Succeed()
	run := trial.Begin(c.t, exec.CommandContext(context.WithoutCancel(c.ctx), c.Program(example), append([]string{"-output", alone, "-D", "quern.embedded.dir=" + c.t.TempDir()}, args...)...))
	run.Succeed()
	got, want := c.numbers(out), c.numbers(alone)
	if len(got) == 0 || len(got) != len(want) {
		c.t.Fatalf("%s: %d lines on the cluster, %d embedded", example, len(got), len(want))
	}
	for key, number := range want {
		if math.Abs(got[key]-number) > 1e-6*math.Max(1, math.Abs(number)) {
			c.t.Errorf("%s: %s is %v on the cluster, %v embedded", example, key, got[key], number)
		}
	}
}

// numbers returns the last number of each line of an output, by the text before it.
func (c *cluster) numbers(out string) map[string]float64 {
	c.t.Helper()
	numbers := make(map[string]float64)
	for line := range strings.Lines(string(trial.JoinParts(trial.ReadParts(c.t, local.New(), "file://"+out)))) {
		line = strings.TrimSpace(line)
		i := strings.LastIndexAny(line, "\t ")
		number, err := strconv.ParseFloat(line[i+1:], 64)
		if err != nil {
			c.t.Fatalf("line %q of %s: %v", line, out, err)
		}
		numbers[line[:max(i, 0)]] = number
	}
	return numbers
}
