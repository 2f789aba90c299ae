package runtime

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/dfs/mem"
	"github.com/quernmr/quern/wire"
)

// noMore is for commits without skipped records.
func noMore() error { return nil }

var testJob = wire.JobID{Start: 1700000000000, N: 1}

func testTask(kind wire.Kind, n int) wire.TaskID { return wire.TaskID{Job: testJob, Kind: kind, N: n} }

func testAttempt(kind wire.Kind, n, attempt int) wire.AttemptID {
	return wire.AttemptID{Task: testTask(kind, n), N: 1000 + attempt}
}

const testOut = "mem://t/data/out"

func newTree(f dfs.FS) *tree { return &tree{fs: f, out: testOut, job: testJob, staging: testStaging} }

// unmarkedTree returns the tree of a job that writes no _SUCCESS.
func unmarkedTree(f dfs.FS) *tree {
	tr := newTree(f)
	tr.unmarked = true
	return tr
}

// newData returns a file system as before a job's first attempt.
func newData() *mem.FS {
	f := mem.New(1)
	must(0, f.MkdirAll("mem://t/data"))
	putFile(f, dfs.Join(testStaging, wire.StagedSubmission), nil)
	must(0, f.MkdirAll(dfs.Join(testStaging, testJob.String())))
	return f
}

// listing lists everything below a directory, files with their content.
func listing(f dfs.FS, dir string) string {
	var lines []string
	var walk func(string)
	walk = func(dir string) {
		for _, info := range must(f.List(dir)) {
			name := strings.TrimPrefix(info.Name, "mem://t")
			if info.Dir {
				lines = append(lines, name+"/")
				walk(info.Name)
			} else {
				lines = append(lines, fmt.Sprintf("%s=%s", name, must(readAll(f, info.Name, 1<<20))))
			}
		}
	}
	walk(dir)
	slices.Sort(lines)
	return strings.Join(lines, " ")
}

// writeAttempt does the work of a reduce attempt before its grant.
func writeAttempt(t *tree, id wire.AttemptID, content string) error {
	if err := t.fs.Mkdir(t.attempt(id)); err != nil {
		return err
	}
	name := fmt.Sprintf("part-r-%05d", id.Task.N)
	if id.Task.Kind == wire.Map {
		name = fmt.Sprintf("days-m-%05d", id.Task.N)
	}
	if err := writeAll(t.fs, dfs.Join(t.attempt(id), name), []byte(content)); err != nil {
		return err
	}
	return t.writeManifest(id, &manifest{Attempt: id.String(), Files: []manifestFile{{Name: name, Size: int64(len(content))}}})
}

// runJob runs all steps of a job on the file system. retry repeats a failed step, as the
// job tracker retries attempts. n numbers the attempts of a step.
func runJob(t *testing.T, tr *tree, retry func(step string, do func(n int) error)) {
	retry("setup", func(n int) error {
		if state, err := tr.checkOwner(); state == foreign {
			return err
		} else if state == ours {
			return nil
		}
		return tr.build(testAttempt(wire.Setup, 0, n))
	})
	for run := range 2 { // the map runs again after its success
		retry("map", func(n int) error {
			id := testAttempt(wire.Map, 0, 10*run+n)
			if err := writeAttempt(tr, id, "of a map"); err != nil {
				return err
			}
			return tr.publishMap(id, &manifest{Files: []manifestFile{{Name: "days-m-00000", Size: int64(len("of a map"))}}})
		})
		retry("map without files", func(n int) error { return tr.publishMap(testAttempt(wire.Map, 1, 10*run+n), &manifest{}) })
	}
	tasks := []wire.TaskID{testTask(wire.Reduce, 0), testTask(wire.Reduce, 1)}
	for task := range tasks {
		granted, committed := -1, false
		retry("task", func(n int) error {
			// Fence a failed granted attempt before granting another.
			if granted >= 0 {
				m, err := tr.fence(testAttempt(wire.Reduce, task, granted))
				if err != nil {
					return err
				}
				granted = -1
				if m != nil {
					if committed {
						t.Error("committed twice")
					}
					return nil
				}
			}
			id := testAttempt(wire.Reduce, task, n)
			if err := writeAttempt(tr, id, fmt.Sprint("content ", task)); err != nil {
				return err
			}
			granted = n
			if err := tr.commitTask(id); err != nil {
				return err
			}
			committed = true
			return nil
		})
	}
	tasks = append(tasks, testTask(wire.Map, 0), testTask(wire.Map, 1))
	retry("commit", func(int) error { return tr.commitJob(tasks, noMore, func() error { return nil }) })
}

