package runtime

import (
	"fmt"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/wire"
)

// SideInput returns the records of side files declared in the job, one after the other, as one split of an input. format is
// nil for a built-in format. As with [Task.File], the files must be as they were when the job started, and are compared
// again after the code has run. Nothing is read before the first record. Reading counts as activity, but adds
// neither records nor bytes to the counters of the attempt.
func (t *Task) SideInput(names []string, in *wire.InputPlan, format Format) (*Split, error) {
	if format == nil {
		format = formatOf(in)
	}
	s, err := readSettings(t.Plan.Properties)
	if err != nil {
		return nil, err
	}
	s.splitMin, s.linesPerMap = 1<<62, 1<<31-1 // one reader reads all
	files, err := t.sideInputFiles(names, in, format)
	if err != nil {
		return nil, err
	}
	split := newSplit(t.Ctx, t.fs, splitEntry{}, in, s, &t.pulse)
	entries, err := planSplits(0, in, format, files, s, nil, split.Open)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		split.chunks = append(split.chunks, e.Chunks...)
	}
	split.ownFormat = false
	return split, nil
}

func (t *Task) sideInputFiles(names []string, in *wire.InputPlan, format Format) ([]dfs.Info, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var files []dfs.Info
	for _, name := range names {
		more, err := t.openSideFiles(name)
		for i := 0; i < len(more) && err == nil; i++ {
			err = format.CheckFile(more[i])
		}
		if err != nil {
			return nil, fmt.Errorf("side file %q: %w", name, inputError(err))
		}
		files = append(files, more...)
	}
	if in.Types == "" {
		return files, nil
	}
	files, err := typedFiles(t.fs, in, files)
	if err != nil {
		return nil, inputError(err)
	}
	return files, nil
}

// Close frees what the split's reader keeps. Maps close their split themselves.
func (s *Split) Close() { s.close() }
