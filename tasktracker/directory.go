package tasktracker

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/quernmr/quern/datadir"
	"github.com/quernmr/quern/tasktracker/core"
	"github.com/quernmr/quern/tasktracker/process"
	"github.com/quernmr/quern/tasktracker/program"
	"github.com/quernmr/quern/tasktracker/token"
)

const (
	clusterName = "cluster"
	stagingName = "staging"
)

// layout is what a tracker makes in its directory and on its disks.
var layout = datadir.Layout{
	Daemon: "task tracker", Marker: "quern-tasktracker",
	Dirs:  []string{core.JobsDir, core.LogsDir, core.RunDir, program.Dir, token.Dir, trashName},
	Files: []string{process.RecordFile, clusterName, clusterName + ".new", stagingName, stagingName + ".new", process.GroupFile, probeName},
}

// directories are the tracker's directory and its disks, as far as they could be had.
type directories struct {
	mu     sync.Mutex
	open   map[string]*datadir.Dir // by path
	closed bool
}

// claim makes a directory, if need be, and locks it: a second tracker there would kill
// the first one's workers. One that is claimed stays so.
func (d *directories) claim(path string) error {
	if d.at(path) != nil {
		return nil
	}
	dir, err := datadir.Open(path, layout) // for which a sick disk may take for ever
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.open[path] != nil || d.closed:
		if err == nil {
			dir.Close()
		}
		return nil
	case err != nil:
		return err
	}
	if d.open == nil {
		d.open = make(map[string]*datadir.Dir)
	}
	d.open[path] = dir
	return nil
}

func (d *directories) at(path string) *datadir.Dir {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.open[path]
}

// remove removes a file or tree below one of them, and no other.
func (d *directories) remove(path string) error {
	d.mu.Lock()
	var in *datadir.Dir
	var name string
	for at, dir := range d.open {
		if below, ok := strings.CutPrefix(path, at+"/"); ok {
			in, name = dir, below
		}
	}
	d.mu.Unlock()
	if in == nil {
		return fmt.Errorf("%s is in no directory of this tracker", path)
	}
	return in.Remove(name)
}

func (d *directories) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	for _, dir := range d.open {
		dir.Close()
	}
}

// claimAll claims the tracker's directory and its disks. A disk that cannot be had,
// other than because it is in use, is none to run without.
func claimAll(cfg *Config) (dirs *directories, bad map[int]error, err error) {
	dirs, bad = new(directories), make(map[int]error)
	if err := dirs.claim(cfg.Dir); err != nil {
		return nil, nil, err
	}
	for i, disk := range cfg.Disks {
		err := dirs.claim(disk)
		if errors.Is(err, datadir.ErrInUse) {
			dirs.close()
			return nil, nil, err
		}
		if err != nil {
			bad[i] = err
		}
	}
	return dirs, bad, nil
}

// clean ends what a predecessor has left running and removes its files, but for
// what it may have left to this one. Processes go first, as they may write.
func clean(cfg *Config, dirs *directories, bad map[int]error) ([]leftOutput, error) {
	if err := process.Bury(cfg.Dir); err != nil {
		return nil, err
	}
	own := dirs.at(cfg.Dir)
	names := []string{core.RunDir, program.Dir}
	if cfg.Fresh {
		names = append(names, core.LogsDir, token.Dir)
	}
	if !slices.Contains(cfg.Disks, cfg.Dir) { // of service attempts
		names = append(names, core.JobsDir)
	}
	for _, name := range names {
		if err := own.Remove(name); err != nil {
			return nil, err
		}
	}
	var outputs []leftOutput
	for i, disk := range cfg.Disks {
		if bad[i] != nil {
			continue
		}
		found, err := cleanDisk(dirs.at(disk), cfg.Fresh)
		if err != nil && disk != cfg.Dir {
			bad[i] = err
			continue
		}
		if err != nil {
			return nil, err
		}
		for j := range found {
			found[j].disk = i
		}
		outputs = append(outputs, found...)
	}
	return outputs, process.Begin(cfg.Dir)
}

func cleanDisk(disk *datadir.Dir, fresh bool) ([]leftOutput, error) {
	if !fresh {
		return sift(disk)
	}
	return nil, errors.Join(disk.Remove(core.JobsDir), disk.Remove(trashName))
}

// readWord reads what is kept in a file of one line; empty: nothing.
func readWord(dir, name string) (string, error) {
	text, err := os.ReadFile(filepath.Join(dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read %s of directory: %w", name, err)
	}
	return strings.TrimSpace(string(text)), nil
}

// writeWord keeps it.
func writeWord(dir, name, word string) error {
	file := filepath.Join(dir, name)
	if err := os.WriteFile(file+".new", []byte(word+"\n"), 0o666); err != nil {
		return fmt.Errorf("keep %s of directory: %w", name, err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		return fmt.Errorf("keep %s of directory: %w", name, err)
	}
	return nil
}

func (l *loop) keep(name, word string) {
	if err := writeWord(l.cfg.Dir, name, word); err != nil {
		l.cancel(err)
	}
}