// TestLifeWithFaults fails each call of the file system, with or without its effect. After
// retries, the output must be there exactly once, as without faults.
func TestLifeWithFaults(t *testing.T) {
	lifeWithFaults(t, newTree, "/data/out/ /data/out/_SUCCESS= /data/out/days-m-00000=of a map /data/out/part-r-00000=content 0 /data/out/part-r-00001=content 1")
}

// TestUnmarkedWithFaults is TestLifeWithFaults without _SUCCESS.
func TestUnmarkedWithFaults(t *testing.T) {
	lifeWithFaults(t, unmarkedTree, "/data/out/ /data/out/days-m-00000=of a map /data/out/part-r-00000=content 0 /data/out/part-r-00001=content 1")
}

func lifeWithFaults(t *testing.T, makeTree func(dfs.FS) *tree, want string) {
	run := func(f *mem.FS, attempts int) {
		runJob(t, makeTree(f), func(step string, do func(int) error) {
			var err error
			for n := range attempts {
				if err = do(n); err == nil {
					return
				}
				if isFatal(err) {
					t.Fatalf("%s: %v", step, err)
				}
			}
			t.Fatalf("%s: %v", step, err)
		})
	}
	f := newData()
	before := f.Calls()
	run(f, 1)
	calls := f.Calls() - before
	if got := listing(f, "mem://t/data"); got != want {
		t.Fatalf("without faults: %s", got)
	}
	for _, kind := range []string{"times=1", "times=1 done", "times=1 torn=3", "times=3", "times=3 done"} {
		for i := range calls {
			f := newData()
			spec := fmt.Sprintf("any ** after=%d %s", i, kind)
			if err := f.SetFaults(spec); err != nil {
				t.Fatal(err)
			}
			run(f, 5)
			_ = f.SetFaults("")
			if got := listing(f, "mem://t/data"); got != want {
				t.Fatalf("%s: got  %s\nwant %s", spec, got, want)
			}
		}
	}
}

// TestCleanupWithFaults stops a job at each call. Cleanup, which is also stopped at each
// call, must remove all the job's files and nothing else.
func TestCleanupWithFaults(t *testing.T) {
	var calls int
	for stop := 1; ; stop++ {
		f := newData()
		putFile(f, "mem://t/data/other", []byte("other"))
		before := f.Calls()
		if err := f.SetFaults(fmt.Sprintf("any ** after=%d", stop-1)); err != nil {
			t.Fatal(err)
		}
		committing := false
		func() {
			defer func() { _ = recover() }()
			runJob(t, newTree(f), func(step string, do func(int) error) {
				if step == "commit" {
					committing = true // from here on the job cannot be cleaned up
				}
				if committing || do(0) != nil {
					panic("stopped")
				}
			})
		}()
		calls = f.Calls() - before
		if committing {
			break
		}
		_ = f.SetFaults("")
		for i := 0; ; i++ {
			// Run the same steps again, then the same cleanup, stopped at its i-th call.
			if err := f.SetFaults(fmt.Sprintf("any ** after=%d times=1", i)); err != nil {
				t.Fatal(err)
			}
			if err := newTree(f).cleanup(); err == nil {
				break
			}
		}
		_ = f.SetFaults("")
		if got := listing(f, "mem://t/data"); got != "/data/other=other" {
			t.Fatalf("stopped at call %d: left %s", stop, got)
		}
	}
	if calls < 20 {
		t.Errorf("the job was stopped at only %d calls", calls)
	}
}

