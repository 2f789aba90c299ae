package runtime

import (
	"errors"
	"strings"
	"testing"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/wire"
)

// TestPublishMap: of all attempts of a map the first one's files stay, also if it has none. A later attempt fails if it
// wrote others.
func TestPublishMap(t *testing.T) {
	file := func(name, content string) manifestFile {
		return manifestFile{Name: name, Size: int64(len(content)), Sum: uint64(content[0])}
	}
	two := []manifestFile{file("days-a-m-00000", "x"), file("days-b-m-00000", "y")}
	for name, c := range map[string]struct {
		first, again []manifestFile
		other        string // named by the error; "": none
	}{
		"the same":        {first: two, again: two},
		"other content":   {first: two, again: []manifestFile{two[0], file("days-b-m-00000", "z")}, other: "days-b-m-00000"},
		"other size":      {first: two, again: []manifestFile{two[0], file("days-b-m-00000", "yy")}, other: "days-b-m-00000"},
		"no last file":    {first: two, again: two[:1], other: "days-b-m-00000"},
		"no first file":   {first: two, again: two[1:], other: "days-a-m-00000"},
		"one more file":   {first: two, again: append(two[:2:2], file("days-c-m-00000", "z")), other: "days-c-m-00000"},
		"files, now none": {first: two, other: "days-a-m-00000"},
		"no files":        {},
		"none, now files": {again: two, other: "days-a-m-00000"},
	} {
		f := newData()
		tr := newTree(f)
		if err := tr.build(testAttempt(wire.Setup, 0, 0)); err != nil {
			t.Fatal(err)
		}
		for n, files := range [][]manifestFile{c.first, c.again, c.first} {
			id := testAttempt(wire.Map, 0, n)
			m := &manifest{Attempt: id.String(), Files: files}
			if len(files) > 0 {
				if err := errors.Join(f.Mkdir(tr.attempt(id)), tr.writeManifest(id, m)); err != nil {
					t.Fatal(err)
				}
			}
			err := tr.publishMap(id, m)
			if n == 1 && c.other != "" {
				if !errors.Is(err, errOtherFiles) || !strings.Contains(err.Error(), c.other) || isFatal(err) {
					t.Errorf("%s: %v, want an error with %s", name, err, c.other)
				}
			} else if err != nil {
				t.Errorf("%s: attempt %d: %v", name, n, err)
			}
			if left := must(f.List(tr.below("a"))); len(left) > 0 {
				t.Errorf("%s: left after attempt %d: %v", name, n, left)
			}
		}
		if m := must(tr.committed(testTask(wire.Map, 0))); m == nil || len(m.Files) != len(c.first) || len(c.first) > 0 && m.Attempt != testAttempt(wire.Map, 0, 0).String() {
			t.Errorf("%s: published is %+v", name, m)
		}
	}
}

// TestPublishAfterEnd: an attempt that still runs after its job has ended publishes nothing.
func TestPublishAfterEnd(t *testing.T) {
	f := newData()
	tr := newTree(f)
	runJob(t, tr, func(step string, do func(int) error) {
		if err := do(0); err != nil {
			t.Fatalf("%s: %v", step, err)
		}
	})
	before := listing(f, "mem://t/data")
	id := testAttempt(wire.Map, 0, 99)
	for _, files := range [][]manifestFile{nil, {{Name: "days-m-00000"}}} {
		if err := tr.publishMap(id, &manifest{Attempt: id.String(), Files: files}); err == nil {
			t.Errorf("a map with %d files is published after the end of its job", len(files))
		}
	}
	if got := listing(f, dfs.Dir(testOut)); got != before {
		t.Errorf("output is %s, was %s", got, before)
	}
}

// TestMapFilesRun: a map of a job with reduces runs again, with the same files and with others of the same size. The
// commit moves the files once, in names with the letter m for every format, without those of a map that was given up.
func TestMapFilesRun(t *testing.T) {
	for _, format := range []string{"text", FormatMapred} {
		content := "x\n"
		job := wordCount()
		job.Maps[0] = func(task *Task, _ *Split, _ Collector) error {
			if _, err := task.Output(""); err == nil || !strings.Contains(err.Error(), "goes to reduces") {
				t.Errorf("main output of a map: %v", err)
			}
			out, err := task.Output("days-mon")
			if err != nil {
				return err
			}
			return out.Write([]byte(content))
		}
		plan := linesPlan()
		plan.Outputs, plan.Format = []string{"days"}, format
		b := newTrackerSim(t, plan, job)
		b.mustRun(wire.Setup, 0, nil)
		b.mustRun(wire.Map, 0, nil)
		b.mustRun(wire.Map, 1, nil)
		if r := b.run(wire.Map, 0, nil); r.Error != "" || r.Output == nil {
			t.Errorf("second run: %+v", r)
		}
		content = "y\n"
		if r := b.run(wire.Map, 0, nil); !strings.Contains(r.Error, "not deterministic") || !strings.Contains(r.Error, "days-mon-m-00000") || r.Fatal {
			t.Errorf("a run with other files: %+v", r)
		}
		if r := b.run(wire.Commit, 0, func(run *wire.Run) { run.GivenUp, run.GivenUpMaps = []uint64{3}, []uint64{2} }); !strings.Contains(r.Error, "its output is missing") {
			t.Errorf("commit without a map's files: %+v", r)
		}
		b.mustRun(wire.Commit, 0, func(run *wire.Run) { run.GivenUp, run.GivenUpMaps = []uint64{3}, []uint64{^uint64(1)} })
		b.checkOutput("/data/out/ /data/out/_SUCCESS= /data/out/days-mon-m-00000=x\n")
	}
}

// TestMapWithoutFiles: a map that may write files, and writes none, makes three calls of the file system more than one
// that may not: it creates an empty file, closes it and syncs its directory. The job's commit moves nothing for it.
func TestMapWithoutFiles(t *testing.T) {
	calls := make(map[bool]int)
	for _, declared := range []bool{false, true} {
		plan := linesPlan()
		if declared {
			plan.Outputs = []string{"days"}
		}
		b := newTrackerSim(t, plan, wordCount())
		b.sub.Program.Hash = "on a cluster, so that files are synced"
		b.stage()
		b.mustRun(wire.Setup, 0, nil)
		b.mustRun(wire.Map, 0, nil)
		before := b.fs.Calls()
		b.mustRun(wire.Map, 1, nil)
		calls[declared] = b.fs.Calls() - before
		b.mustRun(wire.Commit, 0, func(run *wire.Run) { run.GivenUp, run.GivenUpMaps = []uint64{3}, []uint64{^uint64(3)} })
		b.checkOutput("/data/out/ /data/out/_SUCCESS=")
	}
	if more := calls[true] - calls[false]; more != 3 {
		t.Errorf("a map without files makes %d calls of the file system, and %d more if it may write files, want 3", calls[false], more)
	}
}
