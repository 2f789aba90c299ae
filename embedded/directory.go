package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/quernmr/quern/datadir"
	"github.com/quernmr/quern/dfs/local"
	"github.com/quernmr/quern/tasktracker/process"
)

// directory is a cluster's own directory, <parent>/quern-<uid>/<random>. It is locked
// while its cluster lives; the kernel unlocks it when the process dies, however it dies.
type directory struct {
	path string
	dir  *datadir.Dir
}

const (
	trackerDir = "tracker" // and a number
	stagingDir = "staging"
	programDir = "program" // and something random
)

// layout is what a cluster makes in its directory.
var layout = datadir.Layout{
	Daemon: "embedded cluster", Marker: "quern-embedded",
	Dirs: []string{trackerDir + "*", stagingDir, programDir + "*"},
}

func openDirectory(parent string) (*directory, error) {
	if parent == "" {
		parent = os.TempDir()
	}
	parent, err := local.Path(parent)
	if err != nil {
		return nil, fmt.Errorf("find directory of embedded cluster: %w", err)
	}
	root := filepath.Join(parent, fmt.Sprintf("quern-%d", os.Getuid()))
	path, err := makeDirectory(root)
	if err != nil {
		return nil, fmt.Errorf("make directory of embedded cluster: %w; name another place with TMPDIR or -D quern.embedded.dir", err)
	}
	removeDead(root)
	dir, err := datadir.Reopen(path, layout)
	if err != nil {
		return nil, errors.Join(err, os.Remove(path))
	}
	return &directory{path, dir}, nil
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
		if !errors.Is(err, fs.ErrNotExist) { // else an ending cluster has just removed the root
			return "", err
		}
	}
}

// removeDead removes the directories of clusters whose process has died, and ends
// what their trackers had started.
func removeDead(root string) {
	locks, _ := filepath.Glob(filepath.Join(root, "*", datadir.LockName)) // the pattern is well-formed
	for _, name := range locks {
		dir, err := datadir.Reopen(filepath.Dir(name), layout)
		if err != nil {
			continue // its cluster lives, or is just ending, or it is none
		}
		bury(dir)
	}
}

func bury(cluster *datadir.Dir) {
	trackers, _ := filepath.Glob(filepath.Join(cluster.Path(), trackerDir+"*")) // the pattern is well-formed
	for _, dir := range trackers {
		if process.Bury(dir) != nil {
			cluster.Close() // the next start tries again
			return
		}
	}
	_ = cluster.Destroy() // likewise
}

func (d *directory) remove() error {
	err := d.dir.Destroy()
	os.Remove(filepath.Dir(d.path)) // succeeds if this cluster was the last
	return err
}
