package jobtracker

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"time"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/history"
	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/wire"
)

// NewCluster makes a random id and nonce for a cluster that is to be bootstrapped
// and writes the nonce to <staging>/clusters/<id>, where its trackers will read
// it. Every job tracker without a state may call it: the first to lead decides
// whose cluster it is, and the others remove their own files.
func NewCluster(f dfs.FS, staging string) (cluster, nonce string, err error) {
	f = dfs.Private(f)
	cluster, nonce = rand.Text(), rand.Text()
	name := dfs.Join(staging, wire.StagingClusters, cluster)
	if err := f.MkdirAll(dfs.Dir(name)); err != nil {
		return "", "", fmt.Errorf("prepare staging directory: %w", err)
	}
	w, err := f.Create(name)
	if err != nil {
		return "", "", fmt.Errorf("prepare staging directory: %w", err)
	}
	if _, err := w.Write([]byte(nonce)); err != nil {
		w.Abort()
		return "", "", fmt.Errorf("prepare staging directory: %w", err)
	}
	if err := errors.Join(w.Close(), f.SyncDir(dfs.Dir(name))); err != nil {
		return "", "", fmt.Errorf("prepare staging directory: %w", err)
	}
	return cluster, nonce, nil
}

// How long what belongs to no job is left in the staging directory: a client may
// still be about to submit it.
const (
	strangerAge = 24 * time.Hour
	programAge  = 48 * time.Hour // after the day of the upload
)

// tidy removes histories beyond their limits, and programs and submissions that
// are old and that no job needs. It removes nothing that Quern did not make: the
// staging directory may hold other things. Where another cluster has its staging
// there too, which may need what this one does not know, only histories go.
func (s *Server) tidy(c core.Tidy, now time.Time) error {
	err := history.Sweep(s.cfg.FS, s.cfg.Staging, now, s.cfg.Keep, s.cfg.KeepBytes)
	if other := alone(s.cfg.FS, s.cfg.Staging, c.Cluster); other != nil {
		return errors.Join(err, other)
	}
	return errors.Join(err,
		removePrograms(s.cfg.FS, s.cfg.Staging, now, c.Programs),
		removeStrangers(s.cfg.FS, s.cfg.Staging, now, c.Submissions),
	)
}

// alone says which other cluster has its nonce in the staging directory.
func alone(f dfs.FS, staging, cluster string) error {
	infos, err := listed(f, dfs.Join(staging, wire.StagingClusters))
	if err != nil {
		return fmt.Errorf("tidy staging directory: %w", err)
	}
	for _, info := range infos {
		if dfs.Base(info.Name) != cluster {
			return fmt.Errorf("tidy staging directory: it may be another cluster's too; if that is no more, remove %s", info.Name)
		}
	}
	return nil
}

// removePrograms removes the executables of old days, but for those in use.
func removePrograms(f dfs.FS, staging string, now time.Time, used map[string]bool) error {
	days, err := listed(f, dfs.Join(staging, wire.StagingPrograms))
	if err != nil {
		return fmt.Errorf("tidy programs: %w", err)
	}
	var errs []error
	for _, day := range days {
		date, err := time.Parse("20060102", dfs.Base(day.Name))
		if err != nil || now.Sub(date.AddDate(0, 0, 1)) <= programAge {
			continue
		}
		files, err := listed(f, day.Name)
		if err != nil { // there may be some that are in use
			errs = append(errs, err)
			continue
		}
		left := 0
		for _, file := range files {
			if used[dfs.Base(file.Name)] {
				left++
				continue
			}
			errs = append(errs, f.Remove(file.Name))
		}
		if left == 0 {
			errs = append(errs, f.RemoveAll(day.Name))
		}
	}
	return errors.Join(errs...)
}

// stagedName is how the directories of submissions are named: crypto/rand.Text.
var stagedName = regexp.MustCompile(`^[A-Z2-7]{26}$`)

// removeStrangers removes old directories of submissions that the log does not hold.
func removeStrangers(f dfs.FS, staging string, now time.Time, used map[string]bool) error {
	infos, err := listed(f, staging)
	if err != nil {
		return fmt.Errorf("tidy submissions: %w", err)
	}
	var errs []error
	for _, info := range infos {
		name := dfs.Base(info.Name)
		if used[name] || !info.Dir || !stagedName.MatchString(name) || now.Sub(info.Modified) < strangerAge {
			continue
		}
		errs = append(errs, f.RemoveAll(info.Name))
	}
	return errors.Join(errs...)
}

// listed is a directory's entries; of one that is not there, none.
func listed(f dfs.FS, name string) ([]dfs.Info, error) {
	infos, err := f.List(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return infos, err
}
