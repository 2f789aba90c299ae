package tasktracker

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/quernmr/quern/datadir"
	"github.com/quernmr/quern/tasktracker/core"
	"github.com/quernmr/quern/tasktracker/disks"
	"github.com/quernmr/quern/tasktracker/process"
	"github.com/quernmr/quern/tasktracker/program"
	"github.com/quernmr/quern/tasktracker/token"
)

const (
	clusterName = "cluster"
	stagingName = "staging"
)

// layout has the names of the files that a tracker makes in its directory and on its disks.
var layout = datadir.Layout{
	Daemon: "task tracker", Marker: datadir.TaskTracker,
	Dirs:  []string{core.JobsDir, core.SharedDir, core.LogsDir, core.RunDir, program.Dir, token.Dir, disks.TrashDir},
	Files: []string{process.RecordFile, process.NewRecordFile, clusterName, clusterName + ".new", stagingName, stagingName + ".new", process.GroupFile, disks.ProbeFile},
}

// removeLeftovers kills the workers of an earlier process and removes its files, except for
// files that this process can use. Workers go first, as they may write.
func removeLeftovers(cfg *Config, dirs *disks.Set) ([]disks.Leftover, error) {
	if err := process.KillLeftover(cfg.Dir, cfg.Logger); err != nil {
		return nil, err
	}
	names := []string{core.RunDir, program.Dir}
	if cfg.Temporary {
		names = append(names, core.LogsDir, token.Dir)
	}
	if !slices.Contains(cfg.Disks, cfg.Dir) { // then only service attempts use jobs there
		names = append(names, core.JobsDir)
	}
	for _, name := range names {
		if err := dirs.Remove(filepath.Join(cfg.Dir, name)); err != nil {
			return nil, err
		}
	}
	outputs, err := dirs.RemoveJobs(cfg.Temporary)
	if err != nil {
		return nil, err
	}
	return outputs, process.StartRecord(cfg.Dir)
}

// readLine reads a file of one line. It returns "" for a missing file.
func readLine(dir, name string) (string, error) {
	text, err := os.ReadFile(filepath.Join(dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read the file %s: %w", name, err)
	}
	return strings.TrimSpace(string(text)), nil
}

// writeLine writes a file of one line, completely or not at all.
func writeLine(dir, name, line string) error {
	file := filepath.Join(dir, name)
	if err := os.WriteFile(file+".new", []byte(line+"\n"), 0o666); err != nil {
		return fmt.Errorf("write the file %s: %w", name, err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		return fmt.Errorf("write the file %s: %w", name, err)
	}
	return nil
}

func (l *loop) storeLine(name, line string) {
	if err := writeLine(l.cfg.Dir, name, line); err != nil {
		l.cancel(err)
	}
}
