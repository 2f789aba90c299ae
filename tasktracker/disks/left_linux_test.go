package disks

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/quernmr/quern/datadir"
	"github.com/quernmr/quern/tasktracker/account"
	"github.com/quernmr/quern/tasktracker/core"
	"github.com/quernmr/quern/wire"
)

// TestRemoveJobsWithoutRights: a job has taken the rights from its directories. A tracker that is not root's removes them at
// its next start, which must not fail.
func TestRemoveJobsWithoutRights(t *testing.T) {
	dir := t.TempDir()
	s, err := Claim(Config{Dir: dir, Disks: []string{dir}, Layout: datadir.Layout{Daemon: "tracker", Marker: "marker", Dirs: []string{core.JobsDir, TrashDir}}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	id := wire.AttemptID{Task: wire.TaskID{Job: wire.JobID{Start: 1, N: 1}, Kind: wire.Map}}
	job := filepath.Join(dir, core.JobsDir, id.Task.Job.String())
	attempt, running := filepath.Join(job, id.String()), filepath.Join(dir, core.JobsDir, wire.JobID{Start: 1, N: 2}.String())
	inner := filepath.Join(core.WorkDir(attempt), "inner")
	for _, d := range []string{inner, running + "/x/y"} {
		if err := errors.Join(os.MkdirAll(d, 0o755), os.WriteFile(d+"/file", nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for _, d := range []string{inner, core.WorkDir(attempt), attempt, job, running + "/x/y", running + "/x", running} {
		if err := os.Chmod(d, 0); err != nil {
			t.Fatal(err)
		}
	}
	var other *account.Account // nil: modes hold for this user
	if os.Geteuid() == 0 {
		other = &account.Account{UID: 23001, GID: 23001}
		if err := filepath.WalkDir(dir, func(name string, _ os.DirEntry, err error) error {
			return errors.Join(err, os.Chown(name, 23001, 23001))
		}); err != nil {
			t.Fatal(err)
		}
	}
	err = other.Do(func() error {
		if err := s.Remove(running + "/x/y"); err != nil {
			t.Errorf("while the tracker runs: %v", err)
		}
		left, err := s.RemoveJobs(false)
		if len(left) != 0 {
			t.Errorf("map outputs are left: %v", left)
		}
		for _, trash := range s.Trash() {
			err = errors.Join(err, s.Remove(trash))
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	for _, pattern := range []string{core.JobsDir + "/*", TrashDir} {
		if left, _ := filepath.Glob(filepath.Join(dir, pattern)); left != nil {
			t.Errorf("left: %v", left)
		}
	}
}