// TestTwoJobsOneOutput sets up two jobs with one output. The second fails. Its cleanup must
// not change the first job's files, during that job and after it.
func TestTwoJobsOneOutput(t *testing.T) {
	f := newData()
	first, second := newTree(f), &tree{fs: f, out: testOut, job: testJob, key: "another cluster's", staging: "mem://t/staging/s2"}
	putFile(f, dfs.Join(second.staging, wire.StagedSubmission), nil)
	if err := first.build(testAttempt(wire.Setup, 0, 0)); err != nil {
		t.Fatal(err)
	}
	made := listing(f, "mem://t/data")
	refused := func(err error) {
		t.Helper()
		if !errors.Is(err, ErrOutputExists) || !isFatal(err) || !strings.Contains(err.Error(), testOut) {
			t.Fatalf("second job: %v", err)
		}
	}
	_, err := second.checkOwner()
	refused(err)
	refused(second.build(testAttempt(wire.Setup, 0, 0))) // as if the output was unclaimed just before
	if err := second.cleanup(); err != nil {
		t.Fatal(err)
	}
	if got := listing(f, "mem://t/data"); got != made {
		t.Fatalf("second job changed the first one's output: %s", got)
	}
	if err := second.commitJob(nil, noMore, func() error { return nil }); !isFatal(err) {
		t.Fatalf("second job committed: %v", err)
	}
	if err := first.commitJob(nil, noMore, func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	if err := second.cleanup(); err != nil {
		t.Fatal(err)
	}
	_, err = second.checkOwner()
	refused(err)
	if got := listing(f, "mem://t/data"); got != "/data/out/ /data/out/_SUCCESS=" {
		t.Fatalf("at the end: %s", got)
	}
}

// TestOutputExists checks that a user's files at OUT are neither used, changed nor removed.
func TestOutputExists(t *testing.T) {
	for _, made := range []string{"", "/x", "/_temporary/x", "/_temporary/OWNER"} {
		f := mem.New(1)
		if made == "" {
			_ = f.MkdirAll(testOut)
		} else {
			putFile(f, testOut+made, []byte("mine"))
		}
		before := listing(f, "mem://t/data")
		tr := newTree(f)
		if state, err := tr.checkOwner(); state != foreign || !errors.Is(err, ErrOutputExists) {
			t.Errorf("%q: %v %v", made, state, err)
		}
		if err := tr.cleanup(); err != nil {
			t.Error(err)
		}
		if err := tr.commitJob(nil, noMore, func() error { return nil }); !isFatal(err) {
			t.Errorf("%q: committed: %v", made, err)
		}
		if got := listing(f, "mem://t/data"); got != before {
			t.Errorf("%q: became %s", made, got)
		}
	}
}

// TestCommitOverwritesNothing checks that the commit does not replace a user's file.
func TestCommitOverwritesNothing(t *testing.T) {
	f := newData()
	tr, id := newTree(f), testAttempt(wire.Reduce, 0, 0)
	if err := errors.Join(tr.build(testAttempt(wire.Setup, 0, 0)), writeAttempt(tr, id, "job's"), tr.commitTask(id)); err != nil {
		t.Fatal(err)
	}
	putFile(f, testOut+"/part-r-00000", []byte("mine!"))
	err := tr.commitJob([]wire.TaskID{id.Task}, noMore, func() error { return nil })
	if !errors.Is(err, ErrOutputExists) || !strings.Contains(err.Error(), "part-r-00000") {
		t.Errorf("commit: %v", err)
	}
	if got := string(must(readAll(f, testOut+"/part-r-00000", 100))); got != "mine!" {
		t.Errorf("the file became %q", got)
	}
}

// TestOneCommit checks that only one attempt of a task can commit, and that a fenced
// attempt cannot.
func TestOneCommit(t *testing.T) {
	f := newData()
	tr := newTree(f)
	a, b, c := testAttempt(wire.Reduce, 0, 0), testAttempt(wire.Reduce, 0, 1), testAttempt(wire.Reduce, 1, 0)
	if err := errors.Join(tr.build(testAttempt(wire.Setup, 0, 0)), writeAttempt(tr, a, "A"), writeAttempt(tr, b, "B"), writeAttempt(tr, c, "C")); err != nil {
		t.Fatal(err)
	}
	if err := tr.commitTask(a); err != nil {
		t.Fatal(err)
	}
	if err := tr.commitTask(b); err == nil || !strings.Contains(err.Error(), a.String()) {
		t.Errorf("second attempt: %v", err)
	}
	if err := tr.commitTask(a); err != nil {
		t.Errorf("repeated commit of the first attempt: %v", err)
	}
	for range 2 {
		if m, err := tr.fence(a); err != nil || m == nil || m.Attempt != a.String() {
			t.Errorf("fence of the committed attempt: %v %v", m, err)
		}
		if m, err := tr.fence(b); err != nil || m != nil {
			t.Errorf("fence of the other attempt: %v %v", m, err)
		}
		if m, err := tr.fence(c); err != nil || m != nil {
			t.Errorf("fence of an attempt in time: %v %v", m, err)
		}
	}
	if tr.commitTask(c) == nil {
		t.Error("a fenced attempt committed")
	}
	if got := string(must(readAll(f, dfs.Join(tr.task(a.Task), "part-r-00000"), 100))); got != "A" {
		t.Errorf("committed is %q", got)
	}
}

// TestCommitWithSuccessThere checks that no output is lost if another program has written
// _SUCCESS. A reader may have removed files after that.
func TestCommitWithSuccessThere(t *testing.T) {
	f := newData()
	tr := newTree(f)
	movedAttempt, unmovedAttempt := testAttempt(wire.Reduce, 0, 0), testAttempt(wire.Reduce, 1, 0)
	err := errors.Join(tr.build(testAttempt(wire.Setup, 0, 0)),
		writeAttempt(tr, movedAttempt, "x"), tr.commitTask(movedAttempt),
		writeAttempt(tr, unmovedAttempt, "y"), tr.commitTask(unmovedAttempt),
		writeAll(f, tr.success(), nil),
		tr.moveTask(movedAttempt.Task, false, func() error { return nil }),
		f.Remove(testOut+"/part-r-00000"))
	if err != nil {
		t.Fatal(err)
	}
	if err := tr.commitJob([]wire.TaskID{movedAttempt.Task, unmovedAttempt.Task}, noMore, func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	if got := listing(f, "mem://t/data"); got != "/data/out/ /data/out/_SUCCESS= /data/out/part-r-00001=y" {
		t.Fatal(got)
	}
}

// commitHalf commits two tasks and then the job. The job's commit moves only the first
// task's file, because another program's file has the second one's name.
func commitHalf(t *testing.T, f dfs.FS) {
	t.Helper()
	tr := newTree(f)
	first, second := testAttempt(wire.Reduce, 0, 0), testAttempt(wire.Reduce, 1, 0)
	err := errors.Join(tr.build(testAttempt(wire.Setup, 0, 0)),
		writeAttempt(tr, first, "x"), tr.commitTask(first),
		writeAttempt(tr, second, "y"), tr.commitTask(second),
		writeAll(f, testOut+"/part-r-00001", []byte("foreign")))
	if err != nil {
		t.Fatal(err)
	}
	if err := tr.commitJob([]wire.TaskID{first.Task, second.Task}, noMore, func() error { return nil }); !errors.Is(err, ErrOutputExists) {
		t.Fatal(err)
	}
}

// TestCleanupAfterCommit checks that cleanup removes the files of a half-done job commit,
// but not files of others.
func TestCleanupAfterCommit(t *testing.T) {
	f := newData()
	commitHalf(t, f)
	if err := newTree(f).cleanup(); err != nil {
		t.Fatal(err)
	}
	if got := listing(f, "mem://t/data"); got != "/data/out/ /data/out/part-r-00001=foreign" {
		t.Fatal(got)
	}
}

// TestCleanupAfterSuccess checks that cleanup takes nothing back once _SUCCESS says that readers may use
// the output.
func TestCleanupAfterSuccess(t *testing.T) {
	f := newData()
	tr, only := newTree(f), testAttempt(wire.Reduce, 0, 0)
	err := errors.Join(tr.build(testAttempt(wire.Setup, 0, 0)), writeAttempt(tr, only, "x"), tr.commitTask(only),
		tr.moveTask(only.Task, false, func() error { return nil }), writeAll(f, tr.success(), nil), tr.cleanup())
	if got := listing(f, "mem://t/data"); err != nil || got != "/data/out/ /data/out/_SUCCESS= /data/out/part-r-00000=x" {
		t.Fatal(got, err)
	}
}

// TestManifestNames: a job does not commit by a manifest with names that are no files of its directory.
func TestManifestNames(t *testing.T) {
	for _, name := range []string{"", "/", "sub/part", "../part", "/data/part"} {
		f := newData()
		tr, id := newTree(f), testAttempt(wire.Reduce, 0, 0)
		err := errors.Join(tr.build(testAttempt(wire.Setup, 0, 0)), f.Mkdir(tr.attempt(id)),
			tr.writeManifest(id, &manifest{Attempt: id.String(), Files: []manifestFile{{Name: name}}}), tr.commitTask(id))
		if err != nil {
			t.Fatal(err)
		}
		err = tr.commitJob([]wire.TaskID{id.Task}, noMore, func() error { return nil })
		if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), fmt.Sprintf("file name %q", name)) {
			t.Errorf("commit of a file %q: %v", name, err)
		}
	}
}

// TestMoveFile: a file counts as moved only if its source is missing and the target has its size.
func TestMoveFile(t *testing.T) {
	for what, c := range map[string]struct {
		from, to string // content; empty: missing
		want     error
		fatal    bool
	}{
		"to move":      {"abc", "", nil, false},
		"moved":        {"", "abc", nil, false},
		"cut off":      {"", "ab", ErrCorrupt, true},
		"longer":       {"", "abcd", ErrCorrupt, true},
		"of another":   {"abc", "abc", ErrOutputExists, true},
		"both missing": {"", "", fs.ErrNotExist, false},
	} {
		f := mem.New(64)
		for name, content := range map[string]string{"mem://t/from": c.from, "mem://t/to": c.to} {
			if content != "" {
				putFile(f, name, []byte(content))
			}
		}
		err := (&tree{fs: f}).moveFile("mem://t/from", "mem://t/to", 3)
		if !errors.Is(err, c.want) || isFatal(err) != c.fatal {
			t.Errorf("%s: %v, want %v", what, err, c.want)
		}
	}
}
