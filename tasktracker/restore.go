package tasktracker

import (
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

// leftOutput is a map output that an earlier process seems to have finished.
type leftOutput struct {
	disk int
	dir  string // the attempt's
	id   wire.AttemptID
}

// sift goes through what an earlier process has left of jobs on a disk. Map outputs
// with a report stay; all else is moved out of the way of new attempts and homes.
func sift(disk *datadir.Dir) ([]leftOutput, error) {
	entries, err := entriesOf(disk.Root(), core.JobsDir)
	if err != nil {
		return nil, err
	}
	t := &trash{root: disk.Root()}
	var outputs []leftOutput
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
			left := leftOutput{dir: filepath.Join(disk.Path(), name)}
			if left.id, err = wire.ParseAttemptID(a.Name()); err == nil && a.IsDir() && left.id.Task.Job == job && left.complete() {
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
func (o *leftOutput) complete() bool {
	if o.id.Task.Kind != wire.Map {
		return false
	}
	_, errReport := os.Stat(filepath.Join(o.dir, core.ReportFile))
	_, errOutput := os.Stat(filepath.Join(o.dir, core.OutputFile))
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
	if t.err = t.root.MkdirAll(trashName, 0o777); t.err != nil {
		return
	}
	for {
		t.n++
		to := filepath.Join(trashName, strconv.Itoa(t.n))
		if _, err := t.root.Lstat(to); err == nil {
			continue // of a predecessor that did not get that far
		}
		if err := t.root.Rename(name, to); !errors.Is(err, fs.ErrNotExist) {
			t.err = err
		}
		return
	}
}

// restore verifies the map outputs that an earlier process has left, and has the
// core take the good ones in. The others are removed.
func (l *loop) restore(outputs []leftOutput) {
	for i := range outputs {
		o := &outputs[i]
		report, err := l.verify(o)
		if l.ctx.Err() != nil {
			return // it says nothing of the output
		}
		if err == nil && l.tokens.Get(o.id.Task.Job) == "" {
			err = errors.New("the job's token is lost, so it could be served to nobody")
		}
		if err != nil {
			l.cfg.Logger.Info("a map output of an earlier run is of no use", "attempt", o.id, "error", err)
			l.remove(o.dir)
			continue
		}
		l.event(core.Restored{Disk: o.disk, Report: *report})
	}
	l.event(core.RestoreEnded{})
	for _, disk := range l.cfg.Disks {
		if l.dirs.at(disk) != nil {
			l.remove(filepath.Join(disk, trashName))
		}
	}
}

func (l *loop) verify(o *leftOutput) (*wire.Report, error) {
	f, err := os.Open(filepath.Join(o.dir, core.ReportFile))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	report, err := wire.ReadAs[*wire.Report](f)
	if err != nil {
		return nil, fmt.Errorf("read report: %w", err)
	}
	if report.Attempt != o.id || report.State != wire.AttemptSucceeded || report.Result == nil || report.Result.Output == nil {
		return nil, fmt.Errorf("report is of %v, %v", report.Attempt, report.State)
	}
	index, err := shuffle.Verify(l.ctx, filepath.Join(o.dir, core.OutputFile))
	if err != nil {
		return nil, err
	}
	if got, want := index.Digest(), report.Result.Output.Digest; got != want {
		return nil, fmt.Errorf("output has digest %016x, its report says %016x", got, want)
	}
	return report, nil
}

// record writes a map output's report beside it, for a later process.
func (l *loop) record(c core.Record) {
	ev := core.Recorded{Attempt: c.Report.Attempt}
	if err := writeReport(c.File, c.Report); err != nil {
		ev.Error = err.Error()
		l.cfg.Logger.Warn("a map output will not outlive this process", "attempt", c.Report.Attempt, "error", err)
	}
	l.event(ev)
}

func writeReport(file string, report *wire.Report) error {
	frame, err := wire.Append(nil, report)
	if err != nil {
		return err
	}
	if err := os.WriteFile(file+".new", frame, 0o666); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}
