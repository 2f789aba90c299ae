package jobtracker

import (
	"errors"
	"fmt"
	"time"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/identity"
	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/wire"
)

// Bits of directories that users share. In users/ each may make a directory, and none may remove or
// rename another one's.
const (
	enterBits = 0o711
	usersBits = 0o1777
)

// ShareStaging makes or opens a staging directory in which each user has a directory of their own.
// It reports false if the file system there knows no users: then all share one user.
func ShareStaging(f dfs.FS, staging string) (bool, error) {
	users := dfs.UsersOf(f, staging)
	if users == nil {
		return false, nil
	}
	for _, dir := range []struct {
		name string
		bits uint32
	}{{staging, enterBits}, {dfs.Join(staging, wire.StagingClusters), enterBits}, {dfs.Join(staging, wire.StagingUsers), usersBits}} {
		if err := users.Share(dir.name, dir.bits); err != nil {
			return true, fmt.Errorf("prepare staging directory: %w", err)
		}
	}
	return true, nil
}

// filesOf returns the file system in which a submission of an owner is staged.
func (s *Server) filesOf(owner, name string) dfs.FS {
	if !s.cfg.AsOwner {
		return s.cfg.FS
	}
	return dfs.ActingAs(s.cfg.FS, name, owner)
}

// maxUserErrors limits the errors of cleanUsers, since users can make any number of directories.
const maxUserErrors = 10

// cleanUsers removes old programs and submissions in the directories of users, as each of them. A
// directory that belongs to another user than its name says is left alone: anyone may make one.
func (s *Server) cleanUsers(c core.Tidy, now time.Time) error {
	users := dfs.UsersOf(s.cfg.FS, s.cfg.Staging)
	if !s.cfg.AsOwner || users == nil {
		return nil
	}
	dirs, err := list(s.cfg.FS, dfs.Join(s.cfg.Staging, wire.StagingUsers))
	if err != nil {
		return fmt.Errorf("tidy directories of users: %w", err)
	}
	var errs []error
	more := 0
	for _, dir := range dirs {
		user := dfs.Base(dir.Name)
		if identity.CheckName(user) != nil {
			continue // no user's
		}
		owner, err := users.Owner(dir.Name)
		if err == nil && owner != dfs.ShortName(user) {
			err = fmt.Errorf("%s belongs to %s", dir.Name, owner)
		}
		if err == nil {
			err = cleanUser(users, user, dir.Name, c, now)
		}
		switch {
		case err == nil:
		case len(errs) < maxUserErrors:
			errs = append(errs, fmt.Errorf("tidy the directory of user %s: %w", user, err))
		default:
			more++
		}
	}
	if more > 0 {
		errs = append(errs, fmt.Errorf("tidy the directories of %d more users: similar errors", more))
	}
	return errors.Join(errs...)
}

// cleanUser cleans the directory of a user. Afterwards nothing of the user stays in memory.
func cleanUser(users dfs.Users, user, dir string, c core.Tidy, now time.Time) (err error) {
	f, done := users.ActOnceAs(user)
	defer done()
	return errors.Join(removePrograms(f, dir, now, c.Programs), removeUnused(f, dir, now, c.Submissions), removeSessions(f, dir, now, c.Sessions))
}
