package runtime

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/wire"
)

// endSetups prevents all setup attempts from putting a directory into place.
func (t *tree) endSetups() error {
	staged, stopped := dfs.Join(t.staging, wire.StagedSubmission), dfs.Join(t.staging, wire.StagedStopped)
	if err := t.fs.RenameFile(staged, stopped); err != nil && !missing(err) {
		return err
	}
	dirs, err := t.fs.List(t.sibling(".new"))
	if err != nil && !missing(err) {
		return err
	}
	for _, dir := range dirs {
		if err := t.fs.RenameDir(dir.Name, dir.Name+fencedSuffix); err != nil && !missing(err) {
			return err
		}
	}
	return nil
}

// undoMoves moves back the files that a failed job commit moved before it wrote _SUCCESS.
// If a file is still in its task's directory, the target belongs to another program, and
// the move fails. It also fails if a concurrent cleanup got further; both are no errors.
func (t *tree) undoMoves() error {
	if done, err := t.exists(t.success()); err != nil || done {
		return err
	}
	dirs, err := t.fs.List(t.below("t"))
	if err != nil {
		return fmt.Errorf("list committed tasks: %w", err)
	}
	for _, dir := range dirs {
		task, err := wire.ParseTaskID(dfs.Base(dir.Name))
		if err != nil {
			continue // not this job's
		}
		m, err := t.committed(task)
		if err != nil || m == nil {
			return err
		}
		for _, f := range m.Files {
			err := t.fs.RenameFile(dfs.Join(t.out, f.Name), dfs.Join(dir.Name, f.Name))
			if err != nil && !missing(err) && !errors.Is(err, fs.ErrExist) {
				return fmt.Errorf("take back moved output: %w", err)
			}
		}
	}
	return nil
}

// Discard removes an output that a job of a submission was writing when its cluster ended for ever. It leaves the
// outputs of other submissions, and a complete one. Staging is the URL of the submission's directory.
func Discard(files dfs.FS, output, staging, key string) error {
	t := &tree{fs: files, out: output, key: key, staging: staging}
	owner, err := t.readOwner()
	if err != nil {
		return err
	}
	job, of, _ := strings.Cut(owner, " ")
	if of != key {
		return nil
	}
	if t.job, err = wire.ParseJobID(job); err != nil {
		return fmt.Errorf("%s: %w: %w", t.owner(), ErrCorrupt, err)
	}
	return t.cleanup()
}

// cleanup removes the output of a failed or killed job, and only files of this job.
func (t *tree) cleanup() error {
	if err := t.endSetups(); err != nil {
		return fmt.Errorf("clean up: %w", err)
	}
	old := t.sibling(".old")
	state, ownerErr := t.checkOwner()
	if state == foreign && !isFatal(ownerErr) {
		return fmt.Errorf("clean up: %w", ownerErr)
	}
	if state == ours {
		if err := t.undoMoves(); err != nil {
			return fmt.Errorf("clean up: %w", err)
		}
		if done, err := t.exists(t.success()); err != nil {
			return fmt.Errorf("clean up: %w", err)
		} else if !done { // a commit that failed may have made it
			for _, name := range []string{skipLogs, TypesName} {
				if err := t.fs.RemoveAll(dfs.Join(t.out, name)); err != nil {
					return fmt.Errorf("clean up: %w", err)
				}
			}
		}
		// A lost cleanup attempt may still run and rename it first.
		if err := t.fs.RenameDir(t.temporary(), old); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("clean up: %w", err)
		}
	}
	moved, err := t.exists(old)
	moved = moved || err == nil && state == ours
	if moved {
		err = t.fs.Remove(t.out) // fails if there are files of others
	}
	if err != nil && !missing(err) && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("clean up: %w", err)
	}
	for _, dir := range []string{old, t.sibling(".new")} {
		if err := t.fs.RemoveAll(dir); err != nil {
			return fmt.Errorf("clean up: %w", err)
		}
	}
	return nil
}
