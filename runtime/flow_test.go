package runtime

import (
	"strings"
	"testing"

	"github.com/quernmr/quern/dfs/mem"
	"github.com/quernmr/quern/wire"
)

// TestFlowInput checks that a job reads exactly the files of the previous job. The error
// for a missing file names it.
func TestFlowInput(t *testing.T) {
	const tmp = testStaging + "/tmp/0/"
	id := wire.JobID{Start: 1, N: 8}
	for name, c := range map[string]struct {
		reduces int
		change  func(*mem.FS)
		splits  int
		want    string // in the error
	}{
		"reduces":        {reduces: 2, splits: 2},
		"maps":           {splits: 3},
		"empty files":    {reduces: 2, splits: 0, change: func(f *mem.FS) { putFile(f, tmp+"part-r-00000", nil); putFile(f, tmp+"part-r-00001", nil) }},
		"others' files":  {reduces: 2, splits: 2, change: func(f *mem.FS) { putFile(f, tmp+"part-r-00007", []byte("x")) }},
		"no last one":    {reduces: 2, want: tmp + "part-r-00001, which job a has written", change: func(f *mem.FS) { must(0, f.Remove(tmp+"part-r-00001")) }},
		"no map's file":  {want: tmp + "part-m-00002, which job a has written", change: func(f *mem.FS) { must(0, f.Remove(tmp+"part-m-00002")) }},
		"no directory":   {reduces: 2, want: testStaging + "/tmp/0", change: func(f *mem.FS) { must(0, f.RemoveAll(testStaging+"/tmp")) }},
		"not known many": {want: "job_1_0007", change: func(f *mem.FS) { must(0, f.RemoveAll(testStaging+"/job_1_0007")) }},
	} {
		t.Run(name, func(t *testing.T) {
			f := mem.New(100)
			must(0, f.MkdirAll(testStaging+"/job_1_0007"))
			data, _ := encodeSplits(make([]splitEntry, 3))
			putFile(f, splitsName(testStaging, wire.JobID{Start: 1, N: 7}), data)
			for _, file := range []string{"part-r-00000", "part-r-00001", "part-m-00000", "part-m-00001", "part-m-00002", "_SUCCESS"} {
				putFile(f, tmp+file, []byte("a\n"))
			}
			if c.change != nil {
				c.change(f)
			}
			sub := &wire.Submission{Staging: testStaging, Plan: wire.Plan{Jobs: []wire.JobPlan{
				{Name: "a", Reduces: c.reduces},
				{Name: "b", Inputs: []wire.InputPlan{{Format: formatLines, From: 1}}, Results: []wire.SideResult{{Name: "side", From: 1}}},
			}}}
			a := &attempt{fs: f, sub: sub, job: &Job{}, task: &Task{Ctx: t.Context()}, settings: settings{splitMin: 1, splitMax: 100},
				cmd: &wire.Run{Attempt: wire.AttemptID{Task: wire.TaskID{Job: id}}, Index: 1}}
			splits, err := a.jobSplits()
			checkSideResult(t, a, err)
			switch {
			case c.want == "" && (err != nil || len(splits) != c.splits):
				t.Errorf("%d splits, want %d, error %v", len(splits), c.splits, err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("error %v, want the name %s", err, c.want)
			case c.want != "" && name != "not known many" && !isFatal(err):
				t.Errorf("error %v is not fatal", err)
			}
		})
	}
}

// checkSideResult: a result that is a side file has the files that it has as an input, and the same error.
func checkSideResult(t *testing.T, a *attempt, want error) {
	t.Helper()
	a.task.Plan, a.task.fs, a.task.partsOf = a.plan(), a.fs, a.partsOf
	in, err := a.task.SideInput([]string{"side"}, &wire.InputPlan{Format: formatLines}, nil)
	if err != nil || want != nil {
		if err == nil || want == nil || !strings.Contains(err.Error(), want.Error()) {
			t.Errorf("side file: error %v, that of the input is %v", err, want)
		}
		return
	}
	defer in.Close()
	files, _ := a.partsOf(1)
	lines := 0
	for range in.Lines() {
		lines++
	}
	content := 0
	for _, file := range files {
		content += int(file.Size) / len("a\n")
	}
	if lines != content || in.Err() != nil {
		t.Errorf("side file: %d lines, want %d (%v)", lines, content, in.Err())
	}
}
