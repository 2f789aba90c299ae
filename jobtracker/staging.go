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

// NewCluster makes a random id and nonce for a new cluster, and writes the nonce to
// <staging>/clusters/<id>, where trackers read it. Every job tracker without state may call it: the
// id of the first leader becomes the cluster's, and the other job trackers remove their files.
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

// Directories of staged files that no job needs are removed when they have not changed for this
// time. A client may still submit newer ones: while it waits, it changes them once an hour.
const (
	unusedAge  = 24 * time.Hour
	programAge = 48 * time.Hour // also after the day of the upload
)

// cleanStaging removes histories beyond their limits, and old programs and submissions that no job
// needs. Files that Quern did not make stay. If another cluster shares the staging directory, it
// removes only histories: that cluster may need the rest.
func (s *Server) cleanStaging(c core.Tidy, now time.Time) error {
	err := history.Sweep(s.cfg.FS, s.cfg.Staging, now, s.cfg.Keep, s.cfg.KeepBytes)
	if other := checkNoOtherCluster(s.cfg.FS, s.cfg.Staging, c.Cluster); other != nil {
		return errors.Join(err, other)
	}
	return errors.Join(err,
		removePrograms(s.cfg.FS, s.cfg.Staging, now, c.Programs),
		removeUnused(s.cfg.FS, s.cfg.Staging, now, c.Submissions),
		removeSessions(s.cfg.FS, s.cfg.Staging, now, c.Sessions),
		s.cleanUsers(c, now),
	)
}

// checkNoOtherCluster fails if another cluster has its nonce in the staging directory.
func checkNoOtherCluster(f dfs.FS, staging, cluster string) error {
	infos, err := list(f, dfs.Join(staging, wire.StagingClusters))
	if err != nil {
		return fmt.Errorf("tidy staging directory: %w", err)
	}
	for _, info := range infos {
		if dfs.Base(info.Name) != cluster {
			return fmt.Errorf("tidy staging directory: another cluster may share it; if that cluster no longer exists, remove %s", info.Name)
		}
	}
	return nil
}

// removePrograms removes executables that were uploaded long ago and that no job uses.
func removePrograms(f dfs.FS, staging string, now time.Time, used map[string]bool) error {
	days, err := list(f, dfs.Join(staging, wire.StagingPrograms))
	if err != nil {
		return fmt.Errorf("tidy programs: %w", err)
	}
	var errs []error
	for _, day := range days {
		date, err := time.Parse("20060102", dfs.Base(day.Name))
		if err != nil || now.Sub(date.AddDate(0, 0, 1)) <= programAge || now.Sub(day.Modified) <= programAge {
			continue
		}
		files, err := list(f, day.Name)
		if err != nil { // some may be in use
			errs = append(errs, err)
			continue
		}
		inUse := 0
		for _, file := range files {
			if used[dfs.Base(file.Name)] {
				inUse++
				continue
			}
			errs = append(errs, f.Remove(file.Name))
		}
		if inUse == 0 {
			errs = append(errs, f.RemoveAll(day.Name))
		}
	}
	return errors.Join(errs...)
}

// stagedName matches directories of submissions: names by crypto/rand.Text.
var stagedName = regexp.MustCompile(`^[A-Z2-7]{26}$`)

// removeUnused removes old staging directories of submissions that are not in the log.
func removeUnused(f dfs.FS, staging string, now time.Time, used map[string]bool) error {
	infos, err := list(f, staging)
	if err != nil {
		return fmt.Errorf("tidy submissions: %w", err)
	}
	var errs []error
	for _, info := range infos {
		name := dfs.Base(info.Name)
		if used[name] || !info.Dir || !stagedName.MatchString(name) || now.Sub(info.Modified) < unusedAge {
			continue
		}
		errs = append(errs, f.RemoveAll(info.Name))
	}
	return errors.Join(errs...)
}

// absentAge is the age of the last change of a session after which its driver does not run. Until then
// the driver may be removing the session.
const absentAge = 2 * time.Minute

// removeSessions removes sessions of drivers that have not changed for their lease. A driver that runs
// changes its session all the time. While only its job goes on, the job's session is renewed here: the
// driver has the whole lease after the job's end to come back.
func removeSessions(f dfs.FS, staging string, now time.Time, used map[string]bool) error {
	infos, err := list(f, dfs.Join(staging, wire.StagingSessions))
	if err != nil {
		return fmt.Errorf("tidy sessions: %w", err)
	}
	var errs []error
	for _, info := range infos {
		age := now.Sub(info.Modified)
		switch {
		case !info.Dir || age <= absentAge:
		case used[dfs.Base(info.Name)]:
			errs = append(errs, renewSession(f, info.Name))
		case age > wire.SessionLease:
			errs = append(errs, f.RemoveAll(info.Name))
		}
	}
	return errors.Join(errs...)
}

// renewSession changes a session's directory. The session may have been removed.
func renewSession(f dfs.FS, dir string) error {
	name := dfs.Join(dir, ".renew-"+rand.Text())
	err := f.Mkdir(name)
	if err == nil {
		err = f.Remove(name)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("renew session: %w", err)
	}
	return nil
}

// list returns a directory's entries, or none if the directory does not exist.
func list(f dfs.FS, name string) ([]dfs.Info, error) {
	infos, err := f.List(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return infos, err
}
