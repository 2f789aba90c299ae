package cluster_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/quernmr/quern/integration/processes"
)

// TestMixedCodecs: a task tracker with a slow network packs its map outputs. The other one, which knows nothing of its
// network, does not. Reduces read both, counters count both, and the attempts' logs have the reasons.
func TestMixedCodecs(t *testing.T) {
	c := start(t, func(cfg *processes.Config) {
		cfg.JobTrackers, cfg.TaskTrackers = 1, 1
	})
	slow, err := c.AddTaskTracker("slow", "-shuffle-rate", "262144")
	if err := errors.Join(err, slow.Start(), slow.Ready(c.ctx)); err != nil {
		t.Fatal(err)
	}
	c.awaitTrackers(2)
	var lines []string
	for i := range 40_000 {
		lines = append(lines, fmt.Sprintf("line %06d, and the same words in each", i))
	}
	want := strings.Join(lines, "\n") + "\n"
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(lines), func(i, k int) { lines[i], lines[k] = lines[k], lines[i] })
	in, out := filepath.Join(c.dir, "in"), filepath.Join(c.dir, "out")
	if err := os.WriteFile(in, []byte(strings.Join(lines, "\n")+"\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	run := c.mrsubmit("run", "-D", "mapreduce.map.output.compress=auto", "-D", "mapreduce.job.reduces=2", "-D", "mapreduce.map.speculative=false",
		"-D", fmt.Sprint("mapreduce.input.fileinputformat.split.maxsize=", len(want)/12+1), c.Program("sort"), "-input", in, "-output", out)
	run.Succeed()
	if got := string(readOutput(t, out)); got != want {
		t.Errorf("the output has %d bytes, want %d sorted ones", len(got), len(want))
	}
	if !regexp.MustCompile(`MAP_OUTPUTS_PLAIN=[1-9]`).MatchString(run.Stderr.String()) ||
		!regexp.MustCompile(`MAP_OUTPUTS_(LZ4|ZSTD)=[1-9]`).MatchString(run.Stderr.String()) {
		t.Errorf("the counters have no mix of codecs:\n%s", run.Stderr.String())
	}
	var reasons []string
	for _, d := range c.TaskTrackers {
		files, err := filepath.Glob(filepath.Join(d.Data(), "logs", "*", "*", "stderr"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			reasons = append(reasons, string(text))
		}
	}
	for _, want := range []string{"codec of map output: none, because no fetch", "% of the bytes"} {
		if !slices.ContainsFunc(reasons, func(text string) bool { return strings.Contains(text, want) }) {
			t.Errorf("no log has %q:\n%q", want, reasons)
		}
	}
}
