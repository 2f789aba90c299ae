package cluster_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/quernmr/quern/integration/processes"
	"github.com/quernmr/quern/integration/trial"
	"github.com/quernmr/quern/wire"
)

// Row 39. No shell sees users' names. If a job's program, input, output and properties have names
// like shell commands, the job runs normally, and no such command runs.
func TestNamesLikeCommands(t *testing.T) {
	c := start(t, func(cfg *processes.Config) { cfg.JobTrackers, cfg.TaskTrackers = 1, 2 })
	const odd = "a;touch pwned;$(touch pwned)`touch pwned`|touch pwned&'\"\\ \nb"
	dir := filepath.Join(c.dir, odd)
	program := filepath.Join(dir, "job "+odd)
	content, err := os.ReadFile(c.Program("wordcount"))
	err = errors.Join(err, os.Mkdir(dir, 0o777), os.WriteFile(program, content, 0o777),
		os.WriteFile(filepath.Join(dir, "in"), trial.Lines(5), 0o666))
	if err != nil {
		t.Fatal(err)
	}
	for _, what := range []string{program, c.Program("wordcount")} {
		out := filepath.Join(dir, "out "+filepath.Base(filepath.Dir(what)))
		c.mrsubmit("run", "-batch", odd, "-pool", odd, "-D", "my.odd="+odd, "-D", "mapreduce.input.fileinputformat.split.maxsize=128",
			what, "-input", filepath.Join(dir, "in"), "-output", out).Succeed()
		checkCounts(t, out, trial.Lines(5))
	}
	for _, args := range [][]string{{"kill", odd}, {"logs", odd}, {"status", "job_1_1;touch pwned"}} {
		c.mrsubmit(args...).Fail(2, "is not the id of")
	}
	c.mrsubmit("cluster", "drain", odd).Fail(1, fmt.Sprintf("unknown task tracker %q", odd))
	c.mrsubmit("history", "job_1_0001;touch pwned").Fail(2, "is not the id of")
	filepath.WalkDir(c.dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == "pwned" {
			t.Errorf("a shell command has written %q", path)
		}
		return nil
	})
}

// Row 39. A submission that names another directory as its staging directory is refused, and the
// directory stays.
func TestForeignStaging(t *testing.T) {
	c := start(t, func(cfg *processes.Config) { cfg.JobTrackers, cfg.TaskTrackers = 1, 1 })
	foreign := filepath.Join(c.dir, "mine")
	if err := os.Mkdir(foreign, 0o777); err != nil {
		t.Fatal(err)
	}
	for _, place := range []string{"file://" + foreign, c.Staging(), c.Staging() + "/../mine", c.Staging() + "/clusters", c.Staging() + "/history"} {
		_, err := c.client.Submit(c.ctx, wire.Submission{
			Key: "k", Staging: place, Owner: processes.User, Plan: wire.Plan{Jobs: []wire.JobPlan{{Name: "n", Output: "file://" + foreign + "/out"}}},
		})
		if err == nil {
			t.Errorf("a submission with the staging directory %s is accepted", place)
		}
	}
	c.paced(2).checkSuccess()
	for _, dir := range []string{foreign, filepath.Join(c.dir, "staging", "clusters")} {
		if _, err := os.Stat(dir); err != nil {
			t.Error(err)
		}
	}
}
