package tasktracker

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
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
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make directory: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o600)
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
func Bury(dir string) error {
	return errors.Join(killRecorded(filepath.Join(dir, recordName)), killCgroup(dir))
}

// claimAll locks the tracker's directory and its disks. A disk that cannot be had,
// other than because it is in use, is none to run without.
func claimAll(cfg *Config) (locks []*os.File, bad map[int]error, err error) {
	defer func() {
		if err != nil {
			unlock(locks)
		}
	}()
	lock, err := claim(cfg.Dir)
	if err != nil {
		return nil, nil, err
	}
	locks, bad = append(locks, lock), make(map[int]error)
	for i, disk := range cfg.Disks {
		if disk == cfg.Dir {
			continue
		}
		lock, err := claim(disk)
		switch {
		case errors.Is(err, syscall.EWOULDBLOCK):
			return locks, nil, err
		case err != nil:
			bad[i] = err
		default:
			locks = append(locks, lock)
		}
	}
	return locks, bad, nil
}

func unlock(locks []*os.File) {
	for _, lock := range locks {
		lock.Close()
	}
}

// clean ends what a predecessor has left running and removes its files, but for
// what it may have left to this one. Processes go first, as they may write.
func clean(cfg *Config, bad map[int]error) ([]leftOutput, error) {
	if err := Bury(cfg.Dir); err != nil {
		return nil, err
	}
	names := []string{core.RunDir, programsDir}
	if cfg.Fresh {
		names = append(names, core.LogsDir, tokensName)
	}
	for _, name := range names {
		if err := os.RemoveAll(filepath.Join(cfg.Dir, name)); err != nil {
			return nil, err
		}
	}
	var outputs []leftOutput
	for i, disk := range cfg.Disks {
		if bad[i] != nil {
			continue
		}
		found, err := cleanDisk(disk, cfg.Fresh)
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
	if !slices.Contains(cfg.Disks, cfg.Dir) { // of service attempts
		if err := os.RemoveAll(filepath.Join(cfg.Dir, core.JobsDir)); err != nil {
			return nil, err
		}
	}
	return outputs, newRecord(filepath.Join(cfg.Dir, recordName))
}

func cleanDisk(disk string, fresh bool) ([]leftOutput, error) {
	if !fresh {
		return sift(disk)
	}
	return nil, errors.Join(os.RemoveAll(filepath.Join(disk, core.JobsDir)), os.RemoveAll(filepath.Join(disk, trashName)))
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
