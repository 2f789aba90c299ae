//go:build unix

package embedded

import (
	"io"
	"os"
	"testing"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/dfs/mem"
	"github.com/quernmr/quern/wire"
)

// TestDiscard: an output that the jobs of a submission had not completed is removed, that of another submission is not.
func TestDiscard(t *testing.T) {
	const out = "mem://t/out"
	sub := &wire.Submission{Key: "k", Plan: wire.Plan{Jobs: []wire.JobPlan{{Name: "step", Output: out}}}}
	owner := dfs.Join(out, "_temporary", "OWNER")
	for key, left := range map[string]bool{"k": false, "other": true} {
		files := mem.New(64)
		if err := files.MkdirAll(dfs.Join(dfs.Dir(owner), "job_7_0001", "t")); err != nil {
			t.Fatal(err)
		}
		w, err := files.Create(owner)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte("job_7_0001 " + key)); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if err := discard(files, "mem://t/staging", sub); err != nil {
			t.Errorf("key %s: %v", key, err)
		}
		if _, err := files.Stat(owner); (err == nil) != left {
			t.Errorf("an output that belongs to the key %s: %v", key, err)
		}
	}
}

// TestStepsKeepLines: while attempts print, the display of steps erases no lines.
func TestStepsKeepLines(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, prints := range []string{"false", "true"} {
		sub := &wire.Submission{Program: wire.Program{Path: "file://" + exe}, Plan: wire.Plan{Jobs: []wire.JobPlan{{
			Name: "step", Properties: map[string]string{"quern.embedded.output": prints, "quern.embedded.dir": t.TempDir()},
		}}}}
		steps := NewSteps(nil, io.Discard, func() int { return 80 }, nil, false)
		if _, err := steps.Start(sub); err != nil {
			t.Fatal(err)
		}
		if erases := steps.config().Width != nil; erases != (prints == "false") {
			t.Errorf("quern.embedded.output=%s: the display erases lines: %v", prints, erases)
		}
		if err := steps.Close(); err != nil {
			t.Error(err)
		}
	}
}
