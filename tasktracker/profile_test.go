package tasktracker

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/quernmr/quern/runtime"
	"github.com/quernmr/quern/tasktracker/core"
	"github.com/quernmr/quern/wire"
)

// TestKeepProfile: the profile of an attempt is moved beside its logs before its directory, or only its working
// directory, is removed. Links that the job has made are not followed.
func TestKeepProfile(t *testing.T) {
	for n, kind := range []string{"attempt", "work", "link", "linked directory"} {
		dir := t.TempDir()
		l := &loop{cfg: Config{Dir: dir, Logger: slog.New(slog.DiscardHandler)}}
		id := wire.AttemptID{Task: wire.TaskID{Job: wire.JobID{Start: 1, N: 1}, Kind: wire.Map, N: n}, N: wire.EpochAttempts}
		attempt := filepath.Join(dir, "jobs", id.Task.Job.String(), id.String())
		work, logs := core.WorkDir(attempt), core.LogPath(dir, id)
		mustDo(t, os.MkdirAll(work, 0o700), os.MkdirAll(logs, 0o700), os.Mkdir(filepath.Join(dir, "other"), 0o700))
		other, profile := filepath.Join(dir, "other", runtime.ProfileName), filepath.Join(work, runtime.ProfileName)
		mustDo(t, os.WriteFile(other, []byte("other"), 0o600))
		removed := attempt
		switch kind {
		case "link":
			mustDo(t, os.Symlink(other, profile))
		case "linked directory":
			mustDo(t, os.Remove(work), os.Symlink(filepath.Dir(other), work))
		case "work":
			removed = work
			fallthrough
		default:
			mustDo(t, os.WriteFile(profile, []byte("profile"), 0o600))
		}
		l.keepProfile(removed)
		kept, err := os.ReadFile(filepath.Join(logs, runtime.ProfileName))
		if want := kind == "attempt" || kind == "work"; want != (string(kept) == "profile") || want != (err == nil) {
			t.Errorf("%s: kept %q, error %v", kind, kept, err)
		}
		if _, err := os.Stat(other); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

func mustDo(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}
