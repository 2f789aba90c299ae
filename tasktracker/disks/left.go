package disks

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/quernmr/quern/datadir"
	"github.com/quernmr/quern/shuffle"
	"github.com/quernmr/quern/tasktracker/core"
	"github.com/quernmr/quern/wire"
)

// TrashDir is the directory on a disk for files that are removed in the background.
const TrashDir = "trash"

// Leftover is a map output of an earlier process, with its report.
type Leftover struct {
	Disk    int    // index of its disk
	Dir     string // directory of its attempt
	Attempt wire.AttemptID
}

// RemoveJobs removes the files of jobs that an earlier process left on the disks. Unless
// all is set, it keeps and returns finished map outputs. After a failure a disk is bad; a
// failure in the tracker's own directory is an error.
func (s *Set) RemoveJobs(all bool) ([]Leftover, error) {
	var outputs []Leftover
	for i, disk := range s.cfg.Disks {
		if s.badAtStart[i] != nil {
			continue
		}
		found, err := cleanDisk(s.opened(disk), all)
		if err != nil && disk != s.cfg.Dir {
			s.badAtStart[i] = err
			continue
		}
		if err != nil {
			return nil, err
		}
		for j := range found {
			found[j].Disk = i
		}
		outputs = append(outputs, found...)
	}
	return outputs, nil
}

func cleanDisk(disk *datadir.Dir, all bool) ([]Leftover, error) {
	if !all {
		return moveToTrash(disk)
	}
	return nil, errors.Join(disk.Remove(core.JobsDir), disk.Remove(core.SharedDir), disk.Remove(TrashDir))
}

// moveToTrash moves the files of an earlier process out of the way of new attempts and
// homes. Map outputs with a report stay and are returned.
func moveToTrash(disk *datadir.Dir) ([]Leftover, error) {
	entries, err := entriesOf(disk.Root(), core.JobsDir)
	if err != nil {
		return nil, err
	}
	t := &trash{root: disk.Root()}
	var outputs []Leftover
	for _, e := range entries {
		dir := filepath.Join(core.JobsDir, e.Name())
		job, err := wire.ParseJobID(e.Name())
		if err != nil || !e.IsDir() {
			continue // not made by a tracker
		}
		if err := datadir.Permit(disk.Root(), dir); err != nil {
			return nil, err
		}
		attempts, err := entriesOf(disk.Root(), dir)
		if err != nil {
			return nil, err
		}
		for _, a := range attempts {
			name := filepath.Join(dir, a.Name())
			if err := datadir.Permit(disk.Root(), name); err != nil {
				return nil, err
			}
			leftover := Leftover{Dir: filepath.Join(disk.Path(), name)}
			if leftover.Attempt, err = wire.ParseAttemptID(a.Name()); err == nil && a.IsDir() && leftover.Attempt.Task.Job == job && leftover.complete() {
				outputs = append(outputs, leftover)
				t.put(core.WorkDir(name))
				continue
			}
			t.put(name)
		}
		_ = disk.Root().Remove(dir) // fails if it is not empty
	}
	if _, err := disk.Root().Lstat(core.SharedDir); err == nil {
		t.put(core.SharedDir)
	}
	return outputs, t.err
}

// entriesOf lists a directory of a disk. A missing one has no entries.
func entriesOf(root *os.Root, dir string) ([]os.DirEntry, error) {
	f, err := root.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.ReadDir(-1)
}

// complete reports whether the output and its report exist.
func (o *Leftover) complete() bool {
	if o.Attempt.Task.Kind != wire.Map {
		return false
	}
	_, errReport := os.Stat(filepath.Join(o.Dir, core.ReportFile))
	_, errOutput := os.Stat(filepath.Join(o.Dir, core.OutputFile))
	return errReport == nil && errOutput == nil
}

// trash moves files to TrashDir.
type trash struct {
	root *os.Root // of the disk
	n    int
	err  error
}

// put moves a file, unless an earlier move failed.
func (t *trash) put(name string) {
	if t.err != nil {
		return
	}
	if t.err = t.root.MkdirAll(TrashDir, 0o777); t.err != nil {
		return
	}
	for {
		t.n++
		to := filepath.Join(TrashDir, strconv.Itoa(t.n))
		if _, err := t.root.Lstat(to); err == nil {
			continue // an earlier process did not remove it
		}
		// The rename changes a directory itself, too.
		if err := errors.Join(datadir.Permit(t.root, name), t.root.Rename(name, to)); !errors.Is(err, fs.ErrNotExist) {
			t.err = err
		}
		return
	}
}

// Trash returns the TrashDir of each claimed disk.
func (s *Set) Trash() (dirs []string) {
	for _, disk := range s.cfg.Disks {
		if s.opened(disk) != nil {
			dirs = append(dirs, filepath.Join(disk, TrashDir))
		}
	}
	return dirs
}

// Verify reads the report of the output, and checks the output against it.
func (o *Leftover) Verify(ctx context.Context) (*wire.Report, error) {
	f, err := shuffle.OpenFile(filepath.Join(o.Dir, core.ReportFile))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	report, err := wire.ReadAs[*wire.Report](f)
	if err != nil {
		return nil, fmt.Errorf("read report: %w", err)
	}
	if report.Attempt != o.Attempt || report.State != wire.AttemptSucceeded || report.Result == nil || report.Result.Output == nil {
		return nil, fmt.Errorf("the report is for %v in state %v", report.Attempt, report.State)
	}
	index, err := shuffle.Verify(ctx, filepath.Join(o.Dir, core.OutputFile))
	if err != nil {
		return nil, err
	}
	if got, want := index.Digest(), report.Result.Output.Digest; got != want {
		return nil, fmt.Errorf("output has digest %016x, its report says %016x", got, want)
	}
	return report, nil
}

// WriteReport writes a map output's report beside it, for a later process.
func WriteReport(file string, report *wire.Report) error {
	frame, err := wire.Append(nil, report)
	if err != nil {
		return err
	}
	return shuffle.ReplaceFile(file, frame)
}
