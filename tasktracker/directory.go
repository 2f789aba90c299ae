package tasktracker

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/quernmr/quern/tasktracker/core"
)

const (
	lockName    = "lock"
	recordName  = "workers"
	clusterName = "cluster"
)

// claim makes the tracker's directory, if need be, and locks it: a second tracker
// there would kill the first one's workers. The lock ends with the process.
func claim(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, fmt.Errorf("make directory: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, fmt.Errorf("lock directory: %w", err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		lock.Close()
		return nil, fmt.Errorf("directory %s is in use by another tracker: %w", dir, err)
	}
	return lock, nil
}

// Bury ends what a tracker that has died has left running. It is for directories
// that no tracker will use again; one that starts does it by itself.
func Bury(dir string) error { return killRecorded(filepath.Join(dir, recordName)) }

// clean ends what a predecessor has left running and removes its files. Processes
// go first, as they may write.
func clean(dir string) error {
	record := filepath.Join(dir, recordName)
	if err := killRecorded(record); err != nil {
		return err
	}
	for _, name := range []string{core.JobsDir, core.LogsDir, core.RunDir, programsDir} {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return newRecord(record)
}

// readCluster is the id of the cluster that a directory belongs to; empty: none.
func readCluster(dir string) (string, error) {
	text, err := os.ReadFile(filepath.Join(dir, clusterName))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read cluster of directory: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

// writeCluster keeps that id.
func writeCluster(dir, cluster string) error {
	name := filepath.Join(dir, clusterName)
	if err := os.WriteFile(name+".new", []byte(cluster+"\n"), 0o666); err != nil {
		return err
	}
	return os.Rename(name+".new", name)
}

func (l *loop) keepCluster(cluster string) {
	if err := writeCluster(l.cfg.Dir, cluster); err != nil {
		l.cancel(fmt.Errorf("keep cluster of directory: %w", err))
	}
}
