package tasktracker

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/tasktracker/account"
	"github.com/quernmr/quern/tasktracker/core"
	"github.com/quernmr/quern/wire"
)

// TestResultsFor: the jobs of an owner get the results of the owner's sessions, and those of no other owner, whatever their
// submission names. With an account the results become the account's.
func TestResultsFor(t *testing.T) {
	root := t.TempDir()
	if err := os.Symlink("/etc", root+"/etc"); err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{"ann~s", "bob~s", "ann~bob~s", "s"} {
		if err := os.MkdirAll(filepath.Join(root, "sessions", s, "results"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	staging := "file://" + root
	c := core.StartWorker{Root: staging, Staging: staging + "/k", Owner: "ann"}
	get := func(a *account.Account, url string) (string, error) {
		return resultsFor(a, &wire.Submission{Program: wire.Program{Step: &wire.Step{Result: url}}}, c)
	}
	if dir, err := resultsFor(nil, new(wire.Submission), c); dir != "" || err != nil {
		t.Errorf("no step of a driver: %q, %v", dir, err)
	}
	ann := &account.Account{Name: "ann", UID: spyUID, GID: spyUID}
	for _, a := range []*account.Account{nil, ann} {
		if a != nil && os.Geteuid() != 0 {
			continue
		}
		mine := wire.Sessions(staging, "ann") + "s"
		dir, err := get(a, dfs.Join(mine, "results", "x"))
		if err != nil || dir != root+"/sessions/ann~s/results" {
			t.Errorf("ann's session: %q, %v", dir, err)
		}
		for _, url := range []string{"hdfs://n/sessions/ann~s/results/x", mine + "/x", mine + "/other/x", staging + "/etc/ann~s/results/x", staging + "/sessions/../results/x"} {
			if dir, err := get(a, url); dir != "" || err != nil {
				t.Errorf("an output like others, %s: %q, %v", url, dir, err)
			}
		}
		for _, s := range []string{"bob~s", "ann~bob~s", "ann~none"} {
			if dir, err := get(a, dfs.Join(staging, "sessions")+"/"+s+"/results/x"); err == nil {
				t.Errorf("session %s: %q", s, dir)
			}
		}
		// Without certificates a session may name no owner. No account gets it.
		if dir, err := get(a, staging+"/sessions/s/results/x"); (err == nil) != (a == nil) {
			t.Errorf("a session without an owner: %q, %v", dir, err)
		}
	}
	if os.Geteuid() != 0 {
		return
	}
	owned := func(name string) bool {
		info, err := os.Lstat(filepath.Join(root, "sessions", name))
		if err != nil {
			t.Fatal(err)
		}
		return info.Sys().(*syscall.Stat_t).Uid == spyUID
	}
	if !owned("ann~s/results") || owned("ann~s") || owned("bob~s/results") || owned("s/results") {
		t.Error("the wrong directories are given")
	}
	// The owner of the first session cannot have it replaced by another one.
	link := filepath.Join(root, "sessions/ann~link")
	if err := errors.Join(os.Mkdir(link, 0o700), os.Symlink("../bob~s/results", link+"/results")); err != nil {
		t.Fatal(err)
	}
	if _, err := get(ann, wire.Sessions(staging, "ann")+"link/results/x"); err == nil || !strings.Contains(err.Error(), "is not a directory") || owned("bob~s/results") {
		t.Errorf("a link to another session: %v", err)
	}
}
