package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/quernmr/quern/tasktracker"
)

// directory is a cluster's own directory, <parent>/quern-<uid>/<random>. A locked
// file in it says that its cluster lives; the kernel unlocks it when the process
// dies, however it dies.
type directory struct {
	path string
	lock *os.File
}

const (
	lockName   = "lock"
	trackerDir = "tracker" // and a number
)

func openDirectory(parent string) (*directory, error) {
	if parent == "" {
		parent = os.TempDir()
	}
	parent, err := filepath.Abs(parent)
	if err != nil {
		return nil, fmt.Errorf("find directory of embedded cluster: %w", err)
	}
	root := filepath.Join(parent, fmt.Sprintf("quern-%d", os.Getuid()))
	path, err := makeDirectory(root)
	if err != nil {
		return nil, fmt.Errorf("make directory of embedded cluster: %w", err)
	}
	removeDead(root)
	lock, err := lockDirectory(path)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock directory of embedded cluster: %w", err), os.RemoveAll(path))
	}
	return &directory{path: path, lock: lock}, nil
}

func makeDirectory(root string) (string, error) {
	for {
		if err := os.MkdirAll(root, 0o700); err != nil {
			return "", err
		}
		if err := checkOwner(root); err != nil {
			return "", err
		}
		path, err := os.MkdirTemp(root, "")
		if errors.Is(err, fs.ErrNotExist) {
			continue // an ending cluster has just removed the root
		}
		return path, err
	}
}

// checkOwner refuses a root that somebody else has put into a shared /tmp.
func checkOwner(root string) error {
	var st unix.Stat_t
	if err := unix.Lstat(root, &st); err != nil {
		return &fs.PathError{Op: "lstat", Path: root, Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR || int(st.Uid) != os.Getuid() {
		return &fs.PathError{Op: "use", Path: root, Err: fs.ErrPermission}
	}
	return nil
}

// lockDirectory makes the lock under its final name only when it is held, so
// that removeDead never finds it free.
func lockDirectory(path string) (*os.File, error) {
	making := filepath.Join(path, "."+lockName)
	lock, err := os.Create(making)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return nil, errors.Join(&fs.PathError{Op: "flock", Path: making, Err: err}, lock.Close())
	}
	return lock, os.Rename(making, filepath.Join(path, lockName))
}

// removeDead removes the directories of clusters whose process has died, and ends
// what their trackers had started.
func removeDead(root string) {
	locks, _ := filepath.Glob(filepath.Join(root, "*", lockName)) // the pattern is well-formed
	for _, name := range locks {
		lock, err := os.Open(name)
		if err != nil {
			continue // its cluster is just ending
		}
		if unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
			bury(filepath.Dir(name))
		}
		lock.Close()
	}
}

func bury(cluster string) {
	trackers, _ := filepath.Glob(filepath.Join(cluster, trackerDir+"*")) // the pattern is well-formed
	for _, dir := range trackers {
		if tasktracker.Bury(dir) != nil {
			return // the next start tries again
		}
	}
	removeLockLast(cluster)
}

// removeLockLast keeps the lock until all else is gone: a worker that is just
// dying may still write, and then the next start has to find the directory.
func removeLockLast(path string) {
	entries, err := os.ReadDir(path)
	for _, e := range entries {
		if e.Name() != lockName {
			err = errors.Join(err, os.RemoveAll(filepath.Join(path, e.Name())))
		}
	}
	if err == nil {
		os.RemoveAll(path)
	}
}

func (d *directory) remove() error {
	err := os.RemoveAll(d.path)
	os.Remove(filepath.Dir(d.path)) // succeeds if this cluster was the last
	return errors.Join(err, d.lock.Close())
}
