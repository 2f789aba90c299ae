package runtime

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/wire"
)

// Attempts read side files in place. So setup stages their sizes and modification times. An
// attempt that uses a side file compares these before and after its code runs. The staged
// file is msgpack of sideFiles, then its hash, as for the cuts.
const maxSideFiles = 64 << 20

type sideFiles struct {
	Files []sideFile `msgpack:"Files"` // in order, for each side file
}

type sideFile struct {
	Name     string `msgpack:"Name"`     // of the side file
	URL      string `msgpack:"URL"`      // of one of its files
	Size     int64  `msgpack:"Size"`     // bytes
	Modified int64  `msgpack:"Modified"` // modification time, Unix nanoseconds
}

func sideFilesName(staging string, job wire.JobID) string {
	return dfs.Join(staging, job.String(), wire.StagedFiles)
}

// SideFiles lists the files that make up a side file, in order. As for an input, the path
// names a file or directory, or is a pattern. If the side file is a directory, it names an
// archive, or a directory with all files below it.
func SideFiles(f dfs.FS, name, path string) ([]dfs.Info, error) {
	if !IsDirectory(name) {
		return filesAt(f, path, selection{})
	}
	return directoryFiles(f, path)
}

func sideFilesOf(name string, infos []dfs.Info) (all []sideFile) {
	for _, info := range infos {
		all = append(all, sideFile{name, info.Name, info.Size, info.Modified.UnixNano()})
	}
	return all
}

// stageSideFiles writes the list of the job's side files, unless an earlier attempt did so.
func (a *attempt) stageSideFiles() error {
	plan := a.plan()
	names := slices.Sorted(maps.Keys(plan.Files))
	for _, r := range plan.Results {
		names = append(names, r.Name)
	}
	if len(names) == 0 {
		return nil
	}
	name := sideFilesName(a.sub.Staging, a.id().Task.Job)
	if _, err := a.fs.Stat(name); !missing(err) {
		return err
	}
	var all sideFiles
	for _, side := range names {
		files, err := a.task.listSide(side)
		if err != nil {
			return fmt.Errorf("%s: %w", SideName(side), inputError(err))
		}
		all.Files = append(all.Files, sideFilesOf(side, files)...)
	}
	data, err := encodeHashed(&all)
	if err != nil {
		return err
	}
	if err := writeOnce(a.staging, name, name+"."+a.id().String(), data); err != nil {
		return fmt.Errorf("stage the list of side files: %w", err)
	}
	return nil
}

// listSide lists the files of a side file as they are now.
func (t *Task) listSide(name string) ([]dfs.Info, error) {
	if from := t.Plan.SideResult(name); from > 0 {
		return t.partsOf(from)
	}
	return SideFiles(t.fs, name, t.Plan.Files[name])
}

// openSideFiles lists the files of a side file. They are checked again after the code has
// run.
func (t *Task) openSideFiles(name string) ([]dfs.Info, error) {
	if err := t.checkDeclared(name); err != nil {
		return nil, err
	}
	t.usedSides = append(t.usedSides, name)
	return t.currentSideFiles(name)
}

// currentSideFiles lists the files of a side file and compares them with the list that the
// job's setup staged.
func (t *Task) currentSideFiles(name string) ([]dfs.Info, error) {
	files, err := t.listSide(name)
	if missing(err) || errors.Is(err, ErrInput) {
		return nil, Fatal(err)
	}
	if err != nil || t.stagedList == "" {
		return files, err
	}
	if t.stagedSides == nil {
		data, err := readAll(t.fs, t.stagedList, maxSideFiles)
		sides := new(sideFiles)
		if err == nil {
			err = decodeHashed(data, sides)
		}
		if err != nil {
			return nil, fmt.Errorf("read the list of side files %s: %w", t.stagedList, err)
		}
		t.stagedSides = sides
	}
	staged := slices.DeleteFunc(slices.Clone(t.stagedSides.Files), func(f sideFile) bool { return f.Name != name })
	current := sideFilesOf(name, files)
	for i := range max(len(staged), len(current)) {
		if i < min(len(staged), len(current)) && staged[i] == current[i] {
			continue
		}
		other := append(staged[min(i, len(staged)):], current[min(i, len(current)):]...)[0] // removed, new or changed
		return nil, changedError(other.URL)
	}
	return files, nil
}

// checkSideFiles returns an error if a used side file has changed.
func (t *Task) checkSideFiles() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, name := range t.usedSides {
		if _, err := t.currentSideFiles(name); err != nil {
			return fmt.Errorf("%s: %w", SideName(name), err)
		}
	}
	return nil
}

// runCode runs the job's code. If a side file has changed, it returns that error: the
// code's own error may follow from it. Code that returns after the end of Task.Ctx has failed,
// because it may have read only a part of its input. where returns the place for a panic, or is nil.
func (a *attempt) runCode(code func() error, where func() string) error {
	err := protect(code, where)
	if err == nil {
		err = context.Cause(a.task.Ctx)
	}
	if changed := a.task.checkSideFiles(); err == nil || isFatal(changed) {
		return changed
	}
	return err
}
