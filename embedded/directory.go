//go:build unix

package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/quernmr/quern/datadir"
	"github.com/quernmr/quern/dfs/local"
	"github.com/quernmr/quern/tasktracker/process"
)

// directory is the directory of a cluster, <parent>/quern-<uid>/<random>. It is locked while
// the cluster runs. The kernel unlocks it when the process dies.
type directory struct {
	path string
	dir  *datadir.Dir
}

const (
	trackerDir = "tracker" // and a number
	stagingDir = "staging"
	programDir = "program" // and a random suffix
)

// layout has the names of the files that a cluster makes in its directory.
var layout = datadir.Layout{
	Daemon: "embedded cluster", Marker: datadir.Embedded,
	Dirs: []string{trackerDir + "*", stagingDir, programDir + "*"},
}

func openDirectory(parent string) (*directory, error) {
	root, err := rootBelow(parent)
	if err != nil {
		return nil, fmt.Errorf("find the directory of the embedded cluster: %w", err)
	}
	path, err := makeDirectory(root)
	if err != nil {
		return nil, fmt.Errorf("make the directory of the embedded cluster: %w; set another parent with TMPDIR or -D quern.embedded.dir", err)
	}
	removeDeadClusters(root)
	dir, err := datadir.Reopen(path, layout)
	if err != nil {
		return nil, errors.Join(err, os.Remove(path))
	}
	return &directory{path, dir}, nil
}

// rootBelow returns the directory of all clusters of this user.
func rootBelow(parent string) (string, error) {
	if parent == "" {
		parent = os.TempDir()
	}
	parent, err := local.Path(parent)
	return filepath.Join(parent, fmt.Sprintf("quern-%d", os.Getuid())), err
}

func makeDirectory(root string) (string, error) {
	for {
		err := datadir.Make(root)
		if err == nil {
			var path string
			if path, err = os.MkdirTemp(root, ""); err == nil {
				return path, nil
			}
		}
		if !errors.Is(err, fs.ErrNotExist) { // if it does not exist, another cluster just removed the root at its end
			return "", err
		}
	}
}

// removeDeadClusters removes the directories of clusters of dead processes, and kills the
// workers of these clusters.
func removeDeadClusters(root string) {
	locks, _ := filepath.Glob(filepath.Join(root, "*", datadir.LockName)) // the pattern is well-formed
	for _, name := range locks {
		dir, err := datadir.Reopen(filepath.Dir(name), layout)
		if err != nil {
			continue // its cluster runs or ends now, or no cluster made it
		}
		removeLeftover(dir)
	}
}

func removeLeftover(cluster *datadir.Dir) {
	trackers, _ := filepath.Glob(filepath.Join(cluster.Path(), trackerDir+"*")) // the pattern is well-formed
	for _, dir := range trackers {
		if process.KillLeftover(dir, slog.New(slog.DiscardHandler)) != nil {
			cluster.Close() // the next start tries again
			return
		}
	}
	_ = cluster.Destroy() // if it fails, the next start tries again
}

// keep closes the directory, so that the next cluster does not take it for one of a dead process.
func (d *directory) keep() error {
	return errors.Join(d.dir.Close(), os.Remove(filepath.Join(d.path, datadir.LockName)))
}

func (d *directory) remove() error {
	err := d.dir.Destroy()
	os.Remove(filepath.Dir(d.path)) // fails if other clusters remain
	return err
}

// Sessions returns the URL of the directory, beside the clusters', for sessions of drivers, which outlive
// a cluster. The parent is as in [Config].
func Sessions(parent string) (string, error) {
	root, err := rootBelow(parent)
	if err == nil {
		err = datadir.Make(root)
	}
	if err != nil {
		return "", fmt.Errorf("make the directory of sessions: %w; set another parent with TMPDIR or -D quern.embedded.dir", err)
	}
	return "file://" + filepath.Join(root, "sessions"), nil
}
