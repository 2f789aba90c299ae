package isolation

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quernmr/quern/tasktracker/account"
	"github.com/quernmr/quern/wire"
)

// TestPlanOtherAccount: if the owner of a job has got another account, the job learns why it cannot run. A disk that does not work keeps
// no job from running on the others.
func TestPlanOtherAccount(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root gives files to accounts")
	}
	dir, err := os.MkdirTemp("/tmp", "plan")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	job, file := filepath.Join(dir, "job"), filepath.Join(dir, "file")
	if err := errors.Join(os.Mkdir(job, 0o700), os.Chown(job, 23009, 23009), os.WriteFile(file, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	plan := func(jobs ...string) error {
		_, err := (&Config{}).Plan(&Worker{Submission: new(wire.Submission), Dir: filepath.Join(dir, "worker"), Jobs: jobs,
			Account: &account.Account{Name: "ann", UID: 23001, GID: 23001}})
		return err
	}
	if err := plan(filepath.Join(file, "job")); err != nil {
		t.Errorf("a bad disk: %v", err)
	}
	if err := plan(job); err == nil || !strings.Contains(err.Error(), "belongs to user 23009, not to user 23001 of ann") {
		t.Errorf("the directory of another account: %v", err)
	}
}
