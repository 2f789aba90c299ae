package runtime

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/wire"
)

// TestTwoSetups runs a second setup attempt at each point of the first, which counts as
// lost. The output must be there once and complete, and a commit must leave nothing else.
func TestTwoSetups(t *testing.T) {
	for stop := range 30 {
		f := newData()
		between := &interrupted{FS: f, callsBefore: stop}
		between.meanwhile = func() {
			tr := newTree(f)
			if err := tr.build(testAttempt(wire.Setup, 0, 1)); err != nil {
				t.Fatal(err)
			}
		}
		first := newTree(between)
		if err := first.build(testAttempt(wire.Setup, 0, 0)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		tr, id := newTree(f), testAttempt(wire.Reduce, 0, 0)
		if err := errors.Join(writeAttempt(tr, id, "x"), tr.commitTask(id)); err != nil {
			t.Fatalf("second setup before call %d: %v", stop, err)
		}
		if err := tr.commitJob([]wire.TaskID{id.Task}, noMore, func() error { return nil }); err != nil {
			t.Fatal(err)
		}
		if got := listing(f, "mem://t/data"); got != "/data/out/ /data/out/_SUCCESS= /data/out/part-r-00000=x" {
			t.Fatalf("second setup before call %d: %s", stop, got)
		}
	}
}

// TestTwoCommits runs a second job commit at each point of the first, which is slow. Both must succeed,
// and all output must be in place.
func TestTwoCommits(t *testing.T) {
	for stop := range 40 {
		f := newData()
		first, second := testAttempt(wire.Reduce, 0, 0), testAttempt(wire.Reduce, 1, 0)
		tasks := []wire.TaskID{first.Task, second.Task}
		tr := newTree(f)
		if err := errors.Join(tr.build(testAttempt(wire.Setup, 0, 0)), writeAttempt(tr, first, "x"), tr.commitTask(first),
			writeAttempt(tr, second, "y"), tr.commitTask(second)); err != nil {
			t.Fatal(err)
		}
		between := &interrupted{FS: f, callsBefore: stop}
		between.meanwhile = func() {
			if err := tr.commitJob(tasks, noMore, func() error { return nil }); err != nil {
				t.Fatal(err)
			}
		}
		if err := newTree(between).commitJob(tasks, noMore, func() error { return nil }); err != nil {
			t.Errorf("second commit before call %d: %v", stop, err)
		}
		if got := listing(f, "mem://t/data"); got != "/data/out/ /data/out/_SUCCESS= /data/out/part-r-00000=x /data/out/part-r-00001=y" {
			t.Errorf("second commit before call %d: %s", stop, got)
		}
	}
}

// interrupted calls a function before one call of a file system.
type interrupted struct {
	dfs.FS
	callsBefore int
	meanwhile   func()
}

func (f *interrupted) step() {
	if f.callsBefore--; f.callsBefore == -1 {
		f.meanwhile()
	}
}

func (f *interrupted) Mkdir(name string) error             { f.step(); return f.FS.Mkdir(name) }
func (f *interrupted) RenameDir(from, to string) error     { f.step(); return f.FS.RenameDir(from, to) }
func (f *interrupted) RemoveAll(name string) error         { f.step(); return f.FS.RemoveAll(name) }
func (f *interrupted) Create(n string) (dfs.Writer, error) { f.step(); return f.FS.Create(n) }
func (f *interrupted) Open(name string) (dfs.File, error)  { f.step(); return f.FS.Open(name) }
func (f *interrupted) Stat(n string) (dfs.Info, error)     { f.step(); return f.FS.Stat(n) }
func (f *interrupted) RenameFile(from, to string) error    { f.step(); return f.FS.RenameFile(from, to) }
