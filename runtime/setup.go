package runtime

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/locality"
	"github.com/quernmr/quern/wire"
)

// setup checks input and output, and stages the splits, the list of side files and the cuts
// of a total order or the keys that a join spreads. Only then does it make the output's directories, so a refused job
// leaves no output.
func (a *attempt) setup() error {
	state, err := a.tree.checkOwner()
	if state == foreign {
		return err
	}
	staged := dfs.Join(a.sub.Staging, a.id().Task.Job.String())
	if err := mkdir(a.staging, staged); err != nil { // not MkdirAll: a removed staging directory must not come back
		return fmt.Errorf("make staging directory: %w", err)
	}
	if err := a.stageSplits(); err != nil {
		return err
	}
	if err := a.stageSideFiles(); err != nil {
		return err
	}
	if a.dividesInput() {
		if err := a.stageCuts(); err != nil {
			return err
		}
	}
	if err := a.checkTwice(); err != nil {
		return err
	}
	if state == unclaimed {
		if err := a.makeOutput(); err != nil {
			return unwritable(err)
		}
	}
	// Also sync files of an earlier attempt, which may have died before its sync.
	for _, dir := range []string{staged, a.sub.Staging} {
		if err := a.staging.SyncDir(dir); err != nil {
			return fmt.Errorf("stage: %w", err)
		}
	}
	if err := a.tree.fs.SyncDir(dfs.Dir(a.tree.out)); err != nil {
		return fmt.Errorf("make output: %w", err)
	}
	return nil
}

func (a *attempt) makeOutput() (err error) {
	parent := dfs.Dir(a.tree.out)
	if a.plan().Output == "" {
		err = mkdir(a.staging, parent) // in the staging directory
	} else {
		err = a.tree.fs.MkdirAll(parent)
	}
	if err != nil {
		return fmt.Errorf("make the output's parent: %w", err)
	}
	return a.tree.build(a.id())
}

// unwritable marks an error as fatal if no attempt can write the output.
func unwritable(err error) error {
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) || errors.Is(err, syscall.ENOTDIR) ||
		errors.Is(err, syscall.ENAMETOOLONG) {
		return Fatal(err)
	}
	return err
}

// mkdir makes a directory unless it exists.
func mkdir(f dfs.FS, name string) error {
	if err := f.Mkdir(name); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// stageSplits computes and writes the splits, unless an earlier attempt did so.
func (a *attempt) stageSplits() error {
	name := splitsName(a.sub.Staging, a.id().Task.Job)
	_, err := a.fs.Stat(name)
	if missing(err) {
		splits, planErr := a.jobSplits()
		if planErr != nil {
			return planErr
		}
		data, _ := encodeSplits(splits)
		if len(data) > maxSplitsFile {
			return Fatal(fmt.Errorf("%w: its %d splits take %d bytes to describe, the limit is %d", ErrInput, len(splits), len(data), maxSplitsFile))
		}
		err = writeOnce(a.staging, name, name+"."+a.id().String(), data)
	}
	if err != nil {
		return fmt.Errorf("stage splits: %w", err)
	}
	infos, hash, err := ReadSplits(a.fs, a.sub.Staging, a.id().Task.Job)
	if err != nil {
		return err
	}
	a.result.Splits = &wire.SplitsDone{Maps: len(infos), Hash: hash}
	return nil
}

func (a *attempt) openSplit(n int) (*Split, error) {
	entry, err := readEntry(a.fs, splitsName(a.sub.Staging, a.id().Task.Job), n)
	if err != nil {
		return nil, err
	}
	return a.newSplit(n, entry)
}

func (a *attempt) newSplit(n int, entry splitEntry) (*Split, error) {
	if entry.Input < 0 || entry.Input >= len(a.plan().Inputs) {
		return nil, Fatal(fmt.Errorf("split %d: %w: it belongs to input %d", n, ErrCorrupt, entry.Input))
	}
	in := &a.plan().Inputs[entry.Input]
	split := newSplit(a.task.Ctx, a.fs, entry, in, a.settings, &a.task.pulse)
	split.meter.host, split.meter.rack = locality.HostKey(a.cmd.Host), a.cmd.Rack
	return split, nil
}
