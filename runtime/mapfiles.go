package runtime

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/wire"
)

// A map of a job with reduces may write files of the outputs that the job declares, beside its map output.
// Its attempt publishes them before it reports success: it renames its directory to that of the task, as
// reduces do, but without a grant. The job's commit moves the files of all maps that were not given up.
//
// A map may succeed more than once: its output was lost, two attempts ran, or a new leader does not know of
// it. The first attempt that renames its directory wins. Each later one compares its files with the published
// ones, by name, size and checksum, and fails if they differ. So this holds at all times, with any leader:
//
//	If an attempt of a map has reported success, the task's directory exists, is complete, and has the same
//	files as the attempt wrote; or it wrote none, and the empty file exists.
//
// So it does not matter which of the attempts wrote the map output that reduces read. No fence is needed
// either: if an attempt that was taken for lost renames its directory first, the others must have its files.
//
// An attempt that wrote no files makes an empty file in place of the task's directory: that needs no directory of
// the attempt, no manifest and no rename, and is exclusive as well. The empty file is a manifest without files.

// writesMapFiles reports whether the job's maps may write files beside their map output.
func (a *attempt) writesMapFiles() bool { return a.plan().Reduces > 0 && len(a.plan().Outputs) > 0 }

// writeMapFiles runs a map with sorted output, and publishes the files that it wrote beside it.
func (a *attempt) writeMapFiles(work func() error) error {
	if !a.writesMapFiles() {
		return work()
	}
	return a.writeFiles(wire.MapOutputRecords, true, work, func(m *manifest) error { return a.tree.publishMap(a.id(), m) })
}

// errOtherFiles is the error of an attempt that wrote other files than an earlier one.
var errOtherFiles = errors.New("the map is not deterministic: an earlier attempt wrote other files beside the map output; what a map writes must follow from its input alone, without the time, random numbers or the order of a Go map")

// publishMap renames a map attempt's directory to the task's directory, or makes the empty file of a map without
// files. If another attempt has done so, it compares both, and removes the attempt's directory.
func (t *tree) publishMap(id wire.AttemptID, m *manifest) error {
	if err := t.placeMap(id, m); err != nil {
		first, readErr := t.committed(id.Task)
		if readErr != nil || first == nil {
			return fmt.Errorf("publish the files of a map: %w", errors.Join(err, readErr))
		}
		if err := t.compareMap(id, first, m); err != nil {
			return err
		}
	}
	// Also after the rename of another attempt, which may have died before its sync.
	if err := t.fs.SyncDir(t.below("t")); err != nil {
		return fmt.Errorf("publish the files of a map: %w", err)
	}
	return nil
}

// placeMap puts the files of a map, or the empty file, into the task's place. An error does not mean that it did not.
func (t *tree) placeMap(id wire.AttemptID, m *manifest) error {
	if len(m.Files) > 0 {
		return t.fs.RenameDir(t.attempt(id), t.task(id.Task))
	}
	w, err := t.fs.Create(t.task(id.Task))
	if err != nil {
		return err
	}
	return w.Close() // never aborted: another attempt may have seen the file, and reported success
}

// withoutFiles returns an empty manifest if the task is a map that was published without files, else nil.
func (t *tree) withoutFiles(task wire.TaskID) (*manifest, error) {
	info, err := t.fs.Stat(t.task(task))
	switch {
	case err != nil && !missing(err):
		return nil, fmt.Errorf("look for committed output: %w", err)
	case err != nil || info.Dir:
		return nil, nil
	}
	return new(manifest), nil
}

// compareMap compares the published files of a map with those of an attempt, and removes the attempt's directory.
func (t *tree) compareMap(id wire.AttemptID, first, m *manifest) error {
	if first.Attempt == id.String() {
		return nil
	}
	if len(m.Files) > 0 {
		if err := t.fs.RemoveAll(t.attempt(id)); err != nil {
			return fmt.Errorf("publish the files of a map: %w", err)
		}
	}
	if name := otherFile(first.Files, m.Files); name != "" {
		return fmt.Errorf("%w: %s of %s differs", errOtherFiles, name, cmp.Or(first.Attempt, "an earlier attempt"))
	}
	return nil
}

// otherFile returns the name of the first file in which two sorted lists differ; "": there is none.
func otherFile(a, b []manifestFile) string {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return min(a[i].Name, b[i].Name)
		}
	}
	if n := min(len(a), len(b)); len(a) != len(b) {
		return slices.Concat(a[n:], b[n:])[0].Name
	}
	return ""
}

// scratchFiles runs the code of a map in a directory of the staging directory, and
// calls read for each file. Then it removes them.
func (a *attempt) scratchFiles(name string, run func() error, read func(file, url string) error) (err error) {
	dir := dfs.Join(a.sub.Staging, a.id().Task.Job.String(), name+"."+a.id().String())
	out := &outputs{fs: a.staging, dir: dir, task: wire.TaskID{Job: a.id().Task.Job, Kind: wire.Map}, ofMap: a.plan().Reduces > 0,
		pulse: &a.task.pulse, files: make(map[string]*Output)}
	a.task.outputs = out
	defer func() {
		a.task.outputs = nil
		err = errors.Join(err, out.abort(), a.staging.RemoveAll(dir))
	}()
	if err := run(); err != nil {
		return err
	}
	if err := out.close(); err != nil {
		return err
	}
	for _, file := range out.sorted() {
		if err := read(file.name, dfs.Join(dir, file.name)); err != nil {
			return err
		}
	}
	return nil
}
