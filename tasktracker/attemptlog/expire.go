package attemptlog

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/quernmr/quern/wire"
)

// JobLogs describes the logs of a job.
type JobLogs struct {
	job       wire.JobID
	dir       string
	bytes     int64
	lastWrite time.Time
}

// Find returns the logs below a directory, by job.
func Find(dir string) ([]JobLogs, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var all []JobLogs
	for _, e := range entries {
		logs := JobLogs{dir: filepath.Join(dir, e.Name())}
		if logs.job, err = wire.ParseJobID(e.Name()); err != nil {
			continue
		}
		err := filepath.WalkDir(logs.dir, func(_ string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := d.Info()
			if err != nil {
				return err
			}
			if !d.IsDir() {
				logs.bytes += info.Size()
			}
			if info.ModTime().After(logs.lastWrite) {
				logs.lastWrite = info.ModTime()
			}
			return nil
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // a file may be removed meanwhile
			return nil, err
		}
		all = append(all, logs)
	}
	return all, nil
}

// Expired returns the directories to remove. Logs of live jobs stay. It removes logs that
// were last written before oldest, then the oldest logs, until the total is within the limit.
func Expired(all []JobLogs, live map[wire.JobID]bool, oldest time.Time, limit int64) (dirs []string) {
	slices.SortStableFunc(all, func(a, b JobLogs) int { return a.lastWrite.Compare(b.lastWrite) })
	sum := int64(0)
	for i := range all {
		sum += all[i].bytes
	}
	for i := range all {
		logs := &all[i]
		if !live[logs.job] && (logs.lastWrite.Before(oldest) || sum > limit) {
			dirs = append(dirs, logs.dir)
			sum -= logs.bytes
		}
	}
	return dirs
}
