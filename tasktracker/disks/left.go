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

// TrashDir has what is being removed from a disk in the background.
const TrashDir = "trash"

// Left is a map output that an earlier process seems to have finished.
type Left struct {
	Disk    int    // its number
	Dir     string // the attempt's
	Attempt wire.AttemptID
}

// Sift removes what an earlier process has left of jobs on the disks, but for map outputs
// that it seems to have finished; fresh: with these. A disk for which that cannot be done
// is bad, unless it is the tracker's own directory.
func (s *Set) Sift(fresh bool) ([]Left, error) {
	var outputs []Left
	for i, disk := range s.cfg.Disks {
		if s.bad[i] != nil {
			continue
		}
		found, err := cleanDisk(s.at(disk), fresh)
		if err != nil && disk != s.cfg.Dir {
			s.bad[i] = err
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

func cleanDisk(disk *datadir.Dir, fresh bool) ([]Left, error) {
	if !fresh {
		return sift(disk)
	}
	return nil, errors.Join(disk.Remove(core.JobsDir), disk.Remove(TrashDir))
}

// sift goes through what an earlier process has left of jobs on a disk. Map outputs
// with a report stay; all else is moved out of the way of new attempts and homes.
func sift(disk *datadir.Dir) ([]Left, error) {
	entries, err := entriesOf(disk.Root(), core.JobsDir)
	if err != nil {
		return nil, err
	}
	t := &trash{root: disk.Root()}
	var outputs []Left
	for _, e := range entries {
		dir := filepath.Join(core.JobsDir, e.Name())
		job, err := wire.ParseJobID(e.Name())
		if err != nil || !e.IsDir() {
			continue // no tracker has made it
		}
		attempts, err := entriesOf(disk.Root(), dir)
		if err != nil {
			return nil, err
		}
		for _, a := range attempts {
			name := filepath.Join(dir, a.Name())
			left := Left{Dir: filepath.Join(disk.Path(), name)}
			if left.Attempt, err = wire.ParseAttemptID(a.Name()); err == nil && a.IsDir() && left.Attempt.Task.Job == job && left.complete() {
				outputs = append(outputs, left)
				t.put(core.WorkDir(name))
				continue
			}
			t.put(name)
		}
		_ = disk.Root().Remove(dir) // if nothing is left in it
	}
	return outputs, t.err
}

// entriesOf lists a directory of a disk, where no link may lead out; none: it is missing.
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

// complete says whether both files are there, which is so only for what was reported.
func (o *Left) complete() bool {
	if o.Attempt.Task.Kind != wire.Map {
		return false
	}
	_, errReport := os.Stat(filepath.Join(o.Dir, core.ReportFile))
	_, errOutput := os.Stat(filepath.Join(o.Dir, core.OutputFile))
	return errReport == nil && errOutput == nil
}

// trash is a directory of things to be removed. Moving them there is quick.
type trash struct {
	root *os.Root // of the disk
	n    int
	err  error
}

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
			continue // of a predecessor that did not get that far
		}
		if err := t.root.Rename(name, to); !errors.Is(err, fs.ErrNotExist) {
			t.err = err
		}
		return
	}
}

// Trash lists where things are that are to be removed.
func (s *Set) Trash() (dirs []string) {
	for _, disk := range s.cfg.Disks {
		if s.at(disk) != nil {
			dirs = append(dirs, filepath.Join(disk, TrashDir))
		}
	}
	return dirs
}

// Verify reads the report of the output, and checks every byte of the output against it.
func (o *Left) Verify(ctx context.Context) (*wire.Report, error) {
	f, err := os.Open(filepath.Join(o.Dir, core.ReportFile))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	report, err := wire.ReadAs[*wire.Report](f)
	if err != nil {
		return nil, fmt.Errorf("read report: %w", err)
	}
	if report.Attempt != o.Attempt || report.State != wire.AttemptSucceeded || report.Result == nil || report.Result.Output == nil {
		return nil, fmt.Errorf("report is of %v, %v", report.Attempt, report.State)
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
	if err := os.WriteFile(file+".new", frame, 0o666); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}
